"""Coefficients of columns that are linear next to a curve, from leave-one-out residuals (Robinson 1988).

With residuals R of the columns and r of y, each less its leave-one-out smooth of the other columns, and weights w::

    b = (R'WR)^-1 R'Wr,    e = r - Rb,    V = n / (n - p - tr S) sum_i w_i d_i d_i',    d_i = b - b_(-i)

where b_(-i) is b without a unit of row i: HC3; NaN where a coefficient rests on one row or cluster. With clusters d is
of a whole cluster; in an order products of d up to twice the gap apart count, tapered as Newey and West have it. The
bandwidth of y depends on what x adds to it: so there is a second step, in which r is of y - xb, and b what is added to
b. S is the hat matrix of the smooth of y - xb at the last b, whose trace is at most half of the rows here: residuals of
fits that pass through their rows are of their neighbours already.

Of 200 samples of 60 rows, 95 percent intervals from residuals of fits that contain the row cover 83 in a hundred: a
row that is part of its own smooth shrinks its residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.ndimage import convolve1d
from scipy.special import stdtr, stdtrit

from kernpool._arrays import Array
from kernpool.core import Exclusion
from kernpool.execution import PrintedResult, frame_of
from kernpool.execution.text_table import columns_of_text, digits_beside
from kernpool.inference.variance.dependent_rows import LAGS, sums_of_places

# Least norm of a column beyond what others explain, in its own: of numbers, and of residuals of smooths. Those of
# 60 rows of z^2, exp(3z) and sin(6z) have .001, .0014 and .007, all of it bias.
EXACT, SMOOTH = 1e-8, 1e-2
EQUIVALENT = 1.5  # degrees of freedom of Bartlett's weights, in rows over lags


class Tested:
    """Mixin of coefficients with standard errors and degrees of freedom: t statistics and p-values."""

    coef: Array
    standard_error: Array
    df: Any

    @property
    def _center(self) -> Array:
        return self.coef

    @property
    def statistic(self) -> Array:
        """The t statistics: coefficients, or centers of their intervals, over their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self._center / self.standard_error)

    @property
    def p_value(self) -> Array:
        """Two-sided p-values of the hypotheses that a coefficient is zero."""
        return np.asarray(2.0 * stdtr(self.df, -np.abs(self.statistic.T)).T)


