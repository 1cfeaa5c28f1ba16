r"""Widths of windows that follow the keys: to the k-th nearest key of each query.

With the distance in bandwidths :math:`D(q, k) = |(q - k) / h|`, Euclidean for a radial kernel and that of the
farthest column for the product, all bandwidths of a query are multiplied by

.. math:: s(q) = \min \{ r : \sum_{D(q, k_j) \le r} w_j \ge k \},

the width of the window (`KernelLogits.widening`). Weights count as so many rows, ties and coincident rows are counted,
and one unit of the query's own key is left out first where it is excluded. So the common scale of the bandwidths does
not matter: they are the ratios of the columns.

- Beyond the total weight W the width is that of the farthest key times :math:`(k / W)^{1/d}` (locfit).
- A width of zero, of k coincident units, becomes :math:`2^{-30}` of the least positive distance: these keys alone have
  weight.
- A width is larger by :math:`2^{-43}` than the distance, so that rounding does not decide whether the boxcar holds the
  k-th key and others as far away, such as of hours in tenths, from wherever these count.

On a line the k nearest keys are neighbours: the windows of neighbouring keys that hold k units, one from each key on,
have their middles in order, so that each query looks up its own among them. In several columns, and where each query
lacks another weight of its own, a kd tree lists the nearest keys; where these are many, and under masks and exclusions,
all distances are computed, in blocks.

C. Loader, "Local Regression and Likelihood", Springer (1999), section 2.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import Problem
from kernpool.data import INFINITE
from kernpool.execution import abbreviate, cut, resolve_n_jobs
from kernpool.kernels import Kernel

SMALLEST, LARGER = 2.0**-30, 1.0 + 2.0**-43
ROUNDED = 2.0**-50  # of distances in a tree, of the farthest coordinate
ENOUGH = 1.0 - 1e-12  # of the weight that a window holds, whose sum is rounded, and of distances that count as equal
PAIRS_AT_ONCE = 1 << 16  # whose distances fit in the cache of a core
LISTED_AT_ONCE = 1 << 18  # by threads of a kd tree, which take a while to start
MOST_GOALS = 16  # different weights that windows of a line have to hold: weights below one, each left out of its own
MOST_DENSE, SHARE_DENSE = 1 << 22, 0.03  # pairs, and share of all keys from which on a list of nearest keys is slower


@dataclass(frozen=True)
class Nearest:
    """Windows that reach to the k-th nearest observation, as in lowess, loess and locfit.

    Parameters
    ----------
    k : int, float or None, default=None
        Observations in a window, counted by their weights, as a number or as a share in (0, 1] of all. None, of
        estimators alone, searches for the number of least leave-one-out error.

    Raises
    ------
    ValueError
        If k is neither.

    Examples
    --------
    >>> Nearest(30), Nearest(0.5), Nearest()
    (Nearest(k=30), Nearest(k=0.5), Nearest(k=None))
    """

    k: float | None = None

    def __post_init__(self) -> None:
        if self.k is None:
            return
        whole = isinstance(self.k, Integral) and not isinstance(self.k, bool | np.bool_)
        share = isinstance(self.k, Real) and not isinstance(self.k, Integral | np.bool_)
        if not (self.k >= 1 if whole else share and 0.0 < self.k <= 1.0):
            raise ValueError(
                "k must be a whole number of neighbors from 1 on, such as 30, or a share of all in (0, 1], such as "
                f"0.3, got {abbreviate(self.k)}"
            )
        object.__setattr__(self, "k", int(self.k) if whole else float(self.k))

    @property
    def words(self) -> str:
        """How far windows reach, for summaries."""
        return f"to the {self.k} nearest rows"


@dataclass(frozen=True)
class Floor:
    """Windows of the bandwidth that hold a number of effective rows (Kish) at least, up to twice as wide.

    Where a window has fewer, all numeric bandwidths are multiplied by the smallest of 1.19, 1.41, 1.68 and 2 at which
    it has enough, or by 2. Of planes :math:`2 (d + 1)`, two rows for each coefficient, is what to try.

    Parameters
    ----------
    rows : float
        Effective rows, from 1 on.

    Raises
    ------
    ValueError
        If there are fewer.

    Examples
    --------
    >>> Floor(12)
    Floor(rows=12)
    """

    rows: float

    def __post_init__(self) -> None:
        number = isinstance(self.rows, Real) and not isinstance(self.rows, bool | np.bool_)
        if not (number and 1 <= self.rows < np.inf):
            raise ValueError(f"rows must be a number of effective rows from 1 on, got {abbreviate(self.rows)}")

    @property
    def words(self) -> str:
        """How far windows reach, for summaries."""
        return f"of at least {self.rows:.3g} effective rows"


Window = str | Nearest | Floor


def check_window(window: Any) -> None:
    """Raise ValueError unless windows reach to the k-th nearest key: `pool` has no others but fixed ones."""
    if not isinstance(window, Nearest) or window.k is None:
        raise ValueError(f"window must be 'fixed' or Nearest(k), such as Nearest(30), got {abbreviate(window)}")


def least_neighbors(kernel: Kernel, columns: int, degree: int) -> int:
    """Return the least number of neighbors whose windows determine a local fit, with one to spare for planes."""
    # A kernel that is zero at its edge has no weight for the last of them.
    zero_at_edge = kernel.is_compact and float(kernel.profile(np.array([1.0 - 1e-9]))[0]) < 1e-6
    least = (1, columns + 2, (columns + 1) * (columns + 2) // 2 + 1)[degree]
    return least + zero_at_edge


def count_neighbors(window: Nearest, problem: Problem) -> float:
    """Return the units of weight that windows hold: a share is one of the total weight, rounded down to whole units."""
    assert window.k is not None
    units = problem.frequency * problem.weight_unit
    k, rows = float(window.k), float(window.k)
    if not isinstance(window.k, Integral):
        k, rows = window.k * float(units.sum()), window.k * np.count_nonzero(units)
        k = float(np.floor(k + 1e-7)) if np.all(units == np.rint(units)) else k
    kernel, columns = problem.similarity.kernel, problem.key.shape[1]
    least = least_neighbors(kernel, columns, problem.degree)
    if np.floor(rows + 1e-7) < least:
        raise ValueError(
            f"window=Nearest({window.k}) holds too few rows for degree={problem.degree} in {columns} column(s) "
            f"with the kernel {kernel.name!r}; give {least} or more, or a share of the {len(units)} keys "
            "that holds as many"
        )
    return k


def nearest_widths(problem: Problem, k: float | Sequence[float], n_jobs: int | None = None) -> Array:
    """Return the width of each query's window in bandwidths: the distance within which `k` units of weight lie.

    Those of several numbers have the shape (m, numbers): distances are computed and sorted once for all.
    """
    if problem.logit_bias is not None:
        raise ValueError(
            "window=Nearest(k) counts keys, and a floating-point attn_mask weighs pairs; pass a boolean attn_mask, or "
            "window='fixed'"
        )
    problem = _counted(problem)
    (m, n), targets = problem.shape, np.atleast_1d(k) / problem.weight_unit
    if not problem.key.shape[1]:  # no column tells keys apart
        return np.ones((m, *np.shape(k)))
    masked = problem.attn_mask is not None or problem.excluded is not None
    removed = None if masked else _removed_on_line(problem)
    if removed is not None:
        found = np.column_stack([_on_line(problem, removed, target) for target in targets.tolist()])
    elif masked or m * n <= MOST_DENSE or targets.max() > SHARE_DENSE * problem.total_weight:
        found = _by_blocks(problem, targets)
    else:
        found = _by_tree(problem, targets, resolve_n_jobs(n_jobs))
    return np.where(found > 0.0, LARGER * found, 1.0).reshape(m, *np.shape(k))


def width_slopes(problem: Problem) -> Array:
    """Return the derivatives of the logarithms of widths by the queries, of shape (m, d), but at kinks."""
    # A width is the distance from one key, or beyond the total weight a multiple of it.
    wide, slope, column = problem.similarity.widening, np.zeros(problem.query.shape), _compared(problem)
    assert wide is not None
    problem = _counted(problem)
    product = problem.similarity.kernel.composition == "product"
    for rows in cut(len(wide) if column.size else 0, max(1, PAIRS_AT_ONCE // len(problem.key))):
        distance, weight = _pairs_of(problem, rows)
        distance[weight == 0.0] = np.inf
        nearest = np.abs(distance - wide[rows, None]).argmin(axis=1)
        away = (problem.query[rows] - problem.key[nearest]) / problem.similarity.bandwidth
        if product:
            away *= np.abs(away) == np.abs(away).max(axis=1, keepdims=True)
        squared = np.sum(away**2, axis=1, keepdims=True)
        away /= problem.similarity.bandwidth
        slope[rows][:, column] = np.divide(away, squared, where=squared > 0.0, out=np.zeros_like(away))
    return slope


def with_widths(problem: Problem, widening: Array | None) -> Problem:
    """Return the problem with all bandwidths of each query multiplied by a factor."""
    return replace(problem, similarity=replace(problem.similarity, widening=widening))


def _compared(problem: Problem) -> Index:
    """Return the columns by which keys are near or far: not those of an infinite bandwidth."""
    return np.flatnonzero(problem.similarity.bandwidth != INFINITE)


def _counted(problem: Problem) -> Problem:
    """Return the problem without keys of zero weight and columns of infinite bandwidth."""
    column = _compared(problem)
    if len(column) < problem.key.shape[1]:
        similarity = replace(problem.similarity, bandwidth=problem.similarity.bandwidth[column])
        key, query = problem.key[:, column], problem.query[:, column]
        problem = replace(problem, key=key, query=query, similarity=similarity, prepared=None)
    if problem.key_weight is None or np.all(problem.key_weight > 0.0):
        return problem
    return problem.block(slice(None), np.flatnonzero(problem.key_weight > 0.0))


def _removed_on_line(problem: Problem) -> Array | None:
    """Return the weight that each query lacks of its own key, or None where windows of a line do not tell widths."""
    own = problem.self_index
    if problem.key.shape[1] > 1:
        return None
    if own is None:
        return np.zeros(1)
    removed = np.where(own >= 0, problem.frequency[own] - problem.own_weight, 0.0)
    elsewhere = (removed > 0.0) & (problem.key[own, 0] != problem.query[:, 0])  # not among the nearest keys
    return None if elsewhere.any() or len(np.unique(removed)) > MOST_GOALS else removed


def _on_line(problem: Problem, removed: Array, target: float) -> Array:
    """Return the widths in one column, from windows of neighbouring keys."""
    h, of = float(problem.similarity.bandwidth[0]), (problem.key, problem.key_weight)
    x, weight, until = problem.prepare("line of widths", of, lambda: _line_of(problem))
    q, goals = problem.query[:, 0], np.unique(target + removed)
    found = np.empty(len(q))
    for goal in goals.tolist():
        mine = slice(None) if len(goals) == 1 else np.flatnonzero(target + removed == goal)
        found[mine] = _window_widths(x, weight, until, q[mine], goal)
    total = float(weight.sum()) - removed
    farthest = np.maximum(np.abs(q - x[0]), np.abs(x[-1] - q))
    beyond = ENOUGH * target > total
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(beyond, farthest * (target / total), found)
    zero = np.flatnonzero(found == 0.0)
    if zero.size:
        below, above = np.searchsorted(x, q[zero]) - 1, np.searchsorted(x, q[zero], side="right")
        near = np.where(below >= 0, q[zero] - x[below], np.inf)
        near = np.minimum(near, np.where(above < len(x), x[np.minimum(above, len(x) - 1)] - q[zero], np.inf))
        found[zero] = np.where(np.isfinite(near), SMALLEST * near, 0.0)
    return np.where(np.isfinite(found), found, 0.0) / h


def _line_of(problem: Problem) -> tuple[Array, Array, Array]:
    """Return the sorted keys, their weights, and the sums of these up to each key."""
    order = np.argsort(problem.key[:, 0], kind="stable")
    weight = problem.frequency[order]
    return problem.key[order, 0], weight, np.cumsum(weight)


def _window_widths(x: Array, weight: Array, until: Array, q: Array, goal: float) -> Array:
    """Return the distance from each query within which sorted keys have at least the weight `goal`."""
    # Infinite if they have not.
    n = len(x)
    if weight.max() > goal:  # no window needs more: sums of heavy weights would absorb the others
        weight = np.minimum(weight, goal)
        until = np.cumsum(weight)
    last = np.searchsorted(until, until - weight + ENOUGH * goal)  # of the window that begins at each key
    starts = int(np.searchsorted(last, n))
    if not starts:
        return np.full(len(q), np.inf)
    low, high = x[:starts], x[last[:starts]]

    def distance(at: Index) -> Array:
        at = np.clip(at, 0, starts - 1)
        return np.maximum(q - low[at], high[at] - q)

    # The first window whose middle is not below the query, or the one before it; rounding may be off by some.
    place = np.searchsorted(0.5 * low + 0.5 * high, q)
    best = distance(place)
    for step in (-1, 1):
        while True:
            moved = distance(place + step)
            better = moved <= best
            better &= (place + step >= 0) & (place + step < starts)
            if not better.any():
                break
            improved = bool(np.any(moved[better] < best[better]))
            place = np.where(better, place + step, place)
            best = np.where(better, moved, best)
            if not improved:
                break
    return best


def _by_blocks(problem: Problem, targets: Array) -> Array:
    """Return the widths from the distances of all keys, some queries at a time."""
    (m, n), d = problem.shape, problem.key.shape[1]
    found = np.empty((m, len(targets)))
    for rows in cut(m, max(1, PAIRS_AT_ONCE // n)):
        found[rows] = _kth(*_pairs_of(problem, rows), targets, d)
    return found


def _pairs_of(problem: Problem, rows: slice) -> tuple[Array, Array]:
    """Return the distances of all keys from some queries, and the weights that they have for each."""
    part = problem.block(rows)
    columns = (np.abs(part.query[:, a, None] - part.key[:, a]) for a in range(part.key.shape[1]))
    return _distances(part, columns), part.multiplicity()


def _distances(problem: Problem, columns: Iterable[Array]) -> Array:
    """Return distances in bandwidths from the absolute differences in each column, which are written over."""
    total: Array | None = None
    product = problem.similarity.kernel.composition == "product"
    for u, h in zip(columns, problem.similarity.bandwidth, strict=True):
        u /= h
        if problem.key.shape[1] == 1:
            return u
        if not product:
            u *= u
        if total is None:
            total = u
        elif product:
            np.maximum(total, u, out=total)
        else:
            total += u
    assert total is not None
    return total if product else np.sqrt(total, out=total)


def _kth(distance: Array, weight: Array, targets: Array, d: int) -> Array:
    """Return the distances within which each row of weights sums to each target; zero if none is positive."""
    taken = weight > 0.0
    distance[~taken] = np.inf
    unit, last, total = weight.max(), distance.shape[1] - 1, weight.sum(axis=1)
    if unit == 0.0:
        return np.zeros((len(distance), len(targets)))
    if np.all(taken == (weight == unit)):
        place = np.clip(np.ceil(ENOUGH * targets / unit) - 1, 0, last).astype(np.intp)
        # A partial sort takes a third of the time of a sort for one place, and more from two on.
        ordered = np.partition(distance, place, axis=1) if len(place) == 1 else np.sort(distance, axis=1)
        found = ordered[:, place]
    else:
        order = np.argsort(distance, axis=1)
        until = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
        total = until[:, -1]  # rounded as the sums are
        place = np.stack([np.searchsorted(row, ENOUGH * targets) for row in until])
        found = np.take_along_axis(distance, np.take_along_axis(order, np.minimum(place, last), axis=1), axis=1)
    return _at_the_ends(found, distance, total[:, None], targets, d)


def _at_the_ends(found: Array, distance: Array, total: Array, targets: Array, d: int) -> Array:
    """Return widths with those beyond all keys, and of coincident keys, as the docstring of the module says."""
    # Distances of keys that do not count are infinite.
    beyond = ENOUGH * targets > total
    if beyond.any():
        farthest = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            wider = np.nan_to_num(farthest * (targets / total) ** (1.0 / d), nan=0.0, posinf=0.0)
        found = np.where(beyond, wider, found)
    if np.any(found == 0.0):
        near = np.where(distance > 0.0, distance, np.inf).min(axis=1, keepdims=True)
        found = np.where(found > 0.0, found, np.where(np.isfinite(near), SMALLEST * near, 0.0))
    return found


def _by_tree(problem: Problem, targets: Array, threads: int) -> Array:
    """Return the widths from lists of nearest keys, found in a kd tree."""
    from scipy.spatial import KDTree

    (m, n), d = problem.shape, problem.key.shape[1]
    middle, h = problem.key.mean(axis=0), problem.similarity.bandwidth
    tree = problem.prepare("KDTree", (problem.key, h), lambda: KDTree((problem.key - middle) / h))
    norm = 2.0 if problem.similarity.kernel.composition == "radial" else np.inf
    weight = problem.frequency
    found, waiting, target = np.empty((m, len(targets))), np.arange(m), targets.max()
    rounding = ROUNDED * max(float(np.abs((low_or_high - middle) / h).max()) for low_or_high in problem.box)
    listed = min(n, int(np.ceil(target / weight.mean())) + 2)
    while waiting.size:
        short = []
        for piece in cut(len(waiting), max(1, LISTED_AT_ONCE // listed)):
            part = problem.block(waiting[piece])
            away, near = tree.query((part.query - middle) / h, k=np.arange(1, listed + 1), p=norm, workers=threads)
            times = weight[near]
            if part.self_index is not None:
                times = np.where(near == part.self_index[:, None], part.own_weight[:, None], times)
            columns = (np.abs(part.query[:, a, None] - part.key[near, a]) for a in range(d))
            distance = _distances(part, columns)
            found[waiting[piece]] = _kth(distance, times, targets, d)
            positive = np.any((distance > 0.0) & (times > 0.0), axis=1)
            # Keys that are not listed may be nearer than the last one by rounding, which tells ties from each other.
            nearer = ENOUGH * found[waiting[piece]].max(axis=1) > away[:, -1] - rounding
            short.append(nearer | ~positive | (times.sum(axis=1) < ENOUGH * target))
        waiting = waiting[np.concatenate(short)] if listed < n else waiting[:0]
        listed = min(n, 2 * listed)
    return found
