"""Predictions at given rows as objects: kernel sums over the training rows, their weights, and explanations.

`PredictionBase` is what predictions of regressors and classifiers share. Each property is computed once, and the sums
of one pass over the training rows serve several of them. `row_diagnostics` finds the roles of training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import AnyArray, Array, Codes, Flags
from kernpool.core import LocalFit, Problem, monomials
from kernpool.data import labels_of_rows, unshared
from kernpool.estimators.fitted_model import output_shape, points_of, pooled_from, read_query
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.model import FittedModel, NamedCalls, as_fitted
from kernpool.execution import as_count, current_progress
from kernpool.inference import Explanation, RowDiagnostics
from kernpool.inference.explanation import explain
from kernpool.inference.model_summary import attention_received
from kernpool.pooling import Recipe, Sums, weight_tables
from kernpool.smoother import EvaluationPoints, Fitted, Smoother

Found = TypeVar("Found")
Kind = TypeVar("Kind", bound="PredictionBase")


def computed_once(function: Callable[[Any], Found]) -> cached_property[Found]:
    """Return a `functools.cached_property` whose array is read-only, because all who ask share it.

    Weights that underflow are zeros, as `NamedCalls` has it.
    """

    @wraps(function)
    def compute(prediction: Any) -> Found:
        with np.errstate(under="ignore"):
            found = function(prediction)
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        return found

    return cached_property(compute)


def prediction_at(kind: type[Kind], model: FittedModel, X: ArrayLike, **options: Any) -> Kind:
    """Return the prediction, of a class of `PredictionBase`, of a fitted model at X; later fits do not change it."""
    taken = as_fitted(model)
    query, code = read_query(taken, X)
    return kind(taken, unshared(query), code, labels_of_rows(X), **options)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionBase(NamedCalls):
    """Base class of predictions at given rows: kernel sums over the training rows, and their weights.

    Parameters
    ----------
    model : estimator
        Fitted, as it was when the prediction was made.
    query : ndarray of shape (m, d)
        Numeric columns of the rows.
    code : ndarray of int64, shape (m, k)
        Category codes of the rows.
    index : optional
        Labels of the rows, those of a frame of pandas.
    """

    model: FittedModel
    query: Array
    code: Codes
    index: Any = None

    def __len__(self) -> int:
        return len(self.query)

    def __getstate__(self) -> dict[str, Any]:  # without sums, which hold callbacks, and are summed again when needed
        names = {each.name for each in fields(self)}
        return {name: value for name, value in vars(self).items() if name in names or not name.startswith("_")}

    def __repr__(self) -> str:
        return f"{type(self).__name__} at {len(self)} rows"

    @computed_once
    def _recipe(self) -> Recipe:
        return self.model.smoother_.recipe

    @property
    def _widths(self) -> Array:
        """Bandwidths of the columns, of shape (d,), or at each query, of shape (m, d)."""
        bandwidth, widening = self._recipe.bandwidth, self._places.widening
        return bandwidth if widening is None else widening[:, None] * bandwidth

    @computed_once
    def _sums(self) -> Sums:
        return self.model.smoother_.pool(self._places, current_progress())

    @computed_once
    def _problem(self) -> Problem:
        smoother = self.model.smoother_
        assert isinstance(smoother, Smoother)
        return smoother.problem(self._places)

    @computed_once
    def _places(self) -> EvaluationPoints:
        return points_of(self.model, self.query, self.code)

    @computed_once
    def _planes(self) -> LocalFit:
        """The local planes; constant where the sums lose the precision that a plane needs."""
        return self._sums.fit(self._recipe.ridge_weight(self._sums.layout.columns))

    def _pooled(self) -> AnyArray:
        return pooled_from(self.model, self.query, self._sums)

    @computed_once
    def has_support(self) -> Flags:
        """Whether any training row is within the kernel's support, of shape (m,).

        False where the window is empty, so that `empty` decides the prediction. Always True for kernels of infinite
        support, unless levels are kept apart; there `effective_sample_size` shows extrapolation.
        """
        return self._sums.state.denominator > 0

    @computed_once
    def effective_sample_size(self) -> Array:
        r"""Effective number of training rows averaged by each prediction (Kish), of shape (m,).

        .. math:: n_{\text{eff}}(q) = \Big(\sum_j w_j K_j\Big)^2 \Big/ \sum_j w_j K_j^2

        Between 1 and n, the number of rows (the sum of the weights); 0 where the window is empty. A prediction far
        outside the data rests on one row. O(n m d) time in dense NumPy, O(n + m) memory.
        """
        smoother = self.model.smoother_.linear
        return smoother.effective_rows(smoother.problem(self._places))

    @computed_once
    def widening(self) -> Array:
        """Factor of all numeric bandwidths at each row, of shape (m,): one, unless windows have a floor or neighbors.

        See `window` of the estimator.
        """
        widening = self._places.widening
        return np.ones(len(self)) if widening is None else widening.copy()

    def weights(self, *, max_bytes: int = 1 << 30) -> Array:
        r"""Compute the weight of every training output in each prediction: the equivalent kernel.

        .. math:: \omega_{ij} = \alpha_{ij} \qquad \text{or, of planes,} \qquad
                  \alpha_{ij}\, (b_i + \tau_i \cdot (x_j - x_i)/h)

        Parameters
        ----------
        max_bytes : int, default=2**30
            The largest result allowed, since it has one entry per row and training row; it is not kept.

        Returns
        -------
        ndarray of shape (m, n)
            Rows sum to one, and their product with the training outputs is the prediction; for a classifier, before the
            priors are mixed in. Those of local planes may be negative: a plane extrapolates from one side to the other.

        Raises
        ------
        ValueError
            If the weights need more than `max_bytes`; or a window is empty, and `empty` is ``"raise"``.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning
            If there is no training row within the kernel's support, and `empty` is ``"nearest"`` or ``"nan"``.
        """
        refuse(self.model, "attention_weights")
        problem = self._problem
        share: Array = weight_tables(lambda _: problem, empty=self._recipe.empty, max_bytes=max_bytes, warn=True)[0]
        if not problem.degree:
            return share
        fit = self._planes
        tilted = np.repeat(fit.base[:, None], share.shape[1], axis=1)
        d = problem.key.shape[1]
        offset = [problem.similarity.offset(problem.query, problem.key, a) for a in range(d)]
        for a in range(d):
            tilted += fit.tilt[:, a, None] * offset[a]
        for place, (a, e) in enumerate(monomials(d, 2) if problem.degree == 2 else (), start=d):
            tilted += fit.tilt[:, place, None] * offset[a] * offset[e]
        return np.where(fit.occupied[:, None], share * tilted, share)

    @computed_once
    def _fitted(self) -> Fitted:
        """The local fits as those of a linear smoother; reports empty windows and planes that rows do not determine."""
        fitted = smoother_of(self.model).fit(self._problem)
        fitted.smoother.recipe.report_empty(fitted.fit.occupied)
        if fitted.problem.degree:
            self.model._report_rank(fitted.fit.rank, fitted.fit.occupied, fitted.smoother.columns)
        return fitted

    def explain(self, k: int = 5) -> Explanation:
        r"""Explain each prediction by the training rows of largest weight.

        .. math:: \hat y(x) - \bar y = \sum_j l_j(x)\, (y_j - \bar y), \qquad
                  \hat y_{-j}(x) - \hat y(x) = \frac{l_j(x)\, (p(x_j) - y_j)}{1 - h_j(x)}

        The first sum has the contributions of the rows, with the linear weights of `weights`. The second is the
        influence of row j: how the prediction changes if it is deleted, at the same bandwidth. Here p is the local
        plane around x, and h the leverage of the row in it; of a weighted mean p is the prediction, and h the weight.

        Parameters
        ----------
        k : int, default=5
            How many rows to each prediction.

        Returns
        -------
        Explanation
            With `row`, `weight`, `output`, `contribution`, `influence` and `effective_rows`.

        Raises
        ------
        ValueError
            If `k` is no positive integer; or a window is empty, and
            `empty` is ``"raise"``.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning
            If there is no training row within the kernel's support: no row explains the prediction there, and the
            numbers are NaN, whatever `empty` says.

        Notes
        -----
        Of a classifier, what is explained are the pooled labels: probabilities before the priors are mixed
        in. A row of weight 3 is deleted with all of its weight. Two passes over rows and queries, in
        O(n + m k) memory; no table of all weights is made.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 5.0, 3.0, 4.0]
        >>> model = LocalLinearRegressor(bandwidth=0.7, ridge=0.5).fit(x, y)
        >>> found = model.get_prediction([[1.2]]).explain(k=1)
        >>> found.row.tolist(), found.influence.round(3)
        ([[1]], array([[0.937]]))
        >>> without = LocalLinearRegressor(bandwidth=0.7, ridge=0.5).fit(x[:1] + x[2:], y[:1] + y[2:])
        >>> (without.predict([[1.2]]) - found.prediction).round(3)
        array([0.937])
        """
        refuse(self.model, "explain")
        k, fitted = as_count("k", k), self._fitted
        value = np.asarray(self.model.value_, dtype=np.float64).reshape(len(self.model.value_), -1)
        found = explain(fitted, value, k, self.model.index_)
        found = replace(
            found, classes=getattr(self.model, "classes_", None), predicted=self._predicted_classes(), index=self.index
        )
        if output_shape(self.model):
            return found
        several = ("prediction", "average", "output", "contribution", "influence")
        return replace(found, **{name: getattr(found, name)[..., 0] for name in several})

    def _predicted_classes(self) -> AnyArray | None:
        """Return the predicted class of each query; None of a regressor."""
        return None


@np.errstate(under="ignore")
def row_diagnostics(model: FittedModel) -> RowDiagnostics:
    r"""Find the roles of training rows: prototypes, which carry many predictions, outliers, and isolated rows.

    Parameters
    ----------
    model : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
        Fitted to arrays.

    Returns
    -------
    RowDiagnostics
        With `attention`, `residual` and `standardized`, and `prototypes`, `outliers` and `isolated`.

    Raises
    ------
    TypeError
        If the model is no such estimator, or was fitted to chunks.
    ValueError
        If there are fewer than five rows of a regressor, or the fit takes all degrees of freedom.

    Notes
    -----
    .. math:: A_j = \sum_i (w_i - \delta_{ij})\, \frac{K_{ij}}{\sum_l (w_l - \delta_{il}) K_{il}}

    is the attention of one unit of row j: the sum of its pooling weights in the leave-one-out predictions of all other
    units, one on average. Of planes, too, it is that of pooling weights, which are not negative. A row receives no
    attention from rows that the fit leaves out with it (`exclusion_`). Two passes over pairs of rows beyond those of
    residuals, in O(n) memory.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonClassifier, row_diagnostics
    >>> X, y = [[0.0], [1.0], [1.5], [1.7], [2.0], [5.0], [6.0]], ["low", "low", "low", "high", "low", "high", "high"]
    >>> found = row_diagnostics(NadarayaWatsonClassifier(bandwidth=0.5).fit(X, y))
    >>> found.attention.round(2)
    array([0.11, 1.45, 1.37, 1.28, 0.78, 1.  , 1.  ])
    >>> found.outliers(1)
    array([3])
    """
    if not isinstance(model, FittedModel):
        raise TypeError(
            "model must be a NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    smoother = smoother_of(model, "row_diagnostics")
    attention = attention_received(smoother)
    of_kind = cast(Any, model)  # whose methods are those of its kind
    if not isinstance(model, ClassifierMixin):
        found = of_kind.residuals()
        return RowDiagnostics(attention, found.residual, found.standardized, smoother.weight, None, model.index_)
    own = np.asarray(model.value_, dtype=np.float64).argmax(axis=1)
    probability = of_kind.leave_one_out().probability[np.arange(len(own)), own]
    with np.errstate(divide="ignore"):
        pearson = np.sqrt((1.0 - probability) / probability)
    return RowDiagnostics(attention, 1.0 - probability, pearson, smoother.weight, of_kind.classes_[own], model.index_)
