"""Simultaneous bands: intervals that cover a whole curve, or all of some places, at once.

The tube formula (`tube.py`) is for curves: one numeric column, independent rows, shares that do not jump. It covers
between the places, too, and draws nothing. The multiplier bootstrap (`multiplier.py`) is for everything else: several
columns, kernels with an edge, clusters. It covers the places themselves. Both end in a critical value, the number of
standard errors on either side; these are estimated, so that at each place Student's quantile takes its place, at the
same tail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.messages import abbreviate
from kernpool.inference import draws
from kernpool.inference.corrected import Estimate
from kernpool.inference.multiplier import critical_values, largest_errors
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.standard_errors import Errors
from kernpool.inference.tube import critical_value, curve_grid, path_length, why_no_tube

Array = NDArray[np.float64]

BANDS = ("tube", "multiplier")


def check_band(simultaneous: Any) -> None:
    """Refuse what is neither yes nor no nor the name of a kind of bands."""
    if isinstance(simultaneous, bool | np.bool_) or (isinstance(simultaneous, str) and simultaneous in BANDS):
        return
    raise ValueError(
        f"simultaneous must be False, True, {' or '.join(map(repr, BANDS))}, "
        f"got {abbreviate(simultaneous)}; False is for "
        "intervals of single places, True for a band, by the tube formula where it holds"
    )


def choose_band(smoother: Smoother, places: Places, simultaneous: bool | str, clustered: bool = False) -> str:
    """Choose a kind of band: the tube formula where it holds, else the multiplier bootstrap.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : Places
        Where.
    simultaneous : True or str
        True, or a name, which asks for one kind; `check_band` has let it through.
    clustered : bool, default=False
        Whether rows come in clusters.

    Returns
    -------
    {"tube", "multiplier"}
        The kind.

    Raises
    ------
    ValueError
        If the tube formula is asked for and does not hold.
    """
    if simultaneous == "multiplier":
        return "multiplier"
    reason = "the tube formula is for independent rows, and groups make clusters" if clustered else None
    reason = reason or why_no_tube(smoother, places)
    if reason is not None and simultaneous == "tube":
        raise ValueError(f"{reason}; use simultaneous='multiplier', which covers all places of X at once")
    return "tube" if reason is None else "multiplier"


def band_width(
    smoother: Smoother,
    places: Places,
    found: Estimate,
    errors: Errors,
    *,
    kind: str,
    level: float,
    method: str,
    column: int | None = None,
    n_resamples: int = 999,
    random_state: Any = 0,
) -> Array:
    """Return how many standard errors a band is wide on either side, if these were known.

    Parameters
    ----------
    smoother, places
        As of `interval`.
    found : Estimate
        The estimate at the places.
    errors : Errors
        Its errors.
    kind : {"tube", "multiplier"}
        From `choose_band`.
    level : float
        Of the band.
    method, column
        As of `estimate`.
    n_resamples, random_state
        Of the multiplier bootstrap.

    Returns
    -------
    ndarray of shape (1,) or (c,)
        One for all outputs, where it does not depend on residuals.
    """
    if kind == "tube":
        kappa, pieces = path_length(smoother, curve_grid(smoother, places), method, column)
        return np.array([critical_value(kappa, level, pieces)])
    number = draws.as_count("n_resamples", n_resamples)
    critical_values(np.zeros((number, 1)), level)  # too few draws are told before they are made
    options: dict[str, Any] = {"method": method, "column": column, "n_resamples": number, "random_state": random_state}
    return critical_values(largest_errors(smoother, places, found, errors, **options), level)
