"""Local logistic regression: probabilities of classes by local likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import Array
from kernpool.data import as_real_array
from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.methods.classification import (
    FittedClassifier,
    LeaveOneOutProbabilities,
    class_prior,
    summary_of_fit,
)
from kernpool.estimators.model import FOR_CLASSES, NamedCalls, as_fitted, with_parameters
from kernpool.estimators.semiparametric.local_likelihood import LocalLikelihoodRegressor, warn_of_prior
from kernpool.estimators.training_rows import Scoring, one_hot, read_rows, refuse_stored_rows
from kernpool.inference import Interval, Summary

# On slopes, in rows at the query. Log losses of two splits of wine, crabs and glass are .056 .105, .319 .293, .840 .732
# with it, .248 .349, .202 .167, .926 .983 with a prior on the level, and .068 .085, .532 .493, .948 .837 of logistic
# regression.
RIDGE = 0.1


def normalised(probability: Array) -> Array:
    """Return probabilities of one class against the rest as those of all classes, which add up to one."""
    if probability.shape[1] == 1:
        return np.hstack([1.0 - probability, probability])
    total = probability.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(probability, total, where=total > 0, out=np.zeros_like(probability)))


@with_parameters
class LocalLogisticClassifier(NamedCalls, Scoring, ClassifierMixin, FittedClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Local logistic regression: classes by a logistic model around each query.

    .. math:: \hat p(x) = \frac{1}{1 + e^{-\hat\beta_0}}, \qquad \hat\beta = \arg\max_\beta \sum_j w_j K((x - x_j)/h)\,
              \ell\big(y_j;\ \beta_0 + \beta_1 \cdot (x_j - x)\big)

    with the log likelihood of a binary label [1]_, less a penalty of a tenth of a row at the query on slopes per
    standard deviation, which keeps them finite where a plane separates the classes. Of more than two classes it is one
    against the rest, each with its own bandwidths, and probabilities are divided by their sum.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`. ``"constant"`` is logistic regression with the penalty.
    bandwidth : float, array_like of shape (d,), or name, default="log_loss"
        Numbers, or how to find them: ``"log_loss"``, which is ``"regularised"`` here, minimises the leave-one-out log
        loss with a penalty on small bandwidths, ``"loo"`` without one; the rules ``"scott"`` and ``"silverman"`` look
        at X alone.
    degree : {0, 1}, default=1
        Degree of the local polynomials of the logit.
    empty : {"mean", "nearest", "nan", "zero", "raise"}, default="mean"
        Probabilities where no training row lies within the kernel's support, as of `NadarayaWatsonClassifier`.
    smoothing, categorical_kernel, window, search
        As of `LocalLikelihoodRegressor`.
    unordered, ordered, periodic, geographic, unseen, gap, n_jobs
        As of `LocalLikelihoodRegressor`.

    Attributes
    ----------
    classes_, class_prior_ : ndarray of shape (n_classes,)
        The labels, sorted, and their frequencies.
    fits_ : list of LocalLikelihoodRegressor
        Of two classes the fit of the second, else one of each against the rest: with `bandwidth_`,
        `confidence_interval` and all other answers.
    n_features_in_, feature_names_in_, encoding_, index_, key_, value_, key_weight_, exclusion_
        As of `NadarayaWatsonClassifier`.

    See Also
    --------
    NadarayaWatsonClassifier : Weighted frequencies of classes, with a weight of the priors.
    LocalLikelihoodRegressor : Counts, amounts and numbers of successes; the notes on separation.

    Notes
    -----
    Logits that are near planes, and points at the edge, are where it has smaller errors than a weighted frequency: of
    500 rows with a logit along a line a mean squared error of .0016 and not .0025; elsewhere they are alike.

    References
    ----------
    .. [1] J. Fan, N. E. Heckman and M. P. Wand, "Local polynomial kernel regression for generalized linear models and
       quasi-likelihood functions", JASA 90 (1995), 141-150.

    Examples
    --------
    >>> from kernpool import LocalLogisticClassifier
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(300, 1))
    >>> y = np.where(rng.uniform(size=300) < x[:, 0], "yes", "no")
    >>> LocalLogisticClassifier().fit(x, y).predict_proba([[0.1], [0.9]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    bandwidth: Any = FOR_CLASSES
    _: KW_ONLY
    degree: int = 1
    gap: int = 0
    empty: str = "mean"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, time: Any = None) -> Self:
        """Find the windows of each class, and keep the rows.

        Parameters
        ----------
        X : array_like of shape (n, d), or frame
            Inputs, in memory.
        y : array_like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.
        groups : array_like of shape (n,), optional
            Cluster of each row: whole clusters are left out, and standard errors are cluster-robust.
        time : array_like of shape (n,), or str, optional
            Order of the rows, for `gap`, as of `LocalLikelihoodRegressor.fit`.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If labels are of one class, y is continuous, or as of `LocalLikelihoodRegressor.fit`.
        TypeError
            If X is a file, chunks or on Dask, or as of `LocalLikelihoodRegressor.fit`.

        Warns
        -----
        RepeatedRowsWarning, SuspectColumnWarning
            As of `LocalLikelihoodRegressor.fit`.
        """
        refuse_stored_rows(self, X, y, sample_weight)
        fit = self._new_fit()
        fit._check()
        by_row = {"sample_weight": sample_weight, "groups": groups, "time": time}
        key, code, label = read_rows(self, X, y, numbers=False, **by_row)
        counted = np.ones(len(label), dtype=np.bool_)
        if sample_weight is not None:
            counted = np.broadcast_to(as_real_array("sample_weight", sample_weight), counted.shape) > 0
        self.classes_ = one_hot(label[counted] if counted.any() else label, np.float64)[0]
        value = (label[:, None] == self.classes_).astype(np.float64)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()[0]!r}, and a fit learns nothing of it; add others"
            )
        self.fits_ = []
        for column in value.T[1:] if len(self.classes_) == 2 else value.T:
            fit = self._new_fit()
            for name in ("encoding_", "index_", "target_name_", "output_labels_"):
                setattr(fit, name, getattr(self, name))
            fit._fit_rows(X, key, code, np.ascontiguousarray(column), np.ones(len(key)), **by_row)
            self.fits_.append(fit)
        first = self.fits_[0]
        self.class_prior_ = class_prior(value, first.key_weight_)
        self.__dict__ |= {
            "key_": first.key_, "key_code_": code, "value_": value, "key_weight_": first.key_weight_,
            "exclusion_": first.exclusion_,
        }  # fmt: skip
        self._freeze()
        return self

    def _new_fit(self) -> LocalLikelihoodRegressor:
        given = self.get_params(deep=False) | {"family": "binomial"}
        if isinstance(self.bandwidth, str) and self.bandwidth == FOR_CLASSES:
            given["bandwidth"] = "regularised"
        fit = LocalLikelihoodRegressor(**given)
        fit._ridge = RIDGE
        return fit

    @property
    def _live_fits(self) -> list[LocalLikelihoodRegressor]:
        """The fits, which read new rows as this model says now."""
        check_is_fitted(self)
        return [as_fitted(fit, self) for fit in self.fits_]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict class probabilities.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m, n_classes)
            In the order of `classes_`, between 0 and 1.

        Warns
        -----
        ExtrapolationWarning, EmptyWindowWarning, RankDeficiencyWarning
            As of `LocalLikelihoodRegressor.predict`.
        """
        return normalised(self._means(X))

    def _means(self, X: ArrayLike) -> Array:
        """Return the probability of each class against the rest, with one warning of all."""
        found = [fit._means(X) for fit in self._live_fits]
        warn_of_prior(np.logical_or.reduce([by_prior for _, by_prior, _ in found]))
        return np.column_stack([mean for *_, mean in found])

    predict = NadarayaWatsonClassifier.predict

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Predict logarithms of class probabilities, as of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: ArrayLike) -> Array:
        """Return logits of the second class, or of each class against the rest.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
            The class with the largest, or with a positive logit the second one, is that of `predict`.
        """
        check_is_fitted(self)
        found = self.fits_[0]._family.link(self._means(X))
        return found if found.shape[1] > 1 else found[:, 0]

    def probability_interval(self, X: ArrayLike, level: float = 0.95) -> Interval:
        """Compute confidence intervals for class probabilities.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.95
            Confidence level, pointwise and for each class.

        Returns
        -------
        Interval
            Center and limits of shape (m, n_classes), those of `LocalLikelihoodRegressor.confidence_interval` of each
            class against the rest. NaN where the window is empty.
        """
        found = [fit.confidence_interval(X, level=level) for fit in self._live_fits]
        first = found[0]
        if len(found) == 1:
            found = [replace(first, center=1.0 - first.center, lower=1.0 - first.upper, upper=1.0 - first.lower), first]
        tables: dict[str, Any] = {
            name: np.column_stack([getattr(one, name) for one in found])
            for name in ("center", "lower", "upper", "standard_error")
        }
        return replace(first, **tables, axes=("class",), labels=self.classes_.copy())

    def leave_one_out(self) -> LeaveOneOutProbabilities:
        """Compute leave-one-out probabilities of the training rows, each of exact fits without the row.

        Returns
        -------
        LeaveOneOutProbabilities
            `prediction` and `probability` are the same, and `error` is their Brier score.
        """
        model = as_fitted(self)
        found = [fit.leave_one_out() for fit in model.fits_]
        probability = normalised(np.column_stack([one.prediction[:, 0] for one in found]))
        square = np.sum((probability - model.value_) ** 2, axis=1)
        error = float(np.average(square, weights=model.key_weight_))
        occupied = np.logical_and.reduce([one.occupied for one in found])
        return LeaveOneOutProbabilities(probability, error, occupied, probability.copy())

    def summary(self) -> Summary:
        """Summarise the fit: classes, windows (of more than two classes those of the first), and left-out scores.

        Returns
        -------
        Summary
            A record that prints well.
        """
        model = as_fitted(self)
        return summary_of_fit(model, model.fits_[0].places_, self.leave_one_out())
