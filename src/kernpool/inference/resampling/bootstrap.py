"""Bootstrap of a kernel fit without refitting: wild bootstrap of residuals, and resampled rows.

A fit is m(q) = sum_j l_j(q) y_j, and its linear weights do not depend on y. So resampled outputs are columns of
values that are pooled together, and resampled rows are frequencies: one sum each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.core import SINGLE_ROWS, EmptyWindowWarning, Units
from kernpool.execution import Progress, abbreviate, as_count, check_choice, warn_caller
from kernpool.inference.resampling import random_draws
from kernpool.inference.resampling.random_draws import LEAST_ROWS, means_of_units, multiplied
from kernpool.inference.variance.standard_errors import InferenceWarning
from kernpool.smoother import EvaluationPoints, Smoother, nothing_left

Statistic = Callable[[Array], Any]

KINDS = (*random_draws.MULTIPLIERS, "residual", "pairs")


def bootstrap(
    smoother: Smoother,
    at: EvaluationPoints | None = None,
    *,
    statistic: Statistic | None = None,
    n_resamples: int = 999,
    kind: str = "wild",
    units: Units = SINGLE_ROWS,
    random_state: Any = 0,
    max_bytes: int = 1 << 30,
    flat: bool = True,
    progress: Progress | None = None,
) -> Array:
    """Bootstrap a kernel fit to rows in memory: return the fit to each resample, or a statistic of the fit.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    at : EvaluationPoints, optional
        Where; by default at the training rows.
    statistic : callable, optional
        Takes a resampled fit of shape (m,) or (m, c), and returns a number or an array; by default the fit itself.
    n_resamples, kind, random_state, max_bytes
        As of the `bootstrap` of a regressor.
    units : Units, optional
        What is drawn as a whole; by default each row.
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
        If weights are not whole numbers, there are fewer than five rows or two units, or the result needs more than
        `max_bytes`.
    """
    check_choice("kind", kind, KINDS)
    as_count("n_resamples", n_resamples, hint=" such as 399")
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | float | np.number):
        raise TypeError(f"max_bytes must be a number of bytes such as 2**30, got {abbreviate(max_bytes)}")
    if statistic is not None and not callable(statistic):
        raise TypeError(
            f"statistic must take the fit of a resample and return numbers, got {abbreviate(statistic)}; such as "
            "lambda fit: fit.max()"
        )
    n, c = smoother.keys.value.shape
    places = smoother.training if at is None else at
    m = len(places.query)
    if statistic is None:
        _check_size(m * c, n_resamples, max_bytes)
    times = random_draws.unit_counts(smoother.weight, "the bootstrap")
    rows = n if times is None else int(times.sum())
    if rows < LEAST_ROWS:
        raise ValueError(f"the bootstrap needs at least {LEAST_ROWS} rows, got {rows}")
    units.refuse_few(smoother.weight, 2)
    fits = _of_rows if kind == "pairs" else partial(_of_values, kind=kind)
    shape, found = (m,) if flat and c == 1 else (m, c), None
    for number, drawn in enumerate(
        fits(smoother, places, times, units, n_resamples=n_resamples, seed=random_draws.as_seed(random_state))
    ):
        fit = drawn.reshape(shape)
        one = fit if statistic is None else as_numbers(statistic(fit))
        if found is None:
            _check_size(one.size, n_resamples, max_bytes)
            found = np.empty((n_resamples, *one.shape))
        if one.shape != found.shape[1:]:
            raise ValueError(
                f"statistic must return one shape for all resamples, got {one.shape} after {found.shape[1:]}"
            )
        found[number] = one
        if progress is not None:
            progress(number + 1, n_resamples)
    assert found is not None
    return found


def _check_size(size: int, n_resamples: int, max_bytes: float) -> None:
    """Raise ValueError if a result of `size` numbers per resample takes more than `max_bytes`."""
    needed = 8 * size * n_resamples
    if needed > max_bytes:
        raise ValueError(
            f"{n_resamples} resamples of {size} numbers each need {needed} bytes, more than max_bytes={max_bytes}; "
            "give a statistic that reduces each fit, fewer rows of X, or more bytes"
        )


def as_numbers(returned: Any) -> Array:
    """Convert what a statistic returned to an array of floats; raise TypeError if it is not numeric."""
    found = np.asarray(returned)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"statistic must return a number or an array of numbers, got {abbreviate(returned)}")
    return np.asarray(found, dtype=np.float64)


def _of_values(
    smoother: Smoother,
    places: EvaluationPoints,
    times: Integers | None,
    units: Units,
    *,
    kind: str,
    n_resamples: int,
    seed: int,
) -> Iterator[Array]:
    """Yield, for each resample of a wild or residual bootstrap, the fit to resampled outputs."""
    value = smoother.value
    n, c = value.shape
    middle = smoother.predict(smoother.problem(smoother.training))
    smoother.predict(smoother.problem(places), report=True)
    if kind == "residual":
        if units.code is not None:
            raise ValueError(
                f"kind='residual' exchanges residuals between rows, and these come in {units.plural}; use kind='wild'"
            )
        residual = value - middle
        residual = residual - np.average(residual, axis=0, weights=times)
    else:
        residual = value - predicted_from_others(smoother)
    kept = slice(None) if times is None else times > 0
    _warn_of_no_residuals(residual[kept], value[kept], kind)
    noise: Iterator[Array]
    if kind == "residual":
        size = n if times is None else int(times.sum())
        numbers = (range(block.start, block.stop) for block in random_draws.blocks(n_resamples, size * c))
        noise = (np.stack([_draw_residuals(residual, times, seed, b, size) for b in some], axis=1) for some in numbers)
    else:
        noise = (part for _, part in multiplied(residual, kind, seed, n_resamples, times=times, units=units))
    for moved in noise:
        columns = (middle[:, None, :] + moved).reshape(n, -1)
        yield from np.moveaxis(predicted(smoother, places, columns).reshape(-1, moved.shape[1], c), 1, 0)


def predicted(smoother: Smoother, places: EvaluationPoints, value: Array) -> Array:
    """Return fitted values at evaluation points for each column of outputs of the rows, of shape (m, columns)."""
    with_values = smoother.with_values(value)
    return with_values.predict(with_values.problem(places))


def predicted_from_others(smoother: Smoother) -> Array:
    """Return leave-one-out predictions at the rows; the mean of all others if none is in the kernel's support."""
    return smoother.fit_left_out(None).values("mean")[0]


