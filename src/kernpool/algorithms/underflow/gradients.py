"""Gradients of queries very far from all keys, from the pairs with positive weight (`dominant_pairs.py`).

The formulas are those of `reference.pullback`; the order of the subtractions differs. For a query at R bandwidths,
terms are R and R squared times as large as their sum. Residuals, weighted by the linear weights, sum to zero, so
slopes may be counted from that of the nearest key, and differences of slopes follow from differences of keys. Where
one key has all the weight every gradient is exactly zero, except that by its value.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import PER_QUERY, Array, Gradients
from kernpool.algorithms.underflow.dominant_pairs import EPSILON, GAUSSIAN, FarPairs, far_pairs, is_product
from kernpool.core import LocalFit, PoolState, Problem, solve
from kernpool.execution.progress import Progress
from kernpool.execution.threads import OrderedSum, cut, run_blocks
from kernpool.kernels.registry import Profile

FAR = 2.0**26  # logits below minus this have lost half of their digits: 11585 bandwidths of a Gaussian
PAIRS_PER_CALL = 1 << 18
SAME = 1e-8  # relative difference of sums that is taken for rounding


class QueryResiduals(NamedTuple):
    """Residuals, linear weights and slopes of local fits, from which gradients follow; one row per query-key pair.

    Parameters
    ----------
    residual : ndarray of shape (pairs,)
        Of the values, times the cotangent.
    share : ndarray of shape (pairs,)
        Linear weight: derivative of the fit by the value.
    along, tilt : ndarray of shape (pairs, d)
        Slope of the fit times the cotangent, and of the linear weights; no columns without moments.
    sums_to_zero : ndarray of bool, shape (pairs,)
        Whether weighted residuals sum to zero: not where the fit is that of other keys or values.
    """

    residual: Array
    share: Array
    along: Array
    tilt: Array
    sums_to_zero: NDArray[np.bool_]


def find_far(state: PoolState) -> NDArray[np.intp]:
    """Return the indices of queries so far from all keys that rounded logits are too imprecise.

    Parameters
    ----------
    state : PoolState
        Of a problem.

    Returns
    -------
    ndarray of int
        Mostly none.
    """
    (below,) = np.nonzero((state.shift < 0.5 * -FAR) & (state.denominator > 0))
    return below[state.shift[below] + np.log(state.denominator[below]) < -FAR]


def differentiate_far(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling for queries that are all far from every key.

    Parameters are as in `Algorithm.pullback`.
    """
    m, n = problem.shape
    shapes = {"query": problem.query, "log_bandwidth": problem.query, "key": problem.key, "value": problem.value}
    found = {name: np.zeros(shapes[name].shape) for name in wanted}
    per_key = {name: OrderedSum(found[name]) for name in wanted - PER_QUERY}
    rows = max(1, PAIRS_PER_CALL // n)

    def work(some: slice) -> Iterator[None]:
        part = problem.block(some)
        own = state.rows(some)
        pairs = far_pairs(part)
        terms = _terms(part, pairs, own, cotangent[some], wanted)
        for name in wanted & PER_QUERY:
            found[name][some][pairs.query[pairs.start]] = pairs.sums(terms[name])
        for name, ordered in per_key.items():
            by_key = np.zeros(found[name].shape)
            np.add.at(by_key, pairs.key, terms[name])
            ordered.add(some.start // rows, by_key)
        yield

    run_blocks(work, cut(m, rows), n_jobs, progress)
    return Gradients(**found)


def _terms(
    problem: Problem, pairs: FarPairs, state: PoolState, cotangent: Array, wanted: frozenset[str]
) -> dict[str, Array]:
    """Return the contribution of each query-key pair to the requested gradients."""
    terms = {}
    g = cotangent[pairs.query]
    fit = _fit(problem, pairs, state, g)
    if "value" in wanted:
        terms["value"] = fit.share[:, None] * g
    if wanted == {"value"}:
        return terms
    h = problem.similarity.bandwidth
    u = (problem.query[pairs.query] - problem.key[pairs.key]) / h
    nearer = (problem.key[pairs.key[pairs.best]] - problem.key[pairs.key]) / h
    slope, beyond, scaled = _slopes(problem, u, nearer, pairs.best, fit.sums_to_zero)
    change = (fit.share * fit.residual)[:, None]
    tilted = np.zeros((1, 1))
    if fit.tilt.shape[1]:
        tilted = (pairs.share * fit.residual)[:, None] * fit.tilt - fit.share[:, None] * fit.along
    if "query" in wanted:
        terms["query"] = (change * beyond - tilted) / h
    if "key" in wanted:
        terms["key"] = (tilted - change * slope) / h
    if "log_bandwidth" in wanted:
        terms["log_bandwidth"] = -change * scaled
    return terms


def _slopes(
    problem: Problem, u: Array, nearer: Array, best: NDArray[np.intp], centered: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """Return, per pair, slopes ``d log K / d u``, and how slopes and slopes times u differ from the nearest key's.

    `nearer` is u less that of the nearest key. Pairs that are not `centered` keep theirs whole.
    """
    similarity, log_slope = problem.similarity, problem.similarity.slope_of_log()
    with np.errstate(all="ignore"):
        if is_product(similarity):
            slope = np.where(u == 0.0, 0.0, log_slope(np.abs(u)) * np.sign(u))
            beyond = slope - slope[best]
            scaled = beyond * u + slope[best] * nearer
        else:
            distance = np.sqrt(np.sum(u * u, axis=1))
            steepness = log_slope(distance)
            ratio = np.where(distance > 0, steepness / distance, 0.0)
            slope, more = ratio[:, None] * u, np.zeros((len(u), 1))
            if similarity.kernel is not GAUSSIAN:
                change = _ratio_change(log_slope, u, nearer, best)
                more = np.where(distance * distance[best] > 0.0, change, 0.0)[:, None]
            beyond = ratio[:, None] * nearer + more * u[best]
            scaled = ratio[:, None] * nearer * (u + u[best]) + more * u[best] ** 2
    return slope, np.where(centered[:, None], beyond, slope), np.where(centered[:, None], scaled, slope * u)


def _ratio_change(log_slope: Profile, u: Array, nearer: Array, best: NDArray[np.intp]) -> Array:
    """Return (d log K / dr) / r at each pair's distance r minus that at the nearest key's, without cancellation."""
    distance = np.sqrt(np.sum(u * u, axis=1))
    nearest, steepness = distance[best], log_slope(distance)
    further = np.sum(nearer * (u + u[best]), axis=1) / (distance + nearest)
    step = 1e-5 * nearest
    bend = (log_slope(nearest + step) - log_slope(nearest - step)) / (2.0 * step)
    change = np.where(np.abs(further) < step, bend * further, steepness - steepness[best])
    return np.asarray((change - steepness[best] * (further / nearest)) / distance)


def _fit(problem: Problem, pairs: FarPairs, state: PoolState, g: Array) -> QueryResiduals:
    """Return residuals, linear weights and slopes of local fits to the pairs of each query.

    Where the state belongs to other keys or values, the fit is that of the state.
    """
    rows = pairs.query[pairs.start]
    of_state = state.rows(rows)
    value = problem.value[pairs.key]
    beyond = value - value[pairs.best]
    share, layout = pairs.share, problem.layout
    offset = np.empty((len(share), 0))
    if layout.degree:
        offset = (problem.key[pairs.key] - problem.query[pairs.query]) / problem.similarity.bandwidth
    fit = _solve(pairs, beyond, offset, problem)
    residual = _residual(pairs, beyond, offset, fit)
    if layout.degree:  # once more for what rounding has left
        again = _solve(pairs, residual, offset, problem)
        residual = _residual(pairs, residual, offset, again)
        fit = replace(fit, slope=fit.slope + again.slope)
    given = solve(of_state, layout)
    # The state may be of more keys than these, or of other values: then it says what the fit is.
    log_share = pairs.log_weight - of_state.log_denominator
    rounding = 64.0 * (problem.key.shape[1] + 4) * EPSILON * np.abs(pairs.log_weight) + SAME
    more = np.abs(log_share) > rounding
    level = value[pairs.best][pairs.start] + fit.intercept
    spread = np.maximum.reduceat(np.abs(beyond), pairs.start, axis=0)
    allowed = SAME * (np.abs(given.intercept) + np.abs(level)) + rounding[:, None] * spread
    if layout.degree:
        allowed = np.where(spread > 0.0, np.inf, allowed)
    other = more | np.any(np.abs(given.intercept - level) > allowed, axis=1)
    if other.any():
        chosen = pairs.spread(other)
        share = share * pairs.spread(np.where(more, np.exp(np.minimum(log_share, 0.0)), 1.0))
        residual = np.where(chosen[:, None], _residual(pairs, value, offset, given), residual)
        fit = LocalFit(*(_either(other, a, b) for a, b in zip(_parts(given), _parts(fit), strict=True)))
    base, tilt, slope = (pairs.spread(part) for part in (fit.base, fit.tilt, fit.slope))
    return QueryResiduals(
        np.sum(g * residual, axis=1),
        share * (base + np.sum(tilt * offset, axis=1)),
        np.einsum("pc,pdc->pd", g, slope),
        tilt,
        pairs.spread(~other),
    )


def _parts(fit: LocalFit) -> tuple[NDArray[Any], ...]:
    return tuple(getattr(fit, field.name) for field in fields(fit))


def _either(which: NDArray[np.bool_], a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.where(which.reshape(-1, *[1] * (a.ndim - 1)), a, b)


def _solve(pairs: FarPairs, value: Array, offset: Array, problem: Problem) -> LocalFit:
    """Return each query's local fit of the values; a constant where all keys of relevant weight are at one point."""
    d, c = offset.shape[1], value.shape[1]
    columns = [value, offset]
    columns += [offset[:, a] * offset[:, b] for a in range(d) for b in range(a, d)]
    columns += [offset[:, a, None] * value for a in range(d)]
    numerator = pairs.sums(pairs.share[:, None] * np.column_stack(columns))
    ones = np.ones(len(numerator))
    fit = solve(PoolState(0.0 * ones, ones, numerator), problem.layout)
    constant = (fit.rank == 0) if d else np.zeros(len(ones), dtype=bool)
    if not constant.any():
        return fit
    flat = replace(
        fit, intercept=numerator[:, :c], slope=np.zeros_like(fit.slope), base=ones, tilt=np.zeros_like(fit.tilt)
    )
    return LocalFit(*(_either(constant, a, b) for a, b in zip(_parts(flat), _parts(fit), strict=True)))


def _residual(pairs: FarPairs, value: Array, offset: Array, fit: LocalFit) -> Array:
    """Return each pair's value minus its query's local fit at the pair's key."""
    plane = np.einsum("pd,pdc->pc", offset, pairs.spread(fit.slope))
    return np.asarray(value - pairs.spread(fit.intercept) - plane)
