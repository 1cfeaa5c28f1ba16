r"""New rows that lie elsewhere than the rows that calibrate: order statistics weighed by likelihood ratios.

With :math:`w = dP_{\text{new}} / dP_{\text{training}}` of X, rows of weights :math:`w(X_i)` and the new row, of weight
w(x) and of a score that nobody knows, are exchangeable in a weighted sense (Tibshirani, Barber, Candes and Ramdas,
"Conformal prediction under covariate shift", NeurIPS 32 (2019), Corollary 1). The score that ends the interval at x is

.. math:: Q(x) = \min\Big\{ s : \sum_{i:\, s_i \le s} w(X_i) \ge (1 - \alpha) \Big( \sum_i w(X_i) + w(x) \Big) \Big\},

infinite where the new row counts too much. Scores are sorted once, O(n log n + m log n).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.ranks import SLACK, upper_rank, upper_statistic
from kernpool.conformal.setting import Setting
from kernpool.data.checks import refuse_foreign

Array = NDArray[np.float64]

FORM = (
    "weights must be a function of X that returns a likelihood ratio for each row, such as density_ratio(X_train, "
    "X_new), or a pair of arrays: the ratios of the rows that calibrate, and those of the rows of X"
)

BEYOND = (
    "they count for more than the rows that calibrate leave room for at this level, since too few of these lie where "
    "they do; calibrate with rows from there, or ask for a lower level"
)


def weighted_upper(score: Array, weight: Array, extra: Array, level: Fraction) -> Array:
    """Return the score at which a share of all weights is reached, for each weight at infinity.

    Parameters
    ----------
    score : ndarray of shape (n,)
        Without NaN.
    weight : ndarray of shape (n,)
        Non-negative, not all zero.
    extra : ndarray of shape (m,)
        Non-negative, may be infinite.
    level : Fraction
        The share.

    Returns
    -------
    ndarray of shape (m,)
        Infinite where the weights of all scores are not enough.

    Examples
    --------
    >>> weighted_upper(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]), np.array([0.0, 1.0, 9.0]), Fraction(1, 2))
    array([ 1.,  2., inf])
    """
    order = np.argsort(score, kind="stable")
    largest = weight.max()  # in whose unit no sum overflows
    sums = np.cumsum(weight[order] / largest)
    with np.errstate(over="ignore"):
        need = float(level) * (sums[-1] + extra / largest) * (1.0 - SLACK)
    place = np.searchsorted(sums, need, side="left")
    return np.asarray(np.append(score[order], np.inf)[place])


def upper_at_places(setting: Setting, score: Array, places: NDArray[np.intp]) -> Array:
    """Return the order statistic that ends the interval at each place, of other scores at each; shifted or not.

    Parameters
    ----------
    setting : Setting
        With the level, and the rows that calibrate.
    score : ndarray of shape (k, n)
        Without NaN.
    places : ndarray of int, shape (k,)
        Which places these are.

    Returns
    -------
    ndarray of shape (k,)
        Infinite if there are too few rows, or the place counts for too much.
    """
    calibration, level = setting.calibration, setting.level
    if calibration.shift is None or calibration.place_shift is None:
        return upper_statistic(score, calibration.unit_weight, upper_rank(level, calibration.rows))
    weight, extra = in_unit(calibration.weight, calibration.shift, calibration.place_shift[places])
    return np.array(
        [weighted_upper(row, weight, own, level)[0] for row, own in zip(score, extra[:, None], strict=True)]
    )


def upper_scores(score: Array, weight: Array, shift: Array, place_shift: Array, level: Fraction) -> Array:
    """Return the score that ends the interval at each place, under a shift.

    Parameters
    ----------
    score : ndarray of shape (n, c)
        Of the rows that calibrate, one output after the other.
    weight : ndarray of shape (n,)
        Their frequencies.
    shift, place_shift : ndarray of shape (n,) and (m,)
        Likelihood ratios of these rows and of the places.
    level : Fraction
        Of the intervals.

    Returns
    -------
    ndarray of shape (m, c)
        Infinite where the new row counts for more than the level leaves room for.
    """
    columns = [weighted_upper(column, *in_unit(weight, shift, place_shift), level) for column in score.T]
    return np.stack(columns, axis=1)


def in_unit(weight: Array, shift: Array, place_shift: Array) -> tuple[Array, Array]:
    """Return the weights of rows and of places with the largest ratio of a row as their unit: no product overflows."""
    largest = shift.max()
    with np.errstate(over="ignore"):
        return weight * (shift / largest), place_shift / largest


def read_weights(
    weights: Any,
    rows: Callable[[], Any],
    places: Any,
    counts: tuple[int, int],
    which: NDArray[np.intp] | None = None,
) -> tuple[Array, Array]:
    """Read likelihood ratios of the rows that calibrate and of the places.

    Parameters
    ----------
    weights : callable, or pair of array_like
        What the caller passed.
    rows : callable
        Returns the rows that calibrate, in the form that the caller has them in; asked for only if `weights` is a
        function of them.
    places : array_like
        X as it came.
    counts : tuple of int
        How many such rows and how many places there are.
    which : ndarray of int, shape (n,), or None
        Which of the rows calibrate; None for all.

    Returns
    -------
    shift, place_shift : ndarray of shape (n,) and (m,)
        Non-negative, those of the rows finite and not all zero.

    Raises
    ------
    TypeError
        If `weights` is neither.
    ValueError
        If ratios are of another number, negative, NaN, or all zero.
    """
    if callable(weights):
        pair = weights(rows()), weights(places)
    elif isinstance(weights, tuple | list) and len(weights) == 2:
        pair = weights[0], weights[1]
    else:
        found = f"an array of shape {weights.shape}" if isinstance(weights, np.ndarray) else type(weights).__name__
        raise TypeError(f"{FORM}; got {found}")
    shift = _as_ratios(pair[0], counts[0], "rows that calibrate")
    place_shift = _as_ratios(pair[1], counts[1], "rows of X")
    shift = shift if which is None else shift[which]
    if not np.all(np.isfinite(shift)):
        raise ValueError(
            "weights of the rows that calibrate must be finite, and one of them is infinite: it would be the only row "
            "that counts; clip the ratios"
        )
    if not shift.any():
        raise ValueError(
            "weights of the rows that calibrate are all zero: none of them lies where new rows do, and nothing can be "
            "said of these"
        )
    return shift, place_shift


def _as_ratios(given: Any, count: int, what: str) -> Array:
    refuse_foreign("weights", given)
    try:
        ratio = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights of the {what} must be numbers, got {type(given).__name__}; {FORM}") from None
    if ratio.shape != (count,):
        raise ValueError(f"weights of the {what} must be one per row, {count}, got shape {ratio.shape}; {FORM}")
    if not np.all(ratio >= 0):
        wrong = ratio[~(ratio >= 0)][0]
        raise ValueError(
            f"weights of the {what} must not be negative or NaN, got {wrong}; they are ratios of densities, up to a "
            "factor that all have in common"
        )
    return ratio
