"""What a fitted regressor says of the next value, beside its mean; the numbers are those of `kernpool.distribution`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kernpool.core.problem import Problem
from kernpool.distribution import Sums, as_levels, known_quantiles, with_limits
from kernpool.estimators.chunked import quantile_of_chunks
from kernpool.estimators.fitted import read_query, scale_of
from kernpool.estimators.smoothing_rows import clusters_of, need_rows, read_places, shaped, smoother_of
from kernpool.execution.progress import current_progress
from kernpool.inference import Places
from kernpool.inference.corrected import estimate
from kernpool.inference.noise import local_noise
from kernpool.inference.standard_errors import errors_of, rounding_of
from kernpool.inference.warnings import checked_errors, warn_of_empty
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


class ConditionalDistribution:
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
            If local planes were fitted to chunks, which do not hold their residuals.

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
        mix up rows from everywhere. Rows that have nothing else in their window have no such residual and do not count.
        Empty windows get quantiles of outputs all the same. The prediction is not clipped.

        The bandwidth is that of the mean. Where few rows count, extreme levels are the extremes of a small sample:
        quantiles say nothing about values beyond those seen. Cost as of `pool_quantile`, and O(n + m) memory; rows in
        chunks are read again, some times.

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
        if "chunks_" in vars(self) and not self._degree:  # type: ignore[attr-defined]
            return quantile_of_chunks(self, X, level)
        weighed = _Weighed.of(self, X, "residuals, of which planes have quantiles, need")
        progress = current_progress()
        found, occupied = known_quantiles(weighed.recipe, weighed.problem, weighed.value, level.ravel(), progress)
        found = weighed.filled(weighed.added(found), occupied, level.ravel())
        found = found[:, 0] if self.value_.ndim == 1 else found  # type: ignore[attr-defined]
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
        ndarray of shape (m, size) or (m, size, c)
            Exact draws of training rows by their weights at x: their outputs, together if there are several; of planes
            the prediction plus their leave-one-out residuals. What `empty` says where a window is empty.

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
        weighed = _Weighed.of(self, X, "draws need")
        random = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
        level = random.uniform(size=(len(weighed.problem.query), int(size)))
        sums = Sums.of(weighed.problem, weighed.recipe)
        places = sums.places(np.arange(len(weighed.value)), level)
        found = weighed.added(np.moveaxis(weighed.value[places], 1, 2))
        found = np.moveaxis(weighed.filled(found, sums.occupied, level), 1, 2)
        return found[..., 0] if self.value_.ndim == 1 else found  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class _Weighed:
    """What weights at some places are of.

    Parameters
    ----------
    recipe : Recipe
        How weights are summed, and what empty windows get.
    whole, problem : Problem
        Of the weights; in the second one rows without a residual have none.
    output, value : ndarray of shape (n, c)
        Outputs of the rows, and what is weighed: these, or residuals.
    center : ndarray of shape (m, c)
        What is added: nothing, or the fit.
    dtype : dtype
        Of predictions.
    """

    recipe: Recipe
    whole: Problem
    problem: Problem
    output: Array
    value: Array
    center: Array
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, model: Any, X: ArrayLike, what: str) -> _Weighed:
        """Read places, and what is weighed there."""
        need_rows(model, what)
        smoother = smoother_of(model)
        numeric, code = read_query(model, X)
        places = Places(np.asarray(scale_of(model).apply(numeric), dtype=np.float64), code)
        whole = problem = smoother.of_degree(0).problem(places)
        output = np.asarray(model.value_, dtype=np.float64).reshape(len(model.value_), -1)
        dtype = np.result_type(numeric, model.key_, model.value_)
        if smoother.recipe.degree == 0:
            center = np.zeros((len(problem.query), output.shape[1]))
            return cls(smoother.recipe, problem, problem, output, output, center, dtype)
        left_out = model.leave_one_out()
        residual, known = output - left_out.prediction.reshape(output.shape), left_out.occupied
        if not known.all():
            weight = np.ones(len(output)) if whole.key_weight is None else whole.key_weight
            problem = replace(whole, key_weight=np.where(known, weight, 0.0), prepared=None)
        center = smoother.fit(places).fit.intercept
        return cls(smoother.recipe, whole, problem, output, residual, center, dtype)

    def added(self, found: Array) -> Array:
        """Add the fit to what is weighed, of shape (m, c, l)."""
        return found + self.center[:, :, None]

    def filled(self, found: Array, occupied: NDArray[np.bool_], level: Array) -> Array:
        """Give empty windows quantiles of the outputs, or what else is asked for; of shape (m, c, l)."""
        return with_limits(self.recipe, self.whole, self.output, level, found, occupied).astype(self.dtype, copy=False)


def std_of_new(model: Any, X: ArrayLike) -> Array:
    """Return the standard deviation of a new observation around the prediction of a model.

    With groups it is that of an observation in a new cluster: residuals are those of fits without the whole cluster.
    """
    smoother, places, training = read_places(model, X, "fit")
    clusters = clusters_of(model, smoother, None)
    found = estimate(smoother, places, "naive")
    warn_of_empty(found)
    errors = errors_of(smoother, training, places, found, clusters=clusters)
    noise = errors.noise if clusters is None else local_noise(smoother, places, clusters.residual**2)
    assert noise is not None
    error, _ = checked_errors(found, errors)
    variance = np.where(noise.variance <= rounding_of(training) ** 2, 0.0, noise.variance)
    return shaped(model, X, [np.sqrt(variance + error**2)], "fit")
