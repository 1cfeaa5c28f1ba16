"""Local fits recomputed from the keys, for queries whose moment sums are too inaccurate to determine a plane.

A plane rests on few keys, those with the largest weights. They are searched for in growing numbers, until the total
weight of all others cannot change any direction of the plane. `weighted_least_squares.py` fits it.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.underflow.dominant_pairs import is_product, log_weights
from kernpool.algorithms.underflow.weighted_least_squares import fit_planes
from kernpool.core import LocalFit, Problem, column_range

Array = NDArray[np.float64]
Index = NDArray[np.intp]

EPSILON = float(np.finfo(np.float64).eps)
FEW, MORE = 32, 8  # keys to begin with, and how many times as many next
NOTHING = -60.0  # log-weight that changes no fit, even at 1e10 times the distance
SCANNED = 4096  # keys up to which a full scan is faster than building a tree
NUMBERS = 1 << 20  # at once
JITTER = 4.0 * EPSILON  # rounding of a key, relative to its size


def fit_lost(problem: Problem, fit: LocalFit) -> LocalFit:
    """Recompute local linear fits from the keys, for queries whose moment sums are too inaccurate to fix a plane.

    Parameters
    ----------
    problem : Problem
        The fitted problem.
    fit : LocalFit
        From `solve`, of values less their center.

    Returns
    -------
    LocalFit
        The same where nothing was lost. `lost` says what was fitted here.

    Notes
    -----
    O(n d) time for each such query at most; of many keys without masks, O(log n) mostly, by a tree.

    Examples
    --------
    >>> import kernpool
    >>> from kernpool.core.local_fit import solve
    >>> key = [0.0, 0.5, 1.0]
    >>> problem = kernpool.Problem.from_arrays([2.0], key, key, bandwidth=0.05, degree=1).without_center()
    >>> fit = solve(kernpool.choose(problem).reduce(problem), problem.layout)
    >>> better = fit_lost(problem, fit)
    >>> fit.rank, (fit.intercept + 0.5).round(2), better.rank, better.intercept + 0.5
    (array([0]), array([[1.]]), array([1]), array([[2.]]))
    """
    if not fit.lost.any():
        return fit
    keys = _Keys(problem)
    rows = np.flatnonzero(fit.lost)
    if keys.rank < problem.key.shape[1]:  # no window determines a direction that all keys together do not
        rows = rows[(fit.lost[rows] == 2) | (fit.rank[rows] < keys.rank)]
    parts = {name: getattr(fit, name).copy() for name in ("intercept", "slope", "base", "tilt", "rank")}
    parts["lost"] = np.zeros_like(fit.lost)
    count = min(FEW * problem.key.shape[1], len(keys.kept))
    while rows.size:
        again = []
        at_once = max(1, NUMBERS // keys.floats_per_query(count))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            again.append(some[~keys.fit(some, count, parts)])
        rows = np.concatenate(again)
        count = MORE * count if MORE * MORE * count < len(keys.kept) else len(keys.kept)
    return replace(fit, **parts)


class _Near(NamedTuple):
    """Some keys of each query as arguments of `fit_planes`: log-weights, and offsets from the key of largest weight.

    The offset of the query from the heaviest key is `at`.
    """

    log_weight: Array
    level: Array
    heaviest: Index
    offset: Array
    at: Array
    floor: Array
    reach: Array


def _near(problem: Problem, rows: Index, keys: Index) -> _Near:
    log_weight, best, level = log_weights(problem, rows, keys)
    heaviest, h = keys[np.arange(len(rows)), best], problem.similarity.bandwidth
    key, anchor = problem.key[keys], problem.key[heaviest][:, None]
    offset, at = (key - anchor) / h, (problem.query[rows] - anchor[:, 0]) / h
    squares = np.einsum("bk,bkd->bd", np.exp(log_weight), (offset - at[:, None]) ** 2)
    reach = np.where(squares > 0, np.sqrt(squares), 1.0)
    return _Near(log_weight, level, heaviest, offset, at, JITTER * (np.abs(key) + np.abs(anchor)) / h, reach)


class _Keys:
    """The keys of a problem, and local planes fitted to each query's keys of largest weight."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        weight = problem.key_weight
        self.kept: Index = np.arange(len(problem.key)) if weight is None else np.flatnonzero(weight > 0)
        low, high = column_range(problem.key[self.kept])
        self.middle = 0.5 * low + 0.5 * high
        with np.errstate(divide="ignore"):
            self.log_width = float(np.log(np.linalg.norm((high - low) / problem.similarity.bandwidth)))
        plain = problem.attn_mask is None and problem.logit_bias is None and problem.groups is None
        self.by_tree = plain and len(self.kept) > SCANNED

    def floats_per_query(self, count: int) -> int:
        """Return the number of floats per query that a fit to `count` keys needs in memory."""
        width = 2 * self.problem.key.shape[1] + self.problem.value.shape[1] + 2
        return int(max(width * count, 0 if self.by_tree else len(self.problem.key)))

    @cached_property
    def rank(self) -> int:
        """Number of directions in which all keys together determine a slope.

        A subset of the keys is enough if that has full rank.
        """
        rank = 0
        for step in (max(1, len(self.kept) // 256), 1):
            key = self.problem.key[self.kept[::step]]
            planes = fit_planes(
                np.zeros((1, len(key))),
                (key - key[0])[None] / self.problem.similarity.bandwidth,
                np.zeros((1, len(key), 0)),
                JITTER * (np.abs(key) + np.abs(key[0]))[None] / self.problem.similarity.bandwidth,
                np.ones((1, key.shape[1])),
            )
            rank = int(planes.rank[0])
            if rank == key.shape[1]:
                break
        return rank

    def fit(self, rows: Index, count: int, parts: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Fit a plane to `count` keys of each query, write reliable fits to `parts`, and return flags of reliable ones.

        Fits with a slope or an intercept that is not finite are not written.
        """
        keys, others = self._nearest(rows, count)
        near = _near(self.problem, rows, keys)
        value, heaviest = self.problem.value[keys], self.problem.value[near.heaviest]
        with np.errstate(all="ignore"):
            planes = fit_planes(near.log_weight, near.offset, value - heaviest[:, None], near.floor, near.reach)
            intercept = heaviest + planes.level + np.einsum("bd,bdc->bc", near.at, planes.slope)
            left_out = others - near.level + np.maximum(0.0, 2.0 * self.log_width - planes.smallest)
        sure = np.isneginf(others) | ((planes.rank >= self.rank) & (left_out < NOTHING))
        # Where a slope is beyond all numbers the fit stays what it was.
        some = sure & np.isfinite(intercept).all(axis=1) & np.isfinite(planes.slope).all(axis=(1, 2))
        done = rows[some]
        parts["intercept"][done], parts["slope"][done] = intercept[some], planes.slope[some]
        parts["rank"][done], parts["base"][done], parts["tilt"][done] = planes.rank[some], np.nan, np.nan
        parts["lost"][done] = 1
        return np.asarray(sure)

    def _nearest(self, rows: Index, count: int) -> tuple[Index, Array]:
        """Return each query's keys of largest weight (-1: none), and bounds on the log total weight of all others.

        Weights to choose by are without key weights. The tree takes the nearest keys, for products over columns those
        in the maximum norm.
        """
        if count == len(self.kept):
            return np.repeat(self.kept[None], len(rows), axis=0), np.full(len(rows), -np.inf)
        return self._by_tree(rows, count) if self.by_tree else self._by_scan(rows, count)

    def _by_scan(self, rows: Index, count: int) -> tuple[Index, Array]:
        problem, n = self.problem, len(self.kept)
        part = problem.block(rows, self.kept)
        logit = part.similarity.logits(part.query, part.key)
        slack = 16.0 * EPSILON * (part.key.shape[1] + 4) * np.abs(np.where(np.isneginf(logit), 0.0, logit)).max(axis=1)
        if part.logit_bias is not None:
            logit = logit + part.logit_bias
        times = part.multiplicity()
        logit = np.where(times > 0, logit, -np.inf)
        order = np.argpartition(logit, n - count - 1, axis=1)
        largest = np.take_along_axis(logit, order[:, n - count - 1, None], axis=1)[:, 0]
        return self.kept[order[:, n - count :]], largest + slack + np.log(problem.total_weight)

    def _by_tree(self, rows: Index, count: int) -> tuple[Index, Array]:
        problem, similarity = self.problem, self.problem.similarity
        tree, size = self._tree
        place = (problem.query[rows] - self.middle) / similarity.bandwidth
        slack = 64.0 * EPSILON * (size + np.abs(place).max(axis=1))
        by_column = is_product(similarity)
        reach = similarity.kernel.support + slack.max()
        distance, found = tree.query(place, count, p=np.inf if by_column else 2.0, distance_upper_bound=2.0 * reach)
        last = np.maximum(distance[:, -1] - slack, 0.0)
        bound = similarity.kernel.log_profile(np.where(np.isinf(last), 0.0, last))
        if by_column:
            bound = bound + (place.shape[1] - 1) * similarity.kernel.log_profile(np.zeros(1))
        keys = np.append(self.kept, -1)[found]
        return keys, np.where(np.isinf(last), -np.inf, bound + np.log(problem.total_weight))

    @cached_property
    def _tree(self) -> tuple[Any, float]:
        from scipy.spatial import KDTree

        places = (self.problem.key[self.kept] - self.middle) / self.problem.similarity.bandwidth
        return KDTree(places), float(np.abs(places).max())
