r"""The bootstrap of a fit, without fitting again.

A fit is :math:`\hat m(q) = \sum_j l_j(q) y_j`, and its shares do not depend on y. So resampled outputs are columns of
values that are pooled together, and resampled rows are frequencies: one sum each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import EmptyWindowWarning
from kernpool.core.problem import Problem
from kernpool.core.reading import in_unit
from kernpool.data.groups import group_codes
from kernpool.execution.messages import abbreviate, check_choice
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import warn_caller
from kernpool.inference import draws
from kernpool.inference.linear_map import LinearMap
from kernpool.inference.multiplied import means_of_units, multiplied
from kernpool.inference.residuals import nothing_left
from kernpool.inference.sample import LEAST_ROWS
from kernpool.inference.warnings import InferenceWarning

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Statistic = Callable[[Array], Any]

KINDS = (*draws.MULTIPLIERS, "residual", "pairs", "poisson")


@dataclass(frozen=True)
class Resampling:
    """How to resample, checked when it is made; parameters as of `bootstrap`."""

    kind: str = "wild"
    n_resamples: int = 999
    random_state: Any = 0
    max_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        draws.as_count("n_resamples", self.n_resamples)
        if isinstance(self.max_bytes, bool) or not isinstance(self.max_bytes, int | float | np.number):
            raise TypeError(f"max_bytes must be a number of bytes such as 2**30, got {abbreviate(self.max_bytes)}")

    def check_request(self, statistic: Statistic | None, size: int) -> None:
        """Refuse, before anything is drawn, what is no statistic, or without one fits of so many numbers."""
        if statistic is None:
            self.check_size(size)
        elif not callable(statistic):
            raise TypeError(
                f"statistic must take the fit of a resample and return numbers, got {abbreviate(statistic)}; such as "
                "lambda fit: fit.max()"
            )

    def collect(self, fits: Iterator[Array], statistic: Statistic | None, progress: Progress | None) -> Array:
        """Return the statistic of each fit, of shape (n_resamples, ...)."""
        found = None
        for number, fit in enumerate(fits):
            one = fit if statistic is None else as_numbers(statistic(fit))
            if found is None:
                self.check_size(one.size)
                found = np.empty((self.n_resamples, *one.shape))
            if one.shape != found.shape[1:]:
                raise ValueError(
                    f"statistic must return one shape for all resamples, got {one.shape} after {found.shape[1:]}"
                )
            found[number] = one
            if progress is not None:
                progress(number + 1, self.n_resamples)
        assert found is not None
        return found

    def check_size(self, size: int) -> None:
        """Refuse a result of so many numbers for each resample, if that is too large."""
        needed = 8 * size * self.n_resamples
        if needed > self.max_bytes:
            raise ValueError(
                f"{self.n_resamples} resamples of {size} numbers each need {needed} bytes, more than "
                f"max_bytes={self.max_bytes}; give a statistic that reduces each fit, fewer rows of X, or more bytes"
            )


def bootstrap(
    fit: LinearMap,
    value: Array,
    at: Problem | None = None,
    *,
    how: Resampling,
    statistic: Statistic | None = None,
    groups: ArrayLike | None = None,
    flat: bool = True,
    progress: Progress | None = None,
) -> Array:
    """Resample a fit to arrays.

    Parameters
    ----------
    fit : LinearMap
        At the training rows.
    value : ndarray of shape (n, c)
        Their outputs.
    at : Problem, optional
        The same keys, with other queries; by default the training rows.
    how : Resampling
        Kind, number and seed.
    statistic : callable, optional
        Takes a resampled fit of shape (m,) or (m, c), and returns a number or an array; by default the fit itself.
    groups : array_like of shape (n,), optional
        Labels of clusters, which are drawn as a whole.
    flat : bool, default=True
        Whether fits of one output have shape (m,).
    progress : callable, optional
        Called as ``progress(done, total)`` in resamples.

    Returns
    -------
    ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, ...) of a statistic
        Same bits for any number of threads.

    Raises
    ------
    ValueError
        If weights are no whole numbers, there are fewer than five rows or two clusters, or the result needs more than
        ``how.max_bytes``.
    """
    n, c = value.shape
    there = fit if at is None else replace(fit, problem=at)
    how.check_request(statistic, len(there.problem.query) * c)
    weight = fit.problem.key_weight
    units = draws.unit_counts(None if weight is None else weight * fit.problem.weight_unit, "the bootstrap")
    if (n if units is None else units.sum()) < LEAST_ROWS:
        raise ValueError(f"the bootstrap needs at least {LEAST_ROWS} rows, got {n if units is None else units.sum()}")
    cluster = None if groups is None else as_clusters(groups, n)
    seed = draws.as_seed(how.random_state)
    if how.kind in ("pairs", "poisson"):
        fits = _of_rows(there, value, units, cluster, how, seed)
    else:
        fits = _of_values(fit, there, value, units, cluster, how, seed)
    shape = (len(there.problem.query),) if flat and c == 1 else (len(there.problem.query), c)
    return how.collect((one.reshape(shape) for one in fits), statistic, progress)


def as_numbers(returned: Any) -> Array:
    """Return what a statistic returned as an array.

    Examples
    --------
    >>> as_numbers(None)
    Traceback (most recent call last):
    TypeError: statistic must return a number or an array of numbers, got None
    """
    found = np.asarray(returned)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"statistic must return a number or an array of numbers, got {abbreviate(returned)}")
    return np.asarray(found, dtype=np.float64)


def as_clusters(groups: ArrayLike, n: int) -> Integers:
    """Return the number of the cluster of each row.

    Parameters
    ----------
    groups : array_like of shape (n,)
        Labels.
    n : int
        How many rows there are.

    Raises
    ------
    TypeError, ValueError
        As of `group_codes`, or if there is only one cluster.
    """
    code = group_codes(groups, n)
    if code.max() < 1:
        raise ValueError(
            f"groups has the one label {np.asarray(groups).tolist()[0]!r}; clusters are drawn as a whole, so give two "
            "or more"
        )
    return code


def _of_values(
    fit: LinearMap,
    there: LinearMap,
    value: Array,
    units: Integers | None,
    cluster: Integers | None,
    how: Resampling,
    seed: int,
) -> Iterator[Array]:
    """Yield fits of resampled outputs."""
    n, c = value.shape
    middle = fit.fit(value)
    there.look(value)
    if how.kind == "residual":
        if cluster is not None:
            raise ValueError("kind='residual' exchanges residuals between rows, and groups forbid it; use kind='wild'")
        residual = value - middle
        residual = residual - np.average(residual, axis=0, weights=units)
    else:
        residual = value - fit.predicted_from_others(value)
    kept = slice(None) if units is None else units > 0
    _warn_of_no_residuals(residual[kept], value[kept], how.kind)
    noise: Iterator[tuple[slice, Array]]
    if how.kind == "residual":
        size = n if units is None else int(units.sum())
        noise = (
            (block, np.stack([_exchanged(residual, units, seed, b, size) for b in _numbers(block)], axis=1))
            for block in draws.blocks(how.n_resamples, size * c)
        )
    else:
        noise = multiplied(residual, how.kind, seed, how.n_resamples, units=units, cluster=cluster)
    for block, moved in noise:
        columns = (middle[:, None, :] + moved).reshape(n, -1)
        yield from np.moveaxis(there.fit(columns).reshape(-1, _width(block), c), 1, 0)


def _warn_of_no_residuals(residual: Array, value: Array, kind: str) -> None:
    """Say that resamples which are all the same are no certainty."""
    none = np.flatnonzero(np.max(np.abs(residual), axis=0) <= nothing_left(value))
    if none.size:
        of = "" if value.shape[1] == 1 else f" of output {none[0]}"
        remedy = "; kind='wild' takes each row's residual from the others" if kind == "residual" else ""
        warn_caller(
            f"all residuals{of} are zero, so that every resample is the fit itself: these rows have no noise to judge "
            f"by, which is no certainty{remedy}",
            InferenceWarning,
        )


def _of_rows(
    there: LinearMap, value: Array, units: Integers | None, cluster: Integers | None, how: Resampling, seed: int
) -> Iterator[Array]:
    """Yield fits to resampled rows."""
    empty = 0
    if there.recipe.empty == "nearest":  # which leaves no NaN to count
        there.look(value)
    for number in range(how.n_resamples):
        times = resampled_counts(how.kind, seed, number, len(value), units, cluster)
        if times.any():
            weight, unit = in_unit(times.astype(np.float64))
            problem = replace(there.problem, key_weight=weight, weight_unit=unit, prepared=None)
            fit = replace(there, problem=problem).fit(value)
        else:
            fit = np.full((len(there.problem.query), value.shape[1]), np.nan)
        empty += bool(np.isnan(fit).any())
        yield fit
    if there.recipe.empty == "nan":
        warn_of_empty(empty, how, "use a larger bandwidth, or empty='nearest' or 'mean'")


def resampled_counts(
    kind: str, seed: int, number: int, rows: int, units: Integers | None = None, cluster: Integers | None = None
) -> Integers:
    """Draw how often rows count in a resample.

    Parameters
    ----------
    kind : {"pairs", "poisson"}
        As many as there are, with replacement, or independently of each other.
    seed, number : int
        Of all resamples, and of this one.
    rows : int
        How many.
    units : ndarray of int, shape (rows,), optional
        Unit rows that each stands for, each of which is drawn.
    cluster : ndarray of int, shape (rows,), optional
        Cluster of each row, which are drawn as a whole.

    Returns
    -------
    ndarray of int, shape (rows,)
        Frequencies.
    """
    size = rows if units is None else int(units.sum())
    size = size if cluster is None else int(cluster.max()) + 1
    if kind == "poisson":
        counts = draws.poisson_counts(seed, number, 0, size)
    else:
        counts = np.bincount(draws.drawn_rows(seed, number, size), minlength=size)
    if cluster is not None:
        return counts[cluster] if units is None else counts[cluster] * units
    return counts if units is None else draws.sums_of_units(counts, units)


def warn_of_empty(empty: int, how: Resampling, remedy: str) -> None:
    """Say once that windows of resamples hold no row."""
    if empty:
        warn_caller(
            f"in {empty} of {how.n_resamples} resamples some window has no row, and the fit there is NaN; {remedy}",
            EmptyWindowWarning,
        )


def _numbers(block: slice) -> range:
    return range(block.start, block.stop)


def _width(block: slice) -> int:
    return int(block.stop - block.start)


def _exchanged(residual: Array, units: Integers | None, seed: int, number: int, size: int) -> Array:
    """Return the residuals of drawn unit rows, in the mean over those that a row stands for."""
    row = draws.drawn_rows(seed, number, size)
    if units is None:
        return residual[row]
    return means_of_units(residual[np.repeat(np.arange(len(units)), units)[row]], units)
