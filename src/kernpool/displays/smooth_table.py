"""Curve and confidence band of a table as a table, for the libraries in which people plot already."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.base import clone

from kernpool.data import label_codes, refuse_other_labels
from kernpool.estimators import LocalLinearRegressor
from kernpool.execution import as_count, check_choice, explain_calls


@explain_calls
def smooth(
    data: Any,
    *,
    x: str,
    y: str,
    by: str | None = None,
    model: Any = None,
    level: float = 0.95,
    points: Any = 100,
) -> Any:
    """Fit a curve to two columns of a table, or one per group, and return curve and confidence band as a table.

    Parameters
    ----------
    data : pandas or polars DataFrame, or dict of columns
        The table.
    x, y : str
        Columns of inputs, numbers or dates, and of outputs.
    by : str, optional
        Column of groups: each has a curve of its own, with its own bandwidth, over the range of its rows.
    model : regressor, optional
        Not fitted, with a `confidence_interval`; by default ``LocalLinearRegressor()``.
    level : float, default=0.95
        Confidence level of the band, pointwise.
    points : int or array_like of shape (g,), default=100
        How many points each curve has, from the least x of its rows to the largest, or the points.

    Returns
    -------
    DataFrame or dict, as `data`
        Columns `by`, if there is one, `x`, `y`, which is the curve, ``lower`` and ``upper``. The band is corrected for
        the bias of the curve, so the curve need not be its middle.

    Raises
    ------
    ValueError
        If a column is missing, or holds missing cells; a group has less than five rows; or `level` is invalid.

    See Also
    --------
    KernelCurveDisplay : The picture of one model with a column of groups.

    Notes
    -----
    ``kernpool.displays.seaborn.Smooth`` is the same as a stat of seaborn.objects, and
    ``kernpool.displays.plotnine.kernel_smoother`` as a `method` of plotnine's geom_smooth.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernpool import smooth
    >>> hours = np.linspace(0, 10, 40)
    >>> score = np.sqrt(hours) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> table = pd.DataFrame({"hours": hours, "score": score, "sex": ["f", "m"] * 20})
    >>> smooth(table, x="hours", y="score", by="sex", points=3).round(1)
      sex  hours  score  lower  upper
    0   f    0.0    0.1   -0.7    0.8
    1   f    4.9    2.2    2.1    2.3
    2   f    9.7    3.2    2.9    3.4
    3   m    0.3    0.5    0.2    0.8
    4   m    5.1    2.3    2.3    2.5
    5   m   10.0    3.3    2.9    3.7
    """
    known, grouping = list(getattr(data, "columns", data)), x if by is None else by
    for argument, column in {"x": x, "y": y, "by": grouping}.items():
        if not isinstance(column, Hashable) or column not in known:
            check_choice(argument, column, known)
    if len({x, y, by, "lower", "upper"}) < 5:
        raise ValueError(
            "x, y and by must be different columns, and none be called 'lower' or 'upper' like the ends of the band; "
            f"got {x!r}, {y!r} and {by!r}; rename them"
        )
    steps = np.asarray(points) if np.ndim(points) else np.linspace(0, 1, as_count("points", points))
    refuse_other_labels(**{str(name): data[name] for name in (x, y, grouping)})
    inputs, outputs = np.asarray(data[x]), np.asarray(data[y])
    labels: Any = np.zeros(len(inputs)) if by is None else data[by]
    # the array of a pandas Series keeps categories, and has no index
    labels = getattr(labels, "array", labels if hasattr(labels, "dtype") else np.asarray(labels))
    code, curves = label_codes(labels, len(inputs), "by"), []
    for group in range(code.max(initial=0) + 1):
        (rows,) = np.nonzero(code == group)
        X = inputs[rows]
        try:
            fitted = clone(LocalLinearRegressor() if model is None else model).fit(X[:, None], outputs[rows])
            at = steps if np.ndim(points) else X.min() + np.ptp(X) * steps
            band = fitted.confidence_interval(at[:, None], level=level)
        except ValueError as error:
            if by is not None:
                error.add_note(f"in the group {list(labels[rows[:1]])}, whose rows are counted by themselves")
            raise
        curves.append((rows[:1].repeat(len(at)), at, fitted.predict(at[:, None]), band.lower, band.upper))
    first, *columns = map(np.concatenate, zip(*curves, strict=True))
    table = {by: labels[first]} | dict(zip((x, y, "lower", "upper"), columns, strict=True))
    table.pop(None, None)  # there are no groups
    return type(data)(table)
