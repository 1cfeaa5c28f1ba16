"""The first promise of the package, in one place: how far a pooled value may be from the exact one."""

import numpy as np
from scipy.spatial import cKDTree

from kernpool import choose, get_kernel
from kernpool.algorithms.reference import may_underflow

DENSE_PAIRS = 1 << 22  # in one table
FEW_PAIRS = 1 << 25  # beyond, trees and compiled loops look for what the tables below are looked through for

# dtype: rounding of a sum of keys nearby, machine epsilon, and how many bandwidths away nearby ends
TERMS = {np.dtype(np.float64): (1e-12, 2.2e-16, 100.0), np.dtype(np.float32): (2e-6, 1.2e-7, 4.0)}


def rounding(problem, state, dtype=None):
    """How far the pooled values of a problem may be from the exact ones by rounding alone.

    With W the weight in the window of a query and D the denominator beside the weight of its nearest key, it is
    ``1e-12 range(v) max(1, W / (1000 D)) + 4 eps |y|``, and beyond 100 bandwidths from the nearest key r another ``8
    eps (1 + r**2 / 2) range(v)``; for float32 it is 2e-6 and 4 bandwidths. A compact kernel has few digits where it
    vanishes, so its D is counted in units of its height, unless it is a product of so many columns that it underflows.

    Two algorithms may be twice as far from each other. What `tol` leaves out comes on top of it, ``tol * range(v)``.

    Parameters
    ----------
    problem : Problem
        Any, but the promise is of local constant fits.
    state : PoolState
        Of the problem, from the plan of whatever algorithm is trusted, as `Plan.reduce` returns it.
    dtype : dtype, optional
        float64 or float32; by default what the problem is computed in.

    Returns
    -------
    ndarray of shape (m, c)
        For each query and each value column.
    """
    _, epsilon, _ = _terms(problem, dtype)
    spread = np.ptp(problem.value, axis=0)
    size = np.abs(state.finalize("zero")[:, : problem.layout.values])
    return share(problem, state, dtype)[:, None] * spread + 4 * epsilon * size


def share(problem, state, dtype=None):
    """How far pooling weights may be off by rounding alone, at most all of them: `rounding` by ``range(v)``.

    Parameters
    ----------
    problem, state, dtype
        As in `rounding`.

    Returns
    -------
    ndarray of shape (m,)
        For each query; 1 at most.
    """
    base, epsilon, nearby = _terms(problem, dtype)
    distance, log_unit, weight = surroundings(problem)
    with np.errstate(invalid="ignore"):
        log_share = np.log(np.maximum(weight, 1e-300)) + log_unit - state.log_denominator + np.log(problem.weight_unit)
    occupied = state.denominator > 0
    factor = base * np.exp(np.clip(np.where(occupied, log_share, 0.0) - np.log(1000.0), 0.0, 600.0))
    if not problem.similarity.kernel.is_compact:
        factor = factor + np.where(occupied & (distance > nearby), 8 * epsilon * (1 + distance**2 / 2), 0.0)
    return np.minimum(factor, 1.0)


def _terms(problem, dtype):
    if dtype is None:
        dtype = np.float64 if problem.degree else problem.dtype
    return TERMS[np.dtype(dtype)]


def surroundings(problem):
    """Return, of each query, the distance of its nearest key, the logarithm of the unit of D, and W.

    Only keys that take part for the query count: with weight, under its mask, and not itself.
    """
    m, n = problem.shape
    similarity, has_mask = problem.similarity, problem.attn_mask is not None or problem.logit_bias is not None
    if m * n > FEW_PAIRS and not has_mask and not may_underflow(problem):
        if similarity.kernel.is_compact:
            return _by_window(problem)
        if similarity.composition == "radial" or similarity.kernel.name == "gaussian":
            return _by_tree(problem)
    rows = max(1, DENSE_PAIRS // n)
    parts = [_by_table(problem.block(slice(start, start + rows))) for start in range(0, m, rows)]
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _by_table(problem):
    times, similarity = problem.multiplicity(), problem.similarity
    logits = similarity.logits(problem.query, problem.key)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    takes_part = (times > 0) & (logits > -np.inf)
    distance = np.where(takes_part, similarity.distance(problem.query, problem.key), np.inf).min(axis=1)
    weight = np.where(takes_part, times, 0.0).sum(axis=1)
    if similarity.kernel.is_compact and problem.logit_bias is None and not may_underflow(problem):
        return distance, np.zeros(len(times)), weight
    return distance, np.where(takes_part, logits, -np.inf).max(axis=1), weight


def _by_window(problem):
    """For compact kernels, which need no distance."""
    boxcar = problem.with_kernel(get_kernel("boxcar"))
    weight = np.exp(choose(boxcar, "brute").reduce(boxcar).log_denominator) / boxcar.weight_unit
    return np.full(len(weight), np.inf), np.zeros(len(weight)), weight


def _by_tree(problem):
    similarity = problem.similarity
    weight = np.ones(len(problem.key)) if problem.key_weight is None else problem.key_weight
    (rows,) = np.nonzero(weight > 0)
    middle = np.median(problem.key, axis=0)
    tree = cKDTree((problem.key[rows] - middle) / similarity.bandwidth)
    near, place = tree.query((problem.query - middle) / similarity.bandwidth, k=min(2, len(rows)))
    near, place = near.reshape(len(near), -1), rows[place.reshape(len(near), -1)]
    total = np.full(len(near), weight.sum())
    if problem.self_index is not None:
        gone = (place == problem.self_index[:, None]) & (problem.own_weight == 0)[:, None]
        near = np.where(gone, np.inf, near)
        own = np.where(problem.self_index >= 0, weight[problem.self_index], 0.0)
        total = total - own + problem.own_weight
    nearest = near.min(axis=1)
    return nearest, similarity.kernel.log_profile(nearest), total
