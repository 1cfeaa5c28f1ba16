"""The slow twin: dense, obvious, never optimised. Every other algorithm is compared with it.

It is also what small problems run on, because a dense NumPy expression over a million pairs is done before a compiler
has loaded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.base import Algorithm, Gradients
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]


def pair_weights(problem: Problem) -> tuple[Array, Array]:
    """Return the shift of shape (m,) and the weights of shape (m, n), in units of ``exp(shift)``."""
    times = problem.multiplicity()
    similarity = problem.similarity
    if similarity.kernel.is_compact and problem.logit_bias is None and not may_underflow(problem):
        # A profile of compact support does not underflow, and a detour through logarithms costs digits at the edge.
        return np.zeros(len(times)), times * similarity.profiles(problem.query, problem.key)
    logits = similarity.logits(problem.query, problem.key)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    logits = np.where(times > 0, logits, -np.inf)
    shift = logits.max(axis=1)
    base = np.where(np.isneginf(shift), 0.0, shift)
    return shift, times * np.exp(logits - base[:, None])


def may_underflow(problem: Problem) -> bool:
    """Whether products of compact profiles can underflow: the faintest, (2e-16)^3, six times and more."""
    return problem.similarity.composition == "product" and problem.key.shape[1] > 5


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Sum weights and weighted values over all keys."""
    shift, weight = pair_weights(problem)
    if progress is not None:
        progress(len(weight), len(weight))
    return PoolState(shift, weight.sum(axis=1), weight @ problem.value)


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    r"""Differentiate :math:`L = \sum_{ic} g_{ic} \hat y_{ic}`; see `Algorithm`.

    A change of a logit moves the fit by :math:`\partial L/\partial s_{ij} = \alpha_{ij}\, g_i \cdot (v_j - \hat y_i)`,
    where alpha are the pooling weights; everything else is the chain rule.
    """
    shift, weight = pair_weights(problem)
    alpha = weight * (np.exp(_finite(shift) - _finite(state.shift)) * _inverse(state.denominator))[:, None]
    fitted = state.numerator * _inverse(state.denominator)[:, None]
    gradients: dict[str, Array] = {}
    if "value" in wanted:
        gradients["value"] = alpha.T @ cotangent
    if wanted - {"value"}:
        logit = alpha * (cotangent @ problem.value.T - np.sum(cotangent * fitted, axis=1)[:, None])
        m, n = problem.shape
        columns: dict[str, list[Array]] = {name: [] for name in wanted - {"value"}}
        for (u, slope), h in zip(
            problem.similarity.logit_slopes(problem.query, problem.key), problem.similarity.bandwidth, strict=True
        ):
            change = np.multiply(logit, slope, where=weight > 0, out=np.zeros((m, n)))
            if "query" in wanted:
                columns["query"].append(change.sum(axis=1) / h)
            if "key" in wanted:
                columns["key"].append(-change.sum(axis=0) / h)
            if "log_bandwidth" in wanted:
                columns["log_bandwidth"].append(-np.sum(change * u, axis=1))
        gradients |= {name: np.stack(parts, axis=1) for name, parts in columns.items()}
    return Gradients(**gradients)


def _inverse(x: Array) -> Array:
    return np.divide(1.0, x, where=x > 0, out=np.zeros_like(x))


def _finite(shift: Array) -> Array:
    return np.where(np.isneginf(shift), 0.0, shift)


REFERENCE = Algorithm(name="reference", summary="dense NumPy", reduce=reduce, pullback=pullback)
