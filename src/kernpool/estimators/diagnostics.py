"""What a fitted regressor says of its rows, and of its slopes at other bandwidths; numbers of `kernpool.inference`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.fitted import read_query, scale_of
from kernpool.estimators.smoothing_rows import clusters_of_fit, smoother_of, training_of
from kernpool.execution.messages import abbreviate
from kernpool.inference import Places
from kernpool.inference.diagnostics import Residuals, residuals
from kernpool.inference.slope_map import SlopeMap, slope_map

Array = NDArray[np.float64]

BANDWIDTHS, PLACES = 40, 201
NARROWEST = 3.0  # mean distances between rows: windows of seven or eight rows on average


class Diagnostics:
    """Residuals and slope maps of a regressor."""

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows.

        After a fit with `groups`, residuals and noise are leave-cluster-out, as `leave_one_out` is: each row less the
        fit to the rows of all other clusters.

        Returns
        -------
        Residuals
            With `fitted`, `residual` and `noise` of the shape of y; `leverage` and `weight` of shape (n,); `cluster` of
            that shape, or None.

        Raises
        ------
        ValueError
            If there are fewer than five rows, or the fit takes all degrees of freedom.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        kernpool.ResidualDisplay : Draws them.

        Notes
        -----
        Two passes over pairs of training rows, and one more that the model keeps.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 3.0, 3.0, 9.0]
        >>> LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).residuals().residual.round(3)
        array([ 2.   , -0.286, -0.25 , -3.143,  4.5  ])
        """
        smoother = smoother_of(self)
        found = residuals(smoother, training_of(self, smoother), clusters_of_fit(self, smoother))
        if self.value_.ndim == 1:  # type: ignore[attr-defined]  # set by fit
            found = replace(found, **{name: getattr(found, name)[:, 0] for name in ("fitted", "residual", "noise")})
        return found

    def slope_map(
        self,
        X: ArrayLike | None = None,
        *,
        bandwidths: ArrayLike | None = None,
        level: float = 0.95,
        method: str = "naive",
        variance: str = "local",
        simultaneous: bool = True,
        fewest_rows: float = 5.0,
    ) -> SlopeMap:
        """Find where the curve rises and falls for certain, at many bandwidths: the map called SiZer.

        Parameters
        ----------
        X : array_like of shape (g, 1), optional
            Places; by default 201 from the least input to the largest.
        bandwidths : array_like of shape (b,), optional
            By default 40 in equal steps of their logarithms, from three mean distances between rows to the
            range of the inputs, and as far as half and twice the bandwidth of the model. With ``scale="rank"`` they
            are shares of the rows.
        level : float, default=0.95
            Probability that all intervals of one bandwidth cover.
        method : str, default="naive"
            As in `confidence_interval`. By default no bias is taken off: a row of the map is about the curve as it is
            seen at its bandwidth.
        variance : str, default="local"
            As in `confidence_interval`.
        simultaneous : bool, default=True
            Whether intervals of a bandwidth cover all at once.
        fewest_rows : float, default=5
            Windows of fewer rows say nothing; each row counts as K((x - x_j)/h)/K(0).

        Returns
        -------
        SlopeMap
            With `sign` of shape (b, g): 1 rising, -1 falling, 0 neither for certain.

        Raises
        ------
        ValueError
            If the model has several columns, levels, outputs or groups of rows, or an argument is out of its range.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        kernpool.SiZerDisplay : Draws it.

        Notes
        -----
        The slopes are those of local lines for both regressors, with any kernel. Intervals hold along each row of the
        map, not for all rows together: of 400 samples of 100 rows about a level line, rows of the map that are not all
        0 were 1, 2, 4 and 5 in a hundred at bandwidths .03, .06, .12 and .3 of the range, where 5 are allowed. For each
        bandwidth one leave-one-out pass over the rows and one band; 40 of them for 442 rows take three seconds.

        References
        ----------
        .. [1] P. Chaudhuri and J. S. Marron, "SiZer for exploration of structures in curves", JASA 94 (1999), 807-823.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x = np.linspace(0.0, 1.0, 80)
        >>> y = np.abs(x - 0.5) + 0.02 * np.cos(40.0 * np.arange(80))
        >>> found = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y).slope_map([[0.2], [0.5], [0.8]])
        >>> found.sign.shape, found.sign[20]
        ((40, 3), array([-1,  0,  1], dtype=int8))
        """
        smoother = replace(smoother_of(self), kept=None)  # of other bandwidths, which nobody asks for again
        self._refuse_several(smoother.columns)
        scale, key = scale_of(self), smoother.keys.rows.array[smoother.weight > 0, 0]
        if X is None:
            inputs = self.key_[smoother.weight > 0, 0]  # type: ignore[attr-defined]  # set by fit
            numeric = np.linspace(float(inputs.min()), float(inputs.max()), PLACES)[:, None]
        else:
            numeric = np.asarray(read_query(self, X)[0], dtype=np.float64)
        if bandwidths is None:
            bandwidths = _many(key, float(self.bandwidth_[0]))  # type: ignore[attr-defined]  # set by fit
        widths = np.atleast_1d(np.asarray(bandwidths, dtype=np.float64))
        if widths.ndim != 1 or not widths.size or not np.all(np.isfinite(widths) & (widths > 0)):
            raise ValueError(f"bandwidths must be positive finite numbers of shape (b,), got {abbreviate(bandwidths)}")
        return slope_map(
            smoother,
            Places(np.asarray(scale.apply(numeric), dtype=np.float64)),
            numeric[:, 0],
            widths,
            level=level,
            method=method,
            variance=variance,
            simultaneous=simultaneous,
            fewest_rows=fewest_rows,
        )

    def _refuse_several(self, columns: int) -> None:
        model: Any = self
        if model.encoding_ is not None and not model.encoding_.numbers_alone:
            raise ValueError("a slope map is for one numeric column, and this model has levels; fit one of them alone")
        if model.key_group_ is not None:
            raise ValueError(
                "a slope map takes rows as independent, and this model was fitted with groups=; use "
                "confidence_interval(of='derivative'), which counts groups, at one bandwidth after the other"
            )
        if columns != 1:
            raise ValueError(f"a slope map is for one column, and this model has {columns}; fit a model of one column")
        if model.value_.ndim > 1 and model.value_.shape[1] > 1:
            raise ValueError(
                f"a slope map is for one output, and this model has {model.value_.shape[1]}; fit one after the other"
            )


def _many(key: Array, bandwidth: float) -> Array:
    """Return bandwidths to look at."""
    width = float(np.ptp(key)) or 1.0
    low, high = min(NARROWEST * width / len(key), width / 2), width
    if np.isfinite(bandwidth):
        low, high = min(low, bandwidth / 2), max(high, min(2 * bandwidth, 10 * width))
    return np.geomspace(max(low, 1e-3 * width), high, BANDWIDTHS)
