"""`Interval`: intervals at evaluation points, of a curve, its slopes, new values, quantiles or class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.execution.error_messages import explain_calls
from kernpool.execution.text_table import ROWS, PrintedResult, digits_beside, frame_of, listed, names_of, printed_table

BAND = {
    None: "pointwise",
    "tube": "simultaneous for the whole curve, by the tube formula",
    "multiplier": "simultaneous at all points, by the multiplier bootstrap",
}
CENTER = {"robust": "bias-corrected", "quadratic": "bias-corrected", "wilson": "undersmoothed"}


@explain_calls
@dataclass(frozen=True, eq=False)  # arrays have no single truth
class Interval(PrintedResult):
    """Intervals at m points: of a curve, its slopes, new values of y, quantiles or class probabilities.

    Parameters
    ----------
    center : ndarray of shape (m,) or (m, ...)
        Center: bias-corrected for the robust method, which differs from `predict`; the prediction of intervals for new
        values; a quantile; or pooled labels, the relative frequencies of classes without mixing in the priors.
    lower, upper : ndarray, as center
        Limits. NaN where a window is empty; infinite where rows bound neither a quantile nor a new value.
    level : float
        Confidence level, or nominal coverage of new values: of each interval, or of the whole band.
    method : str
        Name of the method.
    standard_error : ndarray, as center, optional
        Standard error of the center.
    df : ndarray of shape (m,) or (m, d), optional
        Degrees of freedom of the standard error, for Student's quantile; those of slopes may differ.
    critical : float or ndarray, optional
        Critical value of a band, in standard errors as if these were known: one number, or one for each column of the
        center where they differ; None for pointwise intervals.
    band : {"tube", "multiplier"}, optional
        Method of a band's critical value; None for pointwise intervals.
    axes : tuple of str, default=("output",)
        Meaning of the axes of the center after the first: ``"column"`` of slopes, ``"output"``, ``"class"`` or
        ``"quantile"``.
    labels : ndarray, optional
        Classes, or orders of the quantiles: names along the last axis, by default its indices.
    effective_rows : ndarray, optional
        Effective sample size of the windows (column ``n_eff``), of all points or of those of the printed table: near 1
        an interval rests on one row. `Prediction.effective_sample_size` has it for all points.
    first_predictions : ndarray, optional
        What `predict` returns at the first points, those of the printed table.
    guarantee : str, default=""
        Coverage statement for new values, one sentence.
    n_calibration : float, optional
        Number of calibration rows in unit rows (a row of weight 3 is three), or of clusters.
    units : {"rows", "clusters"}
        Unit of `n_calibration`.
    index : optional
        Labels of the points, those of a frame of pandas.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> found = model.confidence_interval([[1.0], [2.5]])
    >>> bool((found.lower < found.center).all() and (found.center < found.upper).all())
    True
    >>> print(found)
    points    2
    level     0.95, pointwise
    method    robust
    <BLANKLINE>
      point  predict  bias-corrected  lower  upper  se     df    n_eff
      0      2.323    2.275           1.57   2.979  0.32   11    3.91
      1      3.286    3.313           2.418  4.207  0.421  15.3  5.29
    """

    center: Array
    lower: Array
    upper: Array
    level: float
    method: str
    standard_error: Array | None = None
    df: Array | None = None
    critical: float | Array | None = None
    band: str | None = None
    axes: tuple[str, ...] = ("output",)
    labels: AnyArray | None = None
    effective_rows: Array | None = None
    first_predictions: Array | None = None
    guarantee: str = ""
    n_calibration: float | None = None
    units: str = "rows"
    index: Any = None

    @property
    def width(self) -> Array:
        """Widths of the intervals: upper limit minus lower limit."""
        return self.upper - self.lower

    def to_frame(self) -> Any:
        """Return the intervals as a data frame: center, lower and upper limit, of each output or class.

        It has the index of the frame of points, or is a frame of polars if that was one.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of({"center": self.center, "lower": self.lower, "upper": self.upper}, self.index)

    def _facts(self) -> dict[str, str]:
        """Return the lines above the printed table."""
        critical = "" if self.critical is None else f", critical value {listed(np.atleast_1d(self.critical))}"
        where = "" if self.guarantee else f", {BAND[self.band]}" + ", each class by itself" * ("class" in self.axes)
        rows = "" if self.n_calibration is None else f", calibrated by {self.n_calibration:g} {self.units}"
        facts = {"level": f"{self.level:g}{where}{critical}", "method": f"{self.method}{rows}"}
        return facts | ({"guarantee": self.guarantee} if self.guarantee else {})

    def _digits(self, at: Any, ends: Array) -> int:
        """Return how many digits show two of the standard error, or three of the width; four where both are unknown."""
        if self.standard_error is not None:
            return digits_beside(ends, self.standard_error[at])
        return digits_beside(ends, 0.1 * (self.upper[at] - self.lower[at])) if self.guarantee else 4

    def __str__(self) -> str:
        few = self.center[:ROWS]  # of a million points, too
        further = {"se": self.standard_error, "df": self.df, "n_eff": self.effective_rows}
        columns, rows = {name: column for name, column in further.items() if column is not None}, []
        points = names_of(self.index, len(self.center))
        first = {} if self.first_predictions is None else {"predict": self.first_predictions}
        for at in [np.unravel_index(i, few.shape) for i in range(min(few.size, ROWS))]:
            ends = np.array([of[at] for of in (*first.values(), self.center, self.lower, self.upper)]) + 0.0  # no -0
            place = at[1:] if self.labels is None else (*at[1:-1], self.labels[at[-1]])
            cells = [f"{column[at[: column.ndim]]:.3g}" for column in columns.values()]
            digits = self._digits(at, ends)
            rows.append([*map(str, (points[at[0]], *place)), *(f"{end:.{digits}g}" for end in ends), *cells])
        center = CENTER.get(self.method, "center")
        names = ["point", *self.axes[: few.ndim - 1], *first, center, "lower", "upper", *columns]
        facts = {"points": f"{len(self.center)}", **self._facts()}
        return printed_table(facts, names, rows, more=self.center.size > len(rows))
