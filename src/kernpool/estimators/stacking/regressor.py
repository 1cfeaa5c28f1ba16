"""Stacked kernel regression as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import LeaveOneOut
from kernpool.conformal import PredictionInterval
from kernpool.data.chunks.base import Chunks
from kernpool.data.model_format import Record, plain
from kernpool.estimators.parameter_validation import NamedCalls
from kernpool.estimators.regressors import KernelRegressor, LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.stacking import inference
from kernpool.estimators.stacking.kernel_ridge import Array, Codes, KernelRidge, fit_table
from kernpool.estimators.stacking.stack import FittedStack, restored_stack, stack_record
from kernpool.estimators.training_rows import LABELS, NAMES, Scoring
from kernpool.execution.error_messages import check_choice, check_flag
from kernpool.inference import Interval, Residuals, as_level, as_random

KERNELS = ("laplace", "gaussian")
PARAMETERS = ("kernel", "learn_metric", "random_state")
METHODS = ("adaptive", "split")


# Scikit-learn is not typed.
class KernelStackingRegressor(Scoring, RegressorMixin, NamedCalls, BaseEstimator):  # type: ignore[misc]
    r"""Stacked kernel regression: local planes and a global kernel ridge regression, averaged by leave-one-out.

    .. math:: \hat m(x) = \pi_1\, \hat m_{\text{local}}(x) + \pi_2\, \hat m_{\text{ridge}}(x)

    Local fits need many rows in every window; a global fit of a smooth or additive curve does not, and is blind to
    what happens in one place. Stacking, or jackknife model averaging, takes the weights of least leave-one-out error
    [1]_ [2]_, half way to equal ones.

    Parameters
    ----------
    local : LocalLinearRegressor or NadarayaWatsonRegressor, optional
        The local member, not fitted; by default ``LocalLinearRegressor()``. Its parameters say how columns are read.
    kernel : {"laplace", "gaussian"}, default="laplace"
        Kernel of the ridge regression, :math:`e^{-r / L}` or :math:`e^{-r^2 / 2 L^2}`, of standardised columns, with
        categories as 0 and 1. Its length L and ridge are found by leave-one-out.
    learn_metric : bool, default=True
        Whether the metric of its distances is learned by average gradient outer products [3]_.
    random_state : int, Generator or None, default=0
        Draws rows if there are more than 1000, on which metric and length are chosen, and the landmarks if there are
        more than 2000.

    Attributes
    ----------
    members_ : dict
        The fitted members: ``"local"``, an estimator, and ``"kernel_ridge"``, with `kernel`, `ridge` and `metric`.
    member_weights_ : dict
        Weight of each member.
    loo_error_ : float
        Mean squared leave-one-out error of the average, summed over outputs; leave-cluster-out after a fit with groups.
        Too small for new rows, since members and weights were chosen by it: `expected_error` corrects that.
    n_features_in_, feature_names_in_
        As of `LocalLinearRegressor`.

    See Also
    --------
    LocalLinearRegressor : The local member alone.
    sklearn.ensemble.StackingRegressor : Stacks estimators of any kind, by cross-validation.

    Notes
    -----
    The average is a linear smoother, as its members are: `attention_weights` times the outputs are the predictions, and
    standard errors and intervals are made of these weights. Leave-one-out predictions of both members are exact. The
    kernel ridge takes four times three eigendecompositions, O(n^3), of up to 1000 rows; beyond, metric and
    length are chosen on 1000 drawn rows, and beyond 2000 rows the kernels of 2000 drawn rows are combined (Nystroem).
    Intervals take O(m n^2), and O(n^2) for the hat matrix.

    References
    ----------
    .. [1] L. Breiman, "Stacked regressions", Machine Learning 24 (1996), 49-64.
    .. [2] B. Hansen and J. Racine, "Jackknife model averaging", Journal of Econometrics 167 (2012), 38-46.
    .. [3] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks
       and backpropagation-free machine learning models", Science 383 (2024), 1461-1467.

    Examples
    --------
    >>> from kernpool import KernelStackingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(80, 3))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=80)
    >>> model = KernelStackingRegressor().fit(X, y)
    >>> {name: round(weight, 2) for name, weight in model.member_weights_.items()}
    {'local': 0.75, 'kernel_ridge': 0.25}
    """

    def __init__(
        self,
        local: LocalLinearRegressor | Any = None,
        *,
        kernel: str = "laplace",
        learn_metric: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.local = local
        self.kernel = kernel
        self.learn_metric = learn_metric
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the members to the training rows, and find their weights.

        Parameters
        ----------
        X : array_like of shape (n,) or (n, d), or frame
            Inputs, as of `LocalLinearRegressor.fit`, in memory.
        y : array_like of shape (n,) or (n, c)
            Outputs.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.
        groups : array_like of shape (n,), optional
            Which cluster each row belongs to: all is chosen by leave-cluster-out errors then.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        TypeError
            If X is a file or chunks, or `local` no estimator for the local member.
        ValueError
            If there is a single row, a parameter is out of its range, or as of `LocalLinearRegressor.fit`.

        Warns
        -----
        RepeatedRowsWarning, SuspectColumnWarning, RankDeficiencyWarning
            As of `LocalLinearRegressor.fit`.
        """
        if isinstance(X, Chunks | str | Path):
            raise TypeError(
                f"{type(self).__name__} takes rows in memory, got {type(X).__name__}; fit a sample of the rows, or "
                "LocalLinearRegressor, which reads files"
            )
        local = self._new_local().fit(X, y, sample_weight, groups)
        self._keep(FittedStack.of(local, self._fit_ridge))
        return self

    def _keep(self, stack: FittedStack) -> None:
        """Replace all fitted attributes by those of a stack."""
        local = stack.local
        for name in (NAMES, LABELS, "_expected_error"):
            self.__dict__.pop(name, None)
        self.__dict__ |= {name: vars(local)[name] for name in ("n_features_in_", NAMES, LABELS) if name in vars(local)}
        self._stack = stack
        self.members_ = stack.members
        self.member_weights_ = dict(zip(stack.members, stack.mixing.tolist(), strict=True))
        self.loo_error_ = stack.error

    def _to_record(self) -> Record:
        """Return the fitted model as a `Record` of JSON and arrays, as `save_model` writes them."""
        check_is_fitted(self)
        self._new_local()  # which checks the parameters
        return stack_record(self._stack, {name: plain(getattr(self, name)) for name in PARAMETERS})

    @classmethod
    def _from_record(cls, record: Record) -> Self:
        """Create a fitted model from a saved `Record` after validating it; used by `load_model`."""
        model = cls(**{name: record.header["parameters"][name] for name in PARAMETERS})
        model._new_local()
        stack = restored_stack(record, (LocalLinearRegressor, NadarayaWatsonRegressor), set(PARAMETERS))
        model.local = clone(stack.local)
        model._new_local()
        model._keep(stack)
        return model

    def _new_local(self) -> KernelRegressor:
        """Return the local member, not fitted, after checking all parameters."""
        check_choice("kernel", self.kernel, KERNELS)
        check_flag("learn_metric", self.learn_metric)
        as_random(self.random_state)
        if self.local is None:
            return LocalLinearRegressor()
        if not isinstance(self.local, KernelRegressor):
            raise TypeError(
                "local must be None, or a LocalLinearRegressor or NadarayaWatsonRegressor, got "
                f"{type(self.local).__name__}"
            )
        if vars(self.local).get("extrapolate", "plane") != "plane":
            raise ValueError("local must have extrapolate='plane': clipped predictions are not linear in the outputs")
        made: KernelRegressor = clone(self.local)
        return made

    def _fit_ridge(self, columns: Array, value: Array, weight: Array, group: Codes | None) -> KernelRidge:
        return fit_table(
            self.kernel, columns, value, weight, group, learn_metric=self.learn_metric,
            generator=as_random(self.random_state),
        )  # fmt: skip

    def _shaped(self, values: Array | None) -> Array:
        assert values is not None
        return values[:, 0] if self._stack.local.value_.ndim == 1 else values

    def predict(self, X: ArrayLike) -> Array:
        """Predict y at new rows.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            Averages of the predictions of the members.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows.
        """
        check_is_fitted(self)
        return self._shaped(self._stack.predict(self._stack.read(X)))

    def attention_weights(self, X: ArrayLike, *, max_bytes: int = 1 << 30) -> Array:
        """Compute the weight of every training row in each prediction: the equivalent kernel.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        max_bytes : int, default=2**30
            The largest result allowed.

        Returns
        -------
        ndarray of shape (m, n)
            Rows sum to one, and their product with the training outputs is the prediction; entries may be negative.

        Raises
        ------
        ValueError
            If the weights need more than `max_bytes`.
        """
        check_is_fitted(self)
        stack, queries = self._stack, self._stack.read(X)
        needed = 8 * len(queries) * len(stack.local.key_)
        if needed > max_bytes:
            raise ValueError(
                f"max_bytes must be at least {needed} for the weights of {len(queries)} queries, got {max_bytes}; pass "
                "fewer queries at once"
            )
        found = np.zeros((len(queries), len(stack.local.key_)))
        found[:, stack.kept] = stack.weights(queries)
        return found

    def leave_one_out(self) -> LeaveOneOut:
        """Return leave-one-out predictions of the training rows; leave-cluster-out after a fit with groups.

        Returns
        -------
        LeaveOneOut
            With `prediction` of shape (n, c), NaN at rows of weight zero, and `error`, which is `loo_error_`.
        """
        check_is_fitted(self)
        stack = self._stack
        prediction = np.full((len(stack.local.key_), stack.value.shape[1]), np.nan)
        prediction[stack.kept] = stack.left_out
        return LeaveOneOut(prediction, stack.error, stack.local.leave_one_out().occupied)

    def expected_error(self) -> float:
        """Estimate the mean squared error for new rows, summed over outputs, by nested cross-validation.

        Returns
        -------
        float
            In squared units of the outputs. The model keeps it: the second call is free.

        Raises
        ------
        ValueError
            If there are fewer than four rows or groups.

        See Also
        --------
        LocalLinearRegressor.expected_error : The same estimate, with its formula.

        Notes
        -----
        Five fits, or ten of up to 200 rows. After a fit with `groups` folds hold whole groups.
        """
        check_is_fitted(self)
        if "_expected_error" not in vars(self):
            self._expected_error = inference.expected_error(self._stack, self._fit_ridge)
        return self._expected_error

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows of positive weight.

        After a fit with `groups`, residuals and noise are leave-cluster-out.

        Returns
        -------
        Residuals
            With `fitted`, `residual` and `noise` of the shape of y; `leverage` and `weight` of shape (n,); `cluster` of
            that shape, or None.
        """
        check_is_fitted(self)
        stack = self._stack
        hat = inference.HatSummary.of(stack)
        return Residuals(
            self._shaped(hat.fitted), self._shaped(stack.value - stack.left_out), hat.leverage,
            self._shaped(np.sqrt(inference.noise_of(stack))), stack.weight.copy(), stack.group,
        )  # fmt: skip

    def summary(self) -> inference.StackingSummary:
        """Summarise the fit: members with their weights, effective parameters, R2 and leave-one-out R2.

        Returns
        -------
        StackingSummary
            A record that prints well.
        """
        check_is_fitted(self)
        return inference.summarise_stack(self._stack, type(self).__name__, self.n_features_in_)

    def confidence_interval(
        self, X: ArrayLike, *, level: float = 0.95, method: Literal["robust", "naive"] = "robust"
    ) -> Interval:
        """Compute pointwise confidence intervals for the curve, with standard errors.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.95
            Coverage of each interval.
        method : {"robust", "naive"}, default="robust"
            ``"robust"`` corrects the bias by smoothing the residuals, and its standard error is that of the corrected
            fit, with a term for the bias that remains; ``"naive"`` is centred at `predict`.

        Returns
        -------
        Interval
            With `center`, `lower`, `upper`, `standard_error` and `df`. After a fit with groups errors are
            cluster-robust.

        Raises
        ------
        ValueError
            If an argument is out of its range, the fit leaves no degrees of freedom, or groups are fewer than five.
        """
        check_is_fitted(self)
        check_choice("method", method, inference.METHODS)
        found = inference.confidence_interval(self._stack, self._stack.read(X), as_level(level), method)
        center, lower, upper, error, first = map(
            self._shaped, (found.center, found.lower, found.upper, found.standard_error, found.first_predictions)
        )
        return replace(found, center=center, lower=lower, upper=upper, standard_error=error, first_predictions=first)

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: Literal["adaptive", "split"] = "adaptive",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
    ) -> PredictionInterval:
        """Compute prediction intervals: they contain a new observation of y with a given probability.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals, for each output separately.
        method : {"adaptive", "split"}, default="adaptive"
            ``"adaptive"``: as wide as the noise is around x, in the windows of the local member, calibrated by
            leave-one-out residuals or calibration rows. ``"split"``: one width, from calibration rows.
        X_calibration, y_calibration : array_like, optional
            Rows that the model was not fitted to: intervals then have a finite-sample guarantee.

        Returns
        -------
        PredictionInterval
            With `center`, `lower`, `upper` and the coverage statement `guarantee`. After a fit with groups of a row of
            a new cluster.

        Raises
        ------
        ValueError
            If an argument is out of its range, or ``"split"`` has no calibration rows.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, so that intervals are infinite.
        """
        check_is_fitted(self)
        check_choice("method", method, METHODS)
        found = inference.conformal_interval(self._stack, X, level, method, X_calibration, y_calibration)
        center, lower, upper = map(self._shaped, (found.center, found.lower, found.upper))
        return replace(found, center=center, lower=lower, upper=upper)
