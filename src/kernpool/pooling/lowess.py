"""Lowess: robust local linear smoothing of a curve with nearest-neighbour windows (Cleveland 1979), in linear time."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.sweep.octaves import NearestWindows
from kernpool.core import EmptyWindowWarning
from kernpool.core.robust_weights import BISQUARE_SCALE, bisquare, least_scale
from kernpool.data.array_validation import as_array, as_real_array
from kernpool.data.columns import refuse_other_labels
from kernpool.execution.error_messages import abbreviate, as_count, check_choice, check_flag, explain_calls
from kernpool.execution.threads import resolve_n_jobs
from kernpool.execution.warnings import warn_caller


@explain_calls
@np.errstate(under="ignore")
def lowess(
    endog: ArrayLike,
    exog: ArrayLike,
    frac: float = 2 / 3,
    it: int = 3,
    delta: float = 0.0,
    xvals: ArrayLike | None = None,
    is_sorted: bool = False,
    missing: str = "drop",
    return_sorted: bool = True,
    *,
    n_jobs: int | None = None,
) -> Array:
    """Smooth a scatterplot by lowess: robust local linear fits to the nearest fraction of the rows.

    The signature, the conventions and the numbers are those of ``statsmodels.nonparametric.lowess``. Time is linear in
    the number of rows after sorting, where it is quadratic there, so no row has to be interpolated.

    Parameters
    ----------
    endog : array_like of shape (n,)
        Values of y.
    exog : array_like of shape (n,)
        Values of x, in any order.
    frac : float, default=2/3
        Fraction of the rows in each window: ``int(frac * n + 1e-10)`` rows, at least two.
    it : int, default=3
        Number of re-weightings by residuals. With 0 the fit is not robust.
    delta : float, default=0.0
        Accepted and without effect. Other implementations fit only rows at least this far apart and interpolate
        between them; here every row is fitted exactly.
    xvals : array_like of shape (m,), optional
        Points at which the curve is evaluated, with the weights of rows after `it` passes. By default the rows.
    is_sorted : bool, default=False
        Accepted and without effect: rows and points are sorted in any case.
    missing : {"drop", "raise", "none"}, default="drop"
        Rows with NaN or infinity are left out, or refused. With "none" there must be none either.
    return_sorted : bool, default=True
        Whether to return x and the fit, in ascending order of x and without the rows that were left out. Otherwise,
        and with `xvals`, the fit alone in the order of the arguments, with NaN at rows that were left out.
    n_jobs : int, optional
        Threads, as in `pool`; the result has the same bits for any number.

    Returns
    -------
    ndarray of shape (n, 2), (n,) or (m,)
        The fit. NaN at points of `xvals` between rows with less than two rows of weight above 1e-12 in their window,
        with an `EmptyWindowWarning`: points too far from all rows, or in a window of outliers.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid. The message says which, and the remedy.

    See Also
    --------
    LocalLinearRegressor : One bandwidth, chosen by cross-validation, with confidence and prediction intervals.

    Notes
    -----
    The window of a point x has k rows and the width s, the distance of the farthest of them. Row j has the weight
    ``(1 - |(x - x_j) / s|**3)**3``. After each pass this is multiplied by ``(1 - (e_j / (6 MAD))**2)**2``, or zero if
    ``|e_j| >= 6 MAD``, where e are the residuals and MAD is the median of their magnitudes.

    In four cases results differ from those of statsmodels on purpose. Where k rows or more coincide, the fit is the
    mean of all rows there, and not the first y. Where more than half of the rows are fitted exactly, MAD is zero up to
    rounding, and the other rows have no weight, with a warning. The slope is estimated however small the unit of x is.
    A row whose window has less than two weights gets its own y, as there, and so does a point of `xvals` at one row.

    References
    ----------
    Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots. Journal of the American
    Statistical Association 74, 829-836.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import lowess
    >>> x = np.arange(20.0)
    >>> y = 2.0 * x + np.sin(9.0 * x)
    >>> y[7] = 1000.0
    >>> robust = lowess(y, x, frac=0.5, xvals=[7.0, 12.5])
    >>> plain = lowess(y, x, frac=0.5, it=0, xvals=[7.0, 12.5])
    >>> robust.round(1).tolist(), plain.round(1).tolist()
    ([14.0, 25.0], [184.3, 25.0])
    """
    _check_options(frac, it, delta, missing, is_sorted=is_sorted, return_sorted=return_sorted)
    refuse_other_labels(exog=exog, endog=endog)
    threads = resolve_n_jobs(n_jobs)
    kept, y, x = _finite(missing, endog=endog, exog=exog)
    if not len(x):
        raise ValueError(f"exog must have at least one row without NaN and infinity, got none among {len(kept)}")
    order = np.argsort(x, kind="stable")
    curve = _Curve(x[order], y[order], min(max(int(frac * len(x) + 1e-10), 2), len(x)), threads)
    curve.reweigh(int(it))
    if xvals is not None:
        known, points = _finite(missing, xvals=xvals)
        order = np.argsort(points, kind="stable")
        return _in_place(curve.at(points[order]), order, known)
    fitted = curve.at_rows()
    return np.column_stack([x[order], fitted]) if return_sorted else _in_place(fitted, order, kept)


class _Curve:
    """Sorted rows and their windows, with the robustness weights of the last pass."""

    def __init__(self, x: Array, y: Array, k: int, n_jobs: int) -> None:
        self._x, self._k, self._n_jobs = x, k, n_jobs
        self._center = float(np.median(y))
        self._value = y - self._center
        self._weight = np.ones(len(x))
        is_first = np.append(True, x[1:] > x[:-1])  # equal rows have the same window
        self._windows, self._place = NearestWindows.prepare(x, x[is_first], k), np.cumsum(is_first) - 1

    def reweigh(self, it: int) -> None:
        """Give rows with large residuals less weight, `it` times."""
        has_scale, largest = True, float(np.abs(self._value).max())
        for _ in range(it):
            residual = np.abs(self._value - self._fit_rows())
            scale, least = BISQUARE_SCALE * float(np.median(residual)), least_scale(residual, largest)
            has_scale = scale > least
            self._weight = bisquare(residual, max(scale, least) or 1.0)
        if not has_scale and not self._weight.all():
            warn_caller(
                "more than half of the rows are fitted exactly, so their residuals have no scale, and the other "
                f"{np.count_nonzero(self._weight == 0.0)} rows have no weight; where these are no outliers use a "
                "larger frac, or it=0"
            )

    def at_rows(self) -> Array:
        """Return the fit at the rows."""
        return self._fit_rows() + self._center

    def at(self, points: Array) -> Array:
        """Return the fit at sorted points."""
        found = NearestWindows.prepare(self._x, points, self._k).fit(self._weight, self._value, self._n_jobs)
        row = np.searchsorted(self._x, points)
        is_row = np.searchsorted(self._x, points, side="right") - row == 1
        found = np.where(np.isnan(found) & is_row, self._value[np.minimum(row, len(self._x) - 1)], found)
        empty = np.isnan(found)
        if empty.any():
            warn_caller(
                f"{np.count_nonzero(empty)} of {len(points)} points of xvals, such as {points[empty][0]:g}, have less "
                "than two rows of positive weight in their window, so lowess is NaN there; evaluate it among the rows, "
                "or use a larger frac",
                EmptyWindowWarning,
            )
        return found + self._center

    def _fit_rows(self) -> Array:
        fitted = self._windows.fit(self._weight, self._value, self._n_jobs)[self._place]
        return np.where(np.isnan(fitted), self._value, fitted)


def _check_options(frac: float, it: int, delta: float, missing: str, *, is_sorted: bool, return_sorted: bool) -> None:
    if not isinstance(frac, Real) or isinstance(frac, bool) or not 0.0 <= frac <= 1.0:
        raise ValueError(f"frac must be a number from 0 to 1, the fraction of the rows, got {abbreviate(frac)}")
    as_count("it", it, 0, hint=", the number of re-weightings")
    if not isinstance(delta, Real) or isinstance(delta, bool) or not delta >= 0.0:
        raise ValueError(
            f"delta must be a number, 0 or more, got {abbreviate(delta)}; leave it out: all rows are fitted exactly"
        )
    check_choice("missing", missing, ["drop", "raise", "none"])
    check_flag("is_sorted", is_sorted)
    check_flag("return_sorted", return_sorted)


def _finite(missing: str, **given: ArrayLike) -> tuple[Any, ...]:
    """Return which rows of some vectors are finite, and the vectors without the others.

    Raise ValueError if there are others and `missing` does not drop them, or if squares of entries would overflow.
    """
    columns = {name: _vector(name, column) for name, column in given.items()}
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        raise ValueError(f"{' and '.join(given)} must have one entry per row each, got {lengths}")
    finite = np.logical_and.reduce([np.isfinite(column) for column in columns.values()])
    if missing != "drop" and not finite.all():
        row = int(np.argmin(finite))
        name = next(name for name, column in columns.items() if not np.isfinite(column[row]))
        raise ValueError(
            f"{name} holds {columns[name][row]} at index {row}, and missing={missing!r} allows no such entries; use "
            "missing='drop' to leave them out"
        )
    return finite, *(as_real_array(name, column[finite]).astype(np.float64) for name, column in columns.items())


def _vector(name: str, given: ArrayLike) -> Array:
    """Return a vector of floats, in which NaN and infinity are allowed."""
    read = as_array(name, given)
    if read.dtype.kind != "f":
        read = as_real_array(name, given)
    if read.ndim != 1:
        raise ValueError(f"{name} must be a vector, got shape {read.shape}; pass one column, as in {name}.ravel()")
    return read.astype(np.float64)


def _in_place(fitted: Array, order: Index, kept: Flags) -> Array:
    """Return sorted fits in the order of the arguments, with NaN for rows that were left out."""
    out = np.full(len(kept), np.nan)
    out[np.flatnonzero(kept)[order]] = fitted
    return out
