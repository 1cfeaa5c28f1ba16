"""Pairs with positive weight for queries very far from all keys, with weights in extended precision.

A Gaussian logit at R bandwidths is ``-R^2 / 2`` and rounds by ``eps R^2``. From 1e8 bandwidths on that is more than
one, so differences of rounded logits say nothing about weights. The differences themselves are well conditioned: that
of two keys at distances r1 and r2 is ``(r1 - r2) (r1 + r2) / 2``. Rounded logits choose the few candidates of each
query, and for those the differences of distances are computed with twice the digits.

`log_weights` gives the weights of some keys for each of some queries, as logarithms relative to the largest one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.underflow import weighted_least_squares
from kernpool.core import KernelLogits, Problem
from kernpool.execution.threads import cut
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

LOWEST = 800.0  # logits this far below the best are weights of zero
STEEP = 2.0**20  # logits below minus this are compared by way of distances: they have lost six digits
UNSURE = 1e-3  # error of a difference of logits, in the fourth digit of a weight, from which on an error is raised
KEYS_AT_ONCE = 1 << 16
ROUNDS = 8  # of finding the nearest key among candidates that rounded logits cannot tell apart
GAUSSIAN = get_kernel("gaussian")
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FarPairs:
    """Query-key pairs of non-negligible weight for queries far from all keys, grouped by query.

    Parameters
    ----------
    query, key : ndarray of int, shape (pairs,)
        Which.
    best : ndarray of int, shape (pairs,)
        The index, among the pairs, of the query's nearest key.
    start : ndarray of int, shape (queries that have pairs,)
        The first pair of each of them.
    share : ndarray of shape (pairs,)
        Weight, as a fraction of the weights of this query.
    log_weight : ndarray of shape (queries that have pairs,)
        Logarithm of the sum of weights, with the rounding that it has.
    """

    query: Index
    key: Index
    best: Index
    start: Index
    share: Array
    log_weight: Array

    def sums(self, terms: Array) -> Array:
        """Sum `terms`, which has one row per pair, over the pairs of each query."""
        return np.asarray(np.add.reduceat(terms, self.start, axis=0))

    def spread(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Repeat the row of each query for each of its pairs."""
        return np.repeat(rows, np.diff(self.start, append=len(self.query)), axis=0)


def far_pairs(problem: Problem) -> FarPairs:
    """Find the query-key pairs of non-negligible weight for queries that are far from all keys.

    Parameters
    ----------
    problem : Problem
        Of far queries.

    Returns
    -------
    FarPairs
        Pairs whose weight is not zero.

    Raises
    ------
    ValueError
        If distances of competing keys differ by less than rounding.
    """
    query, key, score, log_times = _candidates(problem)
    start = np.flatnonzero(np.diff(query, prepend=-1))
    best = _best(score, start, query)
    for _ in range(ROUNDS):
        gap, error = _gaps(problem, query, key, best)
        total = gap + log_times - log_times[best]
        better = _best(total, start, query)
        if np.all(total[better] <= 0.0):
            break
        best = better
    total -= total[better]
    _check_sure(problem, query, total, error)
    weight = np.exp(total)
    pairs = FarPairs(query, key, best, start, weight, np.empty(0))
    sums = pairs.sums(weight)
    return FarPairs(query, key, best, start, weight / pairs.spread(sums), score[best[start]] + np.log(sums))


def is_product(similarity: KernelLogits) -> bool:
    """Return whether weights are products over columns; False for the Gaussian.

    For the Gaussian, the product over columns and the radial kernel agree.
    """
    return similarity.composition == "product" and similarity.kernel is not GAUSSIAN


def _candidates(problem: Problem) -> tuple[Index, Index, Array, Array]:
    """Return queries, keys, logits and log key weights of the pairs whose logits are near their query's largest.

    Near is at most `LOWEST` below it, up to rounding. Key weights are those after leave-one-out, masks and groups; the
    logits include their logarithms.
    """
    m, n = problem.shape
    top, slack_per_logit = np.full(m, -np.inf), 16.0 * (problem.key.shape[1] + 4) * EPSILON
    parts = []
    for keys in cut(n, KEYS_AT_ONCE):
        part = problem.block(slice(None), keys)
        with np.errstate(divide="ignore"):
            log_times = np.log(part.multiplicity())
        score = part.similarity.logits(part.query, part.key) + log_times
        if part.logit_bias is not None:
            score += part.logit_bias
        top = np.maximum(top, score.max(axis=1))
        floor = top - LOWEST - slack_per_logit * np.abs(top)
        query, key = np.nonzero((score >= floor[:, None]) & (score > -np.inf))
        parts.append((query, key + keys.start, score[query, key], log_times[query, key]))
    query, key, score, log_times = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    floor = top - LOWEST - slack_per_logit * np.abs(top)
    kept = np.flatnonzero(score >= floor[query])
    kept = kept[np.argsort(query[kept], kind="stable")]
    return query[kept], key[kept], score[kept], log_times[kept]


def _best(score: Array, start: Index, query: Index) -> Index:
    """Return for each pair the index of its query's pair with the largest score; ties go to the first."""
    counts = np.diff(start, append=len(query))
    is_top = score == np.repeat(np.maximum.reduceat(score, start), counts)
    place = np.where(is_top, np.arange(len(score)), len(score))
    return np.asarray(np.repeat(np.minimum.reduceat(place, start), counts))