@dataclass(frozen=True, eq=False)
class Coefficients(Tested, PrintedResult):
    """Coefficients with standard errors, tests of zero and confidence intervals; prints as a regression table.

    Parameters
    ----------
    names : tuple of str
        Columns; of a category the column and the level, as in ``region[north]``.
    coef, standard_error, lower, upper : ndarray of shape (p,)
        Coefficients, their standard errors, and the limits of their intervals.
    covariance : ndarray of shape (p, p)
        Their covariance matrix.
    df : float
        Degrees of freedom of Student's t.
    level : float
        Confidence level.
    """

    names: tuple[str, ...]
    coef: Array
    standard_error: Array
    lower: Array
    upper: Array
    covariance: Array
    df: float
    level: float

    @classmethod
    def of(cls, names: Sequence[str], coef: Array, covariance: Array, df: float, level: float) -> Coefficients:
        """Return the table of coefficients with this covariance."""
        error = np.sqrt(np.diagonal(covariance))
        half = -stdtrit(df, 0.5 * (1.0 - level)) * error
        return cls(tuple(names), coef.copy(), error, coef - half, coef + half, covariance.copy(), df, level)

    def to_frame(self) -> Any:
        """Return the table as a frame of pandas, with a row for each coefficient.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {"coef": self.coef, "se": self.standard_error, "t": self.statistic, "p": self.p_value}
        return frame_of(columns | {"lower": self.lower, "upper": self.upper}, list(self.names))

    def lines(self) -> list[str]:
        """Return the lines of the printed table."""
        rows = []
        for i, name in enumerate(self.names):
            digits = digits_beside(self.coef[i], self.standard_error[i])
            ends = (f"{end:.{digits}g}" for end in (self.lower[i], self.upper[i]))
            cells = f"{self.standard_error[i]:.3g}", f"{self.statistic[i]:z.2f}", f"{self.p_value[i]:.3f}"
            rows.append([name, f"{self.coef[i]:.{digits}g}", *cells, *ends])
        tail = 0.5 * (1.0 - self.level)
        names = ["", "coef", "std err", "t", "P>|t|", f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]
        unknown = ["", "nan: a coefficient rests on one row or cluster, or on rows that repeat"]
        return columns_of_text(names, rows) + unknown * bool(np.any(np.isnan(self.standard_error)))

    def __str__(self) -> str:
        return "\n".join([*self.lines(), "", f"t with {self.df:.4g} degrees of freedom"])


def refuse_dependent(columns: Array, size: Array, names: Sequence[str], least: float) -> None:
    """Raise ValueError if a column is a combination of others, up to `least` of the norms `size` of columns."""
    triangle, order = qr(columns / np.where(size > 0, size, 1.0), mode="r", pivoting=True, check_finite=False)
    left = np.abs(np.diagonal(triangle))
    if not np.all(left > least):
        name = names[order[np.count_nonzero(left > least)]]
        raise ValueError(
            f"linear column {name!r} has no coefficient: it is constant, a function of the columns of the curve (all "
            "are where rows repeat), a combination of other linear columns, or a category that does not occur; leave "
            "it out of X, or the category out of the levels, or drop repeated rows"
        )


def coefficients_of(residual: Array, of_columns: Array, weight: Array) -> Array:
    """Return the coefficients of residuals of y, of shape (n,), on those of the columns, of shape (n, p)."""
    root = np.sqrt(weight)
    return np.asarray(np.linalg.lstsq(of_columns * root[:, None], residual * root, rcond=None)[0])


def freedom_of(rows: float, p: int, trace: float) -> float:
    """Return the degrees of freedom beyond p coefficients and a smooth; raise ValueError if there are none."""
    df = rows - p - min(trace, 0.5 * rows)
    if not df > 1.0:
        raise ValueError(
            f"{p} coefficients and a smooth of {trace:.4g} effective parameters leave no degrees of freedom of "
            f"{rows:g} sample{'s' * (rows != 1)}; fit more rows, or fewer linear columns"
        )
    return df


def covariance_of(
    error: Array, of_columns: Array, weight: Array, df: float, exclusion: Exclusion | None
) -> tuple[Array, float]:
    """Return the covariance of coefficients, and its degrees of freedom.

    Parameters
    ----------
    error : ndarray of shape (n,)
        Residuals of y less those of the columns times the coefficients.
    of_columns : ndarray of shape (n, p)
        Residuals of the columns.
    weight : ndarray of shape (n,)
        Frequencies.
    df : float
        Degrees of freedom of the residuals.
    exclusion : Exclusion or None
        Which rows are left out together.
    """
    p, factor = of_columns.shape[1], weight.sum() / df
    triangle = np.linalg.qr(of_columns * np.sqrt(weight)[:, None], mode="r")
    unit = solve_triangular(triangle, of_columns.T, trans="T").T  # rows of an orthonormal basis, over root weights
    if exclusion is not None and not exclusion.gap:
        products = (unit[:, :, None] * unit[:, None, :]).reshape(len(unit), -1)
        terms = weight[:, None] * np.concatenate([unit * error[:, None], products], axis=1)
        count, sums = sums_of_places(exclusion, weight, terms)
        left = np.eye(p) - sums[:, p:].reshape(-1, p, p)
        left[np.linalg.det(left) <= EXACT] = np.nan
        away = np.linalg.solve(left, sums[:, :p, None])[:, :, 0]
        df, middle = min(df, np.count_nonzero(count) - 1.0), away.T @ away
    else:
        kept = 1.0 - np.sum(unit**2, axis=1)
        away = unit * (error / np.where(kept > EXACT, kept, np.nan))[:, None]
        middle = (away * weight[:, None]).T @ away
        if exclusion is not None:
            sums = sums_of_places(exclusion, weight, weight[:, None] * away)[1]
            lags = min(LAGS * exclusion.gap, len(sums) - 1)
            middle = sums.T @ convolve1d(sums, np.bartlett(2 * lags + 3), axis=0, mode="constant")
            # Sun, Econometric Theory 30 (2014): the variance of sums of so many lags is itself an estimate.
            df = min(df, EQUIVALENT * len(sums) / (lags + 1.0))
    half = solve_triangular(triangle, middle, check_finite=False)
    return np.asarray(factor * solve_triangular(triangle, half.T, check_finite=False)), df
