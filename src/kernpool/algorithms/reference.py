"""Reference implementation: dense NumPy sums and gradients, as in textbooks.

Every other algorithm is compared with it, so it is never optimised. Small problems also run on it, some rows at a
time: a call of up to about a hundred thousand pairs takes half a millisecond as a dense NumPy expression, and loads
no compiler.
"""

from functools import partial

import numpy as np

from kernpool._arrays import Array
from kernpool.algorithms.algorithm import PAIRS_AT_ONCE, Algorithm, Gradients, dense_seconds, may_underflow
from kernpool.core import PoolState, Problem, empty_state, monomials, solve
from kernpool.execution import Progress, cut


def pair_weights(problem: Problem) -> tuple[Array, Array]:
    """Return (shift, weight): a log-scale per query, (m,), and all pair weights, (m, n), divided by ``exp(shift)``."""
    # Where every pair counts once, no table of ones is needed.
    multiplied = problem.key_weight, problem.self_index, problem.attn_mask, problem.excluded
    times = None if all(x is None for x in multiplied) else problem.multiplicity()
    similarity = problem.similarity
    plain = problem.logit_bias is None
    if similarity.kernel.is_compact and plain and not may_underflow(problem):
        # A profile of compact support does not underflow, and a detour through logarithms costs digits at the edge.
        weight = similarity.profiles(problem.query, problem.key)
        return np.zeros(len(weight)), weight if times is None else times * weight
    logits = similarity.logits(problem.query, problem.key)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    if times is not None:
        logits = np.where(times > 0, logits, -np.inf)
    shift = logits.max(axis=1)
    weight = np.exp(logits - _finite(shift)[:, None])
    return shift, weight if times is None else times * weight


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums over all keys for each query by dense NumPy: weights, weighted values and moments."""
    shift, weight = pair_weights(problem)
    columns = [weight @ problem.value]
    if problem.degree:
        offset, d = partial(problem.similarity.offset, problem.query, problem.key), problem.key.shape[1]
        columns += [np.sum(weight * offset(a), axis=1) for a in range(d)]
        columns += [np.sum(weight * offset(a) * offset(b), axis=1) for a in range(d) for b in range(a, d)]
        columns += [(weight * offset(a)) @ problem.value for a in range(d)]
    if problem.degree == 2:
        # Every product of offsets once: times one more, and times the values.
        with np.errstate(over="ignore", invalid="ignore"):  # fits ignore moments that overflow
            pair = {(a, b): weight * offset(a) * offset(b) for a, b in monomials(d, 2)}
            for order in (3, 4):
                columns += [
                    np.sum(pair[one[0], one[1]] * np.prod([offset(a) for a in one[2:]], axis=0), axis=1)
                    for one in monomials(d, order)
                ]
            columns += [product @ problem.value for product in pair.values()]
    if progress is not None:
        progress(len(weight), len(weight))
    return PoolState(shift, weight.sum(axis=1), np.column_stack(columns))


def reduce_in_blocks(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums by dense NumPy for some queries at a time, so that temporary arrays reuse memory."""
    m, rows = len(problem.query), max(1, PAIRS_AT_ONCE // len(problem.key))
    if rows >= m:
        return reduce(problem, n_jobs, progress)
    state = empty_state(m, problem.layout.width)
    for queries in cut(m, rows):
        state.put(queries, reduce(problem.block(queries)))
        if progress is not None:
            progress(queries.stop, m)
    return state


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    r"""Compute the gradients of the loss :math:`L = \sum_{ic} g_{ic} \hat y_{ic}`, given the cotangents g.

    Parameters are as in `Algorithm`. The fit is :math:`\hat y_i = \sum_j \omega_{ij} v_j`. If it is local constant, the
    linear weights omega are the pooling weights alpha; if it is local linear, they are
    :math:`\omega_{ij} = \alpha_{ij} (b_i + \tau_i \cdot t_{ij})`. A change of a logit moves the fit by the residual
    from the local plane,

    .. math:: \partial L/\partial s_{ij} = \omega_{ij}\, g_i \cdot r_{ij}, \qquad r_{ij} = v_j - \beta_{0i} - \beta_i
              \cdot t_{ij},

    and a change of an offset, at the same weights, by
    :math:`\alpha_{ij} \tau_i\, g_i \cdot r_{ij} - \omega_{ij}\, g_i \cdot \beta_i`. Everything else is the chain rule;
    a change of the bandwidth scales all offsets alike, which by itself does not move the fit.
    """
    shift, weight = pair_weights(problem)
    fit = solve(state, problem.layout)
    # Minus infinity, of a query without keys here, stays so: a state of other keys may have any shift.
    alpha = weight * (np.exp(shift - _finite(state.shift)) * _inverse(state.denominator))[:, None]
    share, residual = alpha * fit.base[:, None], cotangent @ problem.value.T
    residual -= np.sum(cotangent * fit.intercept, axis=1)[:, None]
    along = np.einsum("mc,mdc->md", cotangent, fit.slope)
    for a in range(along.shape[1]):
        offset = problem.similarity.offset(problem.query, problem.key, a)
        share += alpha * offset * fit.tilt[:, a, None]
        residual -= along[:, a, None] * offset
    gradients: dict[str, Array] = {}
    if "value" in wanted:
        gradients["value"] = share.T @ cotangent
    if wanted - {"value"}:
        logit = share * residual
        m, n = problem.shape
        columns: dict[str, list[Array]] = {name: [] for name in wanted - {"value"}}
        for a, (u, slope) in enumerate(problem.similarity.logit_slopes(problem.query, problem.key)):
            change = np.multiply(logit, slope, where=weight > 0, out=np.zeros((m, n)))  # by u, which is -t
            if "log_bandwidth" in wanted:
                columns["log_bandwidth"].append(-np.sum(change * u, axis=1))
            if problem.degree:
                change -= alpha * residual * fit.tilt[:, a, None] - share * along[:, a, None]
            if "query" in wanted:
                columns["query"].append((change / problem.similarity.width(a)).sum(axis=1))
            if "key" in wanted:
                columns["key"].append(-(change / problem.similarity.width(a)).sum(axis=0))
        gradients |= {name: np.stack(parts, axis=1) for name, parts in columns.items()}
    return Gradients(**gradients)


def _inverse(x: Array) -> Array:
    return np.divide(1.0, x, where=x > 0, out=np.zeros_like(x))


def _finite(shift: Array) -> Array:
    return np.where(shift == -np.inf, 0.0, shift)


REFERENCE = Algorithm(
    name="reference",
    summary="dense NumPy",
    reduce=reduce_in_blocks,
    pullback=pullback,
    seconds=dense_seconds,
    degree=2,
    windows=(object,),
)