def _gaps(problem: Problem, query: Index, key: Index, best: Index) -> tuple[Array, Array]:
    """Return each pair's logit minus that of its query's best pair, without key weights, and bounds on the error."""
    similarity, d = problem.similarity, problem.key.shape[1]
    groups = [slice(a, a + 1) for a in range(d)] if is_product(similarity) else [slice(0, d)]
    gap, error = np.zeros(len(query)), np.zeros(len(query))
    for columns in groups:
        h = similarity.bandwidth[columns]
        distance, further, doubt = _distances(
            problem.query[query, columns], problem.key[key, columns], problem.key[key[best], columns], h
        )
        nearest = distance[best]
        logit, base = similarity.kernel.log_profile(distance), similarity.kernel.log_profile(nearest)
        with np.errstate(invalid="ignore"):
            plain = logit - base
        part, wrong = plain, EPSILON * (np.abs(logit) + np.abs(base))
        if similarity.kernel.log_slope is not None:
            with np.errstate(all="ignore"):
                slope = 0.5 * (similarity.kernel.log_slope(distance) + similarity.kernel.log_slope(nearest))
                steep = np.maximum(logit, base) < -STEEP
                # exact for the Gaussian and for exponential tails, and nearly so for what changes slowly out there
                part = np.where(steep, slope * further, plain)
                wrong = np.where(steep, np.abs(slope) * doubt + 4.0 * EPSILON * np.abs(part), wrong)
        gap, error = gap + part, error + wrong * (part != 0.0)
    if problem.logit_bias is not None:
        bias = problem.logit_bias[query, key]
        gap += bias - bias[best]
    return gap, error


def _distances(query: Array, key: Array, best: Array, bandwidth: Array) -> tuple[Array, Array, Array]:
    """Return pairs' distances in bandwidths, their differences from the best key's distance, and error bounds."""
    d = len(bandwidth)
    factor, power = np.frexp(bandwidth[0] / bandwidth)
    rest = np.ldexp(weighted_least_squares.ratio(np.full(d, bandwidth[0]), bandwidth)[1], -power)
    farthest = np.maximum(np.abs(query - key), np.abs(query - best))
    exponent = np.where(farthest > 0, np.frexp(farthest)[1] + power, -1023).max(axis=1)
    more, terms = (np.zeros(len(query)), np.zeros(len(query))), np.zeros(len(query))
    for a in range(d):
        # Subtracted as they are, and brought near one by powers of two, both without an error; equal bandwidths
        # multiply by one. Of squares of distances, which are large, only the difference is ever formed.
        own, nearest = (weighted_least_squares.exact_sum(query[:, a], -other[:, a]) for other in (key, best))
        ends = []
        for high, low in (
            weighted_least_squares.exact_sum(best[:, a], -key[:, a]),
            weighted_least_squares.sum_of_exact(own, nearest),
        ):
            end = np.ldexp(high, power[a] - exponent), np.ldexp(low, power[a] - exponent)
            ends.append(weighted_least_squares.multiply(end, (factor[a], rest[a])))
        term = weighted_least_squares.multiply(*ends)
        more, terms = weighted_least_squares.add(more, term), terms + np.abs(term[0])
    distance, other = (np.sqrt(np.sum(((query - x) / bandwidth) ** 2, axis=1)) for x in (key, best))
    scale = np.ldexp(1.0 / bandwidth[0], exponent)
    both = np.maximum((distance + other) / scale, np.finfo(float).tiny)
    return distance, more[0] / both * scale, weighted_least_squares.EPSILON * terms / both * scale


def _check_sure(problem: Problem, query: Index, gap: Array, error: Array) -> None:
    unsure = (gap + error > -50.0) & (error > UNSURE)
    if unsure.any():
        count = len(np.unique(query[unsure]))
        raise ValueError(
            f"gradients of {count} of {len(problem.query)} far queries are not determined: keys compete that are at "
            "nearly the same distance, so many bandwidths away that float64 cannot tell which one counts more; use a "
            "larger bandwidth, or leave these queries out"
        )


STEEP_LOGIT = -(2.0**10)  # logits below are compared by way of distances
NEAREST_KEY_ROUNDS = 3  # of finding the nearest key among those that rounded logits cannot tell apart


def log_weights(problem: Problem, rows: Index, keys: Index) -> tuple[Array, Index, Array]:
    """Return log-weights of some keys per query minus the largest of them, and the index and value of the largest.

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
        The logarithm that has been subtracted.

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
    by_column = is_product(similarity)
    groups = [u[:, :, a, None] for a in range(u.shape[2])] if by_column else [u]
    logit = [similarity.kernel.log_profile(np.sqrt(np.sum(group * group, axis=2))) for group in groups]
    level = np.sum(logit, axis=0) + extra
    best = np.argmax(level, axis=1)
    for _ in range(NEAREST_KEY_ROUNDS):
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
    """Return each key's logit minus that of the query's best key, over the columns of `u`, accurate far from all keys.

    `nearer` is u less that of the best key.
    """
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
        return np.asarray(np.where(np.maximum(logit, base) < STEEP_LOGIT, slope * further, gap))
