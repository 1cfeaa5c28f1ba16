"""What a prediction interval is: numbers that print well, and what they promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.printing import ROWS, columns_of_text, digits_beside, with_sizes

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class PredictionInterval:
    """Where the next value is expected, at m places.

    Parameters
    ----------
    center : ndarray of shape (m,) or (m, c)
        The prediction.
    lower, upper : ndarray, as center
        Ends. Infinite where the rows do not bound them: too few for the level, or none around the place.
    level : float
        Probability with which the interval is to cover a new value; of each output by itself.
    method : str
        How it was found.
    guarantee : str
        What holds of that probability, in one sentence.
    n_calibration : float
        How many rows said how wide the interval has to be, in unit rows: a row of weight 3 is three; or how many
        clusters.
    units : {"rows", "clusters"}
        Which of both.
    effective_rows : ndarray of shape (m,), optional
        Effective sample size of the windows of the first places, those of the printed table (column ``n_eff``): near 1
        an interval rests on one row. None for rows that are not in memory.

    Examples
    --------
    >>> interval = PredictionInterval(
    ...     np.array([1.0]), np.array([0.5]), np.array([1.5]), 0.9, "split", "Covers.", 99.0
    ... )
    >>> interval.width
    array([1.])
    >>> print(interval)
    places     1
    level      0.9
    method     split, calibrated by 99 rows
    guarantee  Covers.
    <BLANKLINE>
      place  center  lower  upper
      0      1       0.5    1.5
    """

    center: Array
    lower: Array
    upper: Array
    level: float
    method: str
    guarantee: str
    n_calibration: float
    units: str = "rows"
    effective_rows: Array | None = None

    @property
    def width(self) -> Array:
        """Upper end less lower end."""
        return np.asarray(self.upper - self.lower)

    def __str__(self) -> str:
        few = self.center[:ROWS]  # of a million places, too
        shown = [np.unravel_index(i, few.shape) for i in range(min(few.size, ROWS))]
        table = []
        for at in shown:
            ends = np.array([self.center[at], self.lower[at], self.upper[at]])
            digits = digits_beside(ends, 0.1 * np.diff(ends[1:]))
            table.append([*(str(i) for i in at), *(f"{end:.{digits}g}" for end in ends)])
        names = ["place", *["output"] * (few.ndim - 1), "center", "lower", "upper"]
        names, table = with_sizes(names, table, self.effective_rows)
        lines = [
            f"places     {len(self.center)}" + ", the first below" * (self.center.size > len(shown)),
            f"level      {self.level:g}",
            f"method     {self.method}, calibrated by {self.n_calibration:g} {self.units}",
            f"guarantee  {self.guarantee}",
        ]
        return "\n".join([*lines, "", *columns_of_text(names, table), *["  ..."] * (self.center.size > len(shown))])