def _warn_of_no_residuals(residual: Array, value: Array, kind: str) -> None:
    """Warn if all residuals of an output are zero but for rounding, so that every resample equals the fit."""
    none = np.flatnonzero(np.max(np.abs(residual), axis=0) <= nothing_left(value))
    if none.size:
        of = "" if value.shape[1] == 1 else f" of output {none[0]}"
        remedy = "; kind='wild' takes each row's residual from the others" if kind == "residual" else ""
        warn_caller(
            f"all residuals{of} are zero, so that every resample is the fit itself: these rows do not show the size of "
            f"the noise, which is no certainty{remedy}",
            InferenceWarning,
        )


def _of_rows(
    smoother: Smoother,
    places: EvaluationPoints,
    times: Integers | None,
    units: Units,
    *,
    n_resamples: int,
    seed: int,
) -> Iterator[Array]:
    """Yield, for each resample of a pairs bootstrap, the fit to resampled rows.

    NaN, of an empty window, is refused if the recipe says so, or warned of at the end.
    """
    recipe, (n, c) = smoother.recipe, smoother.keys.value.shape
    constant, remedy, empty = recipe.empty_value, "use a larger bandwidth, or empty='nearest' or 'mean'", 0
    if constant is None:  # which leaves no NaN to count
        smoother.predict(smoother.problem(places), report=True)
    for number in range(n_resamples):
        counts = resampled_counts(seed, number, n, times, units)
        if counts.any():
            drawn = smoother.with_weight(counts.astype(np.float64))
            fit = drawn.predict(drawn.problem(drawn.points(places.query, places.code)))  # in windows of its own
        else:  # only units of weight zero were drawn
            fit = np.full((len(places.query), c), np.nan if constant is None else constant)
        if np.isnan(fit).any():
            empty += 1
            if recipe.empty == "raise":
                raise ValueError(f"some windows of resample {number} have no row, and empty='raise'; {remedy}")
        yield fit
    if empty:
        warn_caller(
            f"in {empty} of {n_resamples} resamples some window has no row, and the fit there is NaN; {remedy}",
            EmptyWindowWarning,
        )


def resampled_counts(
    seed: int, number: int, rows: int, times: Integers | None = None, units: Units = SINGLE_ROWS
) -> Integers:
    """Draw how often each row occurs in one resample of a pairs bootstrap."""
    size = units.draws(rows if times is None else int(times.sum()))
    counts = np.bincount(random_draws.drawn_rows(seed, number, size), minlength=size)
    if units.code is not None:
        return counts[units.code] if times is None else counts[units.code] * times
    return counts if times is None else random_draws.sums_of_units(counts, times)


def _draw_residuals(residual: Array, units: Integers | None, seed: int, number: int, size: int) -> Array:
    """Draw residuals with replacement, one per unit of frequency weight, and return their mean for each row."""
    row = random_draws.drawn_rows(seed, number, size)
    if units is None:
        return residual[row]
    return means_of_units(residual[np.repeat(np.arange(len(units)), units)[row]], units)
