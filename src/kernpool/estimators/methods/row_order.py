"""Order of the training rows, by time or by their only column, and a test whether their noise is correlated along it.

Where noise is correlated, as in most series, leave-one-out predicts a row from the noise that it shares with its
neighbours: narrow windows look best, and the curve follows the noise. The test takes residuals at a pilot bandwidth h0
that averages over such noise, in the order of the rows::

    c_k = sum_t r_t r_(t+k) / sum_t r_t^2,    b = max(0, a parabola through c_4 to c_12, at lag 1)
    rho = (c_1 - b) / (1 - b),    warn if  rho > max(1.8 / sqrt(n) - 2 w, 0.06)

The bias of the pilot is smooth along the rows: its share b of the residuals is correlated over many rows, noise over a
few. Without b, and with planes for quadratics, nearly every sample of 10 sin(10 x) with noise of 1 was warned of.

Residuals of narrow windows are correlated less than noise, by twice the mean weight w of a neighbour: with the
same critical value for wide windows 12 percent of flat curves were warned of, 15 of exponential and 10 of lognormal
columns (now 2, 2 and 5 of 60 samples), with no more power.

Pilots are local quadratics where there is one column. Their bandwidth is that of the fit, but at least 0.05 of the
range of a column for 200 rows or fewer, and so many rows for more. Of 60 to 200 samples of 200 rows, 2 to 3 percent are
warned of with independent noise, of .4 around a sine and of 1 around 10 sin(10 x), 97 percent with a correlation of .3
and all with one of .6. A curve that bends within ten rows cannot be told from noise: sin(20 x) with noise of .1 is
warned of in a quarter of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Codes, Index
from kernpool.bandwidth import canonical_ratio
from kernpool.bandwidth.criteria import JUDGED_ROWS, lies_within_gap
from kernpool.core import Exclusion, Keys
from kernpool.data import is_frame, label_codes
from kernpool.estimators.limits import smoother_of
from kernpool.estimators.model import FittedModel
from kernpool.execution import abbreviate, warn_caller
from kernpool.execution.warnings import SerialCorrelationWarning
from kernpool.pooling import Nearest, Recipe, weight_rows
from kernpool.smoother import Smoother, nothing_left

SCREEN = 0.85  # of rho times the root of the number of places, by the residuals of the fit; pilots decide
# Of rho of a pilot, times the root of the number of places, and how much the weight of neighbours in means lowers rho:
# 1.5 times as large in quadratics, and twice that, less what fits of neighbours share.
CRITICAL, LOWERED = 1.8, 2.0
LEAST = 0.06  # correlation that matters
FEWEST_PLACES = 50
PILOT, PILOT_ROWS = 0.05, 200
MOST_ROWS = 5000  # next to each other, whose residuals are tested
FAR_LAGS, LARGEST_SHARE_OF_BIAS = range(4, 13), 0.9
# Weights by which a parabola without linear term, fitted to correlations at these lags, is taken at lag one.
AT_LAG_ONE = np.array([1.0, 1.0]) @ np.linalg.pinv(
    np.vander(np.square(FAR_LAGS), 2, increasing=True).astype(np.float64)
)
EXACT = 0.02  # of the pilot's squared error: of rows that neighbours predict so well the curve is known, not the noise
NOISELESS = 1e-3  # of the variance of y, in the residuals of a pilot: what is left is bias at the ends
LEFT = 0.02  # correlation with the nearest row beyond the gap
LEAST_GAP = 5  # with a correlation of .3 the error is .014 with gaps of 3 places, .0126 with 5 and .0122 with 10
LARGEST_SHARE = 10  # one part in so many of all places


def exclusion_of(
    model: FittedModel, X: Any, key: AnyArray, groups: Any, time: Any
) -> tuple[Exclusion | None, Codes | None]:
    """Return which training rows are left out together, and their places in the order of `time`, or of the only column.

    Parameters
    ----------
    model : estimator
        Its gap and its encoding.
    X : object
        Training rows as they came.
    key : ndarray of shape (n, d)
        Numeric columns of the training rows.
    groups, time : object
        Groups and times of the rows, or None; times may be the name of a column of X.

    Returns
    -------
    Exclusion or None
        None if each row is left out alone.
    ndarray of int64, shape (n,), or None
        None where neither a time nor a gap is given.

    Raises
    ------
    ValueError
        If there is a gap and no order, or groups as well; or times are missing, or no column of X.
    TypeError
        If times cannot be sorted, or are a name and X is no frame.
    """
    gap, rows = model.gap, len(key)
    if groups is not None:
        if gap or time is not None:
            raise ValueError(
                f"groups= leaves whole clusters out and {f'gap={gap}' if gap else 'time='} rows next to each other, "
                "and one fit does one of them; leave one out"
            )
        return Exclusion.of_groups(groups, rows), None
    if isinstance(time, str):
        if not is_frame(X):
            raise TypeError(f"time={time!r} names a column, and X is no frame; pass the times of the rows")
        try:
            time = X[time]
        except (KeyError, ValueError, LookupError):
            raise ValueError(f"time={time!r} is no column of X; name one, or pass the times of the rows") from None
    if time is not None:
        cells = np.asarray(time)
        if cells.dtype.kind in "US" or (
            cells.dtype.kind == "O" and any(isinstance(t, str | bytes) for t in cells.flat)
        ):
            raise TypeError(
                "time must hold numbers or dates, got text, whose order is that of the alphabet: '10' is before '9'; "
                "convert it, as pandas.to_datetime does"
            )
        place = label_codes(time, rows, "time")
    elif not gap:
        return None, None
    elif is_ordered(model):
        place = label_codes(key[:, 0], rows, "X")
    else:
        columns = "categorical ones" if model.encoding_.categorical else key.shape[1]
        raise ValueError(
            f"gap={gap} needs an order of the rows, which a single numeric column is, and columns to "
            f"smooth in are: {columns}; pass the times of the rows, fit(X, y, time=times)"
        )
    return Exclusion(place, gap) if gap else None, place


def is_ordered(model: FittedModel) -> bool:
    """Return whether the inputs are a single column of numbers or dates."""
    encoding = model.encoding_
    return len(encoding.numeric) == 1 and not encoding.categorical


def warn_of_correlated_noise(model: FittedModel, place: Codes | None) -> None:
    """Warn if leave-one-out found the bandwidth, and residuals next to each other in the order of rows are correlated.

    With a gap, warn if windows lie within it: a search does not find such ones.

    Parameters
    ----------
    model : estimator
        Just fitted.
    place : ndarray of int64, shape (n,), or None
        Places of its rows in an order, from `exclusion_of`.
    """
    if model.gap:
        smoother = smoother_of(model)
        if lies_within_gap(smoother.left_out_problem(smoother.exclusion)):
            warn_caller(
                f"windows with bandwidth={abbreviate(model.bandwidth)} lie within gap={model.gap}: at most a twentieth "
                "of their weight is of other rows, by which leave-one-out errors, standard errors and intervals judge "
                "them; use a larger bandwidth, or a smaller gap",
                SerialCorrelationWarning,
            )
        return
    searched = isinstance(model.bandwidth, str) and hasattr(model, "loo_error_")
    if model.exclusion_ is not None or not searched or not (place is not None or is_ordered(model)):
        return
    timed = place is not None
    if place is None:
        place = np.unique(model.key_[:, 0], return_inverse=True)[1]
    rho, usual = lag_one_correlation(model, place, by_column=not timed)
    if not rho:
        return
    gap = named_gap(rho, len(np.unique(place[smoother_of(model).weight > 0])))
    names = model.encoding_.names
    order = "time" if timed else "X" if names is None else abbreviate(str(names[0]))
    warn_caller(
        f"residuals of rows next to each other in the order of {order} are correlated: lag-one correlation {rho:.2g}, "
        f"of independent noise up to {usual:.2g}. Leave-one-out predicts a row from noise that it shares with these, "
        f"and finds bandwidths that are too small; fit with gap={gap}, which leaves out {gap} places on either side as "
        "well, or with groups= where rows come in clusters",
        SerialCorrelationWarning,
    )


def named_gap(rho: float, places: int) -> int:
    """Return the gap beyond which noise of a lag-one correlation is correlated little, if it decays geometrically.

    Examples
    --------
    >>> [named_gap(rho, 200) for rho in (0.1, 0.3, 0.6, 0.99)]
    [5, 5, 8, 20]
    """
    enough = math.ceil(math.log(LEFT) / math.log(min(rho, 0.99)))
    return max(1, min(max(enough, LEAST_GAP), places // LARGEST_SHARE))


def lag_one_correlation(model: FittedModel, place: Codes, *, by_column: bool) -> tuple[float, float]:
    """Return the lag-one correlation of pilot residuals along the order of rows, and the largest of independent noise.

    Residuals of rows that share a place are averaged, and correlations of several outputs. Zero where there are too few
    places, or no correlation that matters. Of a single column without times there are two pilots, in units of the
    column and in ranks, and the correlation is the smaller one: where rows are denser here than there, either may miss
    bends of the curve, whose residuals are correlated as well. Where windows of the fit are as wide as those of a pilot
    its own residuals, which intervals take too, come first: mostly they are not correlated, and there are no pilots.
    """
    smoother = smoother_of(model)
    (kept,) = np.nonzero(smoother.weight > 0)
    kept = kept[np.argsort(place[kept], kind="stable")]
    kept = kept[max(0, len(kept) - MOST_ROWS) // 2 :][:MOST_ROWS]
    place = np.cumsum(np.append(0, np.diff(place[kept]) > 0))
    starts = np.searchsorted(place, np.arange(place[-1] + 1))
    if len(starts) < FEWEST_PLACES:
        return 0.0, 1.0
    rows = replace(
        smoother,
        keys=Keys.read(smoother.keys.rows.array[kept], smoother.value[kept], smoother.weight[kept]),
        key_code=None if smoother.key_code is None else smoother.key_code[kept],
        exclusion=None,
        window="fixed",
    )
    rho, least = 1.0, max(SCREEN / math.sqrt(len(starts)), LEAST)
    is_nearest = isinstance(smoother.window, Nearest)
    for pilot in _pilots(rows, place if by_column else None, only_ratios=is_nearest):
        own = pilot is rows and len(kept) == len(smoother.weight)
        if own:
            left_out = smoother.left_out[0][kept]
        else:
            fitted = pilot.fit_left_out(None)
            left_out = fitted.values()[0]
            some = np.unique(np.linspace(0, len(place) - 1, JUDGED_ROWS).astype(np.intp))
            weight = np.concatenate([rows for _, rows in weight_rows(fitted.problem.block(some))])
            next_to = place == place[some, None] + 1  # in the order, which in the columns may be far away
            near = float(np.mean(np.sum(weight * next_to, axis=1)))
            least = max(CRITICAL / math.sqrt(len(starts)) - LOWERED * near, LEAST)
        rho = min(rho, _correlation(pilot, left_out, starts, model.loo_error_))
        if not rho > least:
            return 0.0, least
    return rho, least


def _pilots(rows: Smoother, place: Codes | None, *, only_ratios: bool) -> Iterator[Smoother]:
    """Yield the smoothers whose residuals are tested; the last one, in ranks, if there are places by the column.

    Where windows reach to a number of rows, bandwidths are only ratios of columns, and no widths.
    """
    key, recipe = rows.keys.rows.array, rows.recipe
    least = PILOT * min(1.0, PILOT_ROWS / len(key))
    low, high = np.quantile(key, [0.25, 0.75], axis=0)
    extent = np.ptp(key, axis=0).astype(np.float64)
    found = np.zeros(key.shape[1]) if only_ratios else recipe.bandwidth
    h = np.maximum(found, canonical_ratio(recipe.kernel) * least * np.minimum(extent, 2.0 * (high - low)))
    h = np.where(h > 0, h, recipe.bandwidth)  # of a column with most rows at one place
    if np.all(h == found):
        yield rows
    pilot = replace(rows, recipe=replace(recipe, bandwidth=h))
    yield pilot.of_degree(2) if pilot.columns == 1 else pilot  # bias correlates residuals
    if place is not None:
        of_range = float(found[0] / canonical_ratio(recipe.kernel) / extent[0]) if extent[0] else 1.0
        ranks = Recipe.of(bandwidth=max(least, of_range), degree=2)
        yield Smoother(Keys.read(place[:, None] / float(place[-1]), rows.value, rows.weight), ranks)


def _correlation(pilot: Smoother, left_out: Array, starts: Index, error: float) -> float:
    """Return the lag-one correlation of leave-one-out residuals of rows in their order, averaged where places start."""
    residual, weight = pilot.value - left_out, pilot.weight[:, None]
    squares, spread = (
        float(np.average(np.sum(one**2, axis=1), weights=pilot.weight))
        for one in (residual, pilot.value - np.average(pilot.value, axis=0, weights=pilot.weight))
    )
    if error < EXACT * squares or squares < NOISELESS * spread:
        return 0.0
    mean = np.add.reduceat(weight * residual, starts) / np.add.reduceat(weight, starts)
    mean -= mean.mean(axis=0)
    square = np.sum(mean**2, axis=0)
    noisy = square > len(starts) * nothing_left(pilot.value) ** 2
    near, *others = (np.sum(mean[lag:] * mean[:-lag], axis=0)[noisy] / square[noisy] for lag in (1, *FAR_LAGS))
    of_bias = np.maximum(AT_LAG_ONE @ np.asarray(others), 0.0)
    known = of_bias < LARGEST_SHARE_OF_BIAS  # beyond, the residuals say little of the noise
    return float(np.sum((near - of_bias)[known] / (1.0 - of_bias)[known])) / len(square)
