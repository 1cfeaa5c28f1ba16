"""What a fitted regressor says of the next value, beside its mean; the numbers are those of `kernpool.distribution`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kernpool.core.problem import Problem
from kernpool.distribution import as_levels, quantiles
from kernpool.estimators.fitted import read_query, scale_of
from kernpool.estimators.smoothing_rows import clusters_of, need_rows, smoother_of, training_of
from kernpool.execution.progress import current_progress
from kernpool.inference import Places

Array = NDArray[np.float64]


class Expectation:
    """Conditional quantiles of a regressor, and draws."""

    def quantile(self, X: ArrayLike, levels: ArrayLike = 0.5) -> Array:
        r"""Find the values that y stays below with given probabilities, at new rows.

        .. math:: \hat Q(\tau \mid x) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(x) \ge \tau \Big\}

        with the weights alpha of the training rows at x (`attention_weights`).

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        levels : float or array_like of shape (l,), default=0.5
            Probabilities, in any order; by default the conditional median.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            In the units of y. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and ``empty="nan"``.

        See Also
        --------
        confidence_interval : How well the mean is known, which is another question.
        pool_quantile : The same of arrays.

        Notes
        -----
        A `NadarayaWatsonRegressor` weighs the outputs v themselves, so a quantile is one of them. A
        `LocalLinearRegressor` has planes, whose shares may be negative and are no distribution; it weighs the
        leave-one-out residuals :math:`v_j = y_j - \hat m_{-j}(x_j)` by the same kernel, and adds the prediction:
        :math:`\hat m(x) + \hat Q_v(\tau \mid x)`. So a bandwidth that is wide because the curve is straight does not
        mix up rows from everywhere.

        The bandwidth is that of the mean. Where few rows count, extreme levels are the extremes of a small sample:
        quantiles say nothing about values beyond those seen. About log2(n / 512) passes over rows and places, or one
        over all pairs where that is less, and O(n + m) memory.

        References
        ----------
        .. [1] C. J. Stone, "Consistent nonparametric regression", Annals of Statistics 5 (1977), 595-620, section 1.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.quantile([[0.1], [3.0]], [0.1, 0.5, 0.9])
        array([[1., 2., 9.],
               [5., 5., 5.]])
        """
        level = as_levels(levels)
        found = _quantiles(self, X, level.ravel())
        return found if level.ndim else found[..., 0]

    def sample(self, X: ArrayLike, size: int = 1, *, random_state: Any = None) -> Array:
        r"""Draw values of y at new rows from the conditional distribution.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        size : int, default=1
            How many draws at each.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (m, size) or (m, c, size)
            Quantiles at uniform levels, as of `quantile`: exact draws. Several outputs are drawn from the same
            levels each, not from their joint distribution.

        Raises
        ------
        ValueError
            If `size` is not positive.
        TypeError
            If the model was fitted to chunks.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> sorted(set(model.sample([[0.1]], 100, random_state=0)[0].tolist()))
        [1.0, 2.0, 9.0]
        """
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"size must be a positive number of draws, got {size!r}")
        need_rows(self, "draws need")
        places = len(cast(Any, X))
        return _quantiles(self, X, check_random_state(random_state).uniform(size=(places, int(size))))


def _quantiles(model: Any, X: ArrayLike, level: Array) -> Array:
    """Return quantiles of shape (m, l) or (m, c, l)."""
    need_rows(model, "quantiles need")
    smoother = smoother_of(model)
    numeric, code = read_query(model, X)
    places = Places(np.asarray(scale_of(model).apply(numeric), dtype=np.float64), code)
    problem: Problem = smoother.of_degree(0).problem(places)
    value = np.asarray(model.value_, dtype=np.float64).reshape(len(model.value_), -1)
    planes = smoother.recipe.degree > 0
    if planes:
        clusters = clusters_of(model, smoother, None)
        value = value - training_of(model, smoother).deleted if clusters is None else clusters.residual
    found = quantiles(smoother.recipe, problem, value, level, current_progress())
    if planes:
        found = found + model.predict(X).reshape(len(found), -1)[:, :, None]
    return np.asarray(found[:, 0] if model.value_.ndim == 1 else found)
