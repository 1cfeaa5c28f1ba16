"""`Smooth`, a stat for seaborn.objects: the curve of a kernel regression and its confidence band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernpool.displays.smooth_table import smooth

try:
    from seaborn.objects import Stat
except ImportError:  # without seaborn there is no plot to add it to
    Stat = object


@dataclass
class Smooth(Stat):  # type: ignore[misc]  # seaborn ships no types
    """Stat of seaborn.objects: fit a curve to each group, and return it with a confidence band.

    Rows in which x or y is missing are left out, as by seaborn's own stats.

    Parameters
    ----------
    model : regressor, optional
        Not fitted, with a `confidence_interval`; by default ``LocalLinearRegressor()``.
    level : float, default=0.95
        Confidence level of the band, pointwise.
    points : int, default=100
        Points of each curve.

    See Also
    --------
    kernpool.smooth : The table of curve and band.

    Examples
    --------
    >>> import seaborn.objects as so  # doctest: +SKIP
    >>> plot = so.Plot(penguins, x="bill_length_mm", y="body_mass_g", color="species")  # doctest: +SKIP
    >>> plot.add(so.Dots()).add(so.Line(), Smooth()).add(so.Band(), Smooth())  # doctest: +SKIP
    """

    model: Any = None
    level: float = 0.95
    points: int = 100

    def __call__(self, data: Any, groupby: Any, orient: str, scales: Any) -> Any:  # noqa: ARG002
        """Return the curves of all groups, as seaborn asks."""
        other = "y" if orient == "x" else "x"

        def curve(rows: Any) -> Any:
            found = smooth(rows, x=orient, y=other, **vars(self))
            return found.rename(columns={"lower": f"{other}min", "upper": f"{other}max"})

        return groupby.apply(data.dropna(subset=["x", "y"]), curve)
