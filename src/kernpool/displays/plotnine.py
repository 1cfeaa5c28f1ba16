"""`kernel_smoother`, for ``geom_smooth(method=kernel_smoother)`` of plotnine."""

from __future__ import annotations

from typing import Any

from kernpool.displays.smooth_table import smooth


def kernel_smoother(data: Any, xseq: Any, params: dict[str, Any]) -> Any:
    """Fit a curve to one group, and return it with its confidence band: a `method` for plotnine's geom_smooth.

    Parameters
    ----------
    data : DataFrame
        Columns ``x`` and ``y`` of the group.
    xseq : array_like of shape (g,)
        Points of the curve.
    params : dict
        Parameters of the stat: its `level`, and in `method_args` a `model`, as in `kernpool.smooth`.

    Returns
    -------
    DataFrame
        Columns ``x``, ``y``, ``ymin`` and ``ymax``.

    Examples
    --------
    >>> from plotnine import aes, geom_point, geom_smooth, ggplot  # doctest: +SKIP
    >>> plot = ggplot(penguins, aes("bill_length_mm", "body_mass_g", color="species"))  # doctest: +SKIP
    >>> plot + geom_point() + geom_smooth(method=kernel_smoother)  # doctest: +SKIP
    """
    found = smooth(data, x="x", y="y", points=xseq, level=params["level"], **params["method_args"])
    return found.rename(columns={"lower": "ymin", "upper": "ymax"})
