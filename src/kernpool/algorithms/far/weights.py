"""Weights of some keys for each of some queries, as logarithms beside the largest one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.similarity import KernelSimilarity
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

STEEP = -(2.0**10)  # logits below are compared by way of distances
ROUNDS = 3  # of finding the nearest key among those that rounded logits cannot tell apart
GAUSSIAN = get_kernel("gaussian")


def is_by_column(similarity: KernelSimilarity) -> bool:
    """Whether columns count one by one; for the Gaussian it is the same."""
    return similarity.composition == "product" and similarity.kernel is not GAUSSIAN


def log_weights(problem: Problem, rows: Index, keys: Index) -> tuple[Array, Index, Array]:
    """Return the logarithms of weights beside the largest one, where that is, and its own.

    Parameters
    ----------
    problem : Problem
        Of whose weights.
    rows : ndarray of int, shape (B,)
        Queries.
    keys : ndarray of int, shape (B, K)
        Keys of each, -1 for none.

    Returns
    -------
    log_weight : ndarray of shape (B, K)
        At most zero. Far out it is a difference of distances, since logits of 1e16 round by more than one.
    best : ndarray of int, shape (B,)
        Where it is zero.
    level : ndarray of shape (B,)
        What has been subtracted.

    Examples
    --------
    >>> problem = Problem.from_arrays([1e9], [0.0, 1e-9], [0.0, 0.0])
    >>> log_weights(problem, np.array([0]), np.array([[0, 1]]))[0]
    array([[-1.,  0.]])
    """
    part, each = problem.block(rows), np.arange(len(rows))
    times = np.ones(keys.shape) if part.key_weight is None else part.key_weight[keys]
    if part.self_index is not None:
        times = np.where(keys == part.self_index[:, None], part.own_weight[:, None], times)
    if part.attn_mask is not None:
        times = times * part.attn_mask[each[:, None], keys]
    if part.groups is not None:
        times = times * (part.groups.query_code[:, None] != part.groups.key_code[keys])
    with np.errstate(divide="ignore"):
        extra = np.log(np.where(keys >= 0, times, 0.0))
    if part.logit_bias is not None:
        extra = extra + part.logit_bias[each[:, None], keys]
    key, similarity = part.key[keys], part.similarity
    u = (part.query[:, None] - key) / similarity.bandwidth
    by_column = is_by_column(similarity)
    groups = [u[:, :, a, None] for a in range(u.shape[2])] if by_column else [u]
    logit = [similarity.kernel.log_profile(np.sqrt(np.sum(group * group, axis=2))) for group in groups]
    level = np.sum(logit, axis=0) + extra
    best = np.argmax(level, axis=1)
    for _ in range(ROUNDS):
        nearer = (key[each, best][:, None] - key) / similarity.bandwidth
        log_weight = extra - extra[each, best][:, None]
        for a, group in enumerate(groups):
            step = nearer[:, :, a, None] if by_column else nearer
            log_weight = log_weight + _gap(similarity.kernel, group, step, logit[a], each, best)
        better = np.argmax(log_weight, axis=1)
        if np.all(log_weight[each, better] <= 0.0):
            break
        best = better
    return log_weight - log_weight[each, better][:, None], better, level[each, better]


def _gap(kernel: Kernel, u: Array, nearer: Array, logit: Array, each: Index, best: Index) -> Array:
    """Logits of some columns less those of the best key; `nearer` is u less that of the best key."""
    base = logit[each, best][:, None]
    gap = logit - base
    if kernel.log_slope is None:
        return np.asarray(gap)
    distance = np.sqrt(np.sum(u * u, axis=2))
    nearest = distance[each, best][:, None]
    with np.errstate(all="ignore"):
        further = np.sum(nearer * (u + u[each, best][:, None]), axis=2) / (distance + nearest)
        slope = 0.5 * (kernel.log_slope(distance) + kernel.log_slope(nearest))
        # Exact for the Gaussian and for exponential tails, and nearly so for what changes slowly out there.
        return np.asarray(np.where(np.maximum(logit, base) < STEEP, slope * further, gap))
