"""Probabilities of a fitted classifier: how sure they are, and those of its own rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth import LeaveOneOut
from kernpool.bandwidth.prior_share import priors_of_others
from kernpool.core.keys import Prepared
from kernpool.estimators.fitted import pool_at
from kernpool.estimators.labels import mixed
from kernpool.estimators.recalibration import recalibrated
from kernpool.estimators.smoothing_rows import fit_of_rows, places_of, printed_columns, smoother_of
from kernpool.execution.messages import check_flag
from kernpool.inference.intervals import check_level
from kernpool.inference.probabilities import Probabilities, effective_rows, standard_errors
from kernpool.inference.summary import ClassSummary
from kernpool.inference.wilson import ProbabilityInterval, wilson_interval
from kernpool.kernels import get_kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LeaveOneOutProbabilities(LeaveOneOut):
    """Leave-one-out predictions of the training rows of a classifier.

    Parameters
    ----------
    prediction, error, occupied
        As of `LeaveOneOut`: pooled one-hot labels, of shape (n, k), and their Brier score.
    probability : ndarray of shape (n, k)
        What `predict_proba` says of each row without it: the share of the priors of the other rows mixed in, within
        [0, 1]. Before `recalibrate`, whose map is found on these.
    """

    probability: Array


class ClassProbabilities:
    """Probabilities of classes, their standard errors and intervals."""

    @overload
    def predict_proba(self, X: ArrayLike, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict_proba(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict_proba(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        r"""Pool the one-hot labels, and mix in the share of the class priors; then recalibrate, if asked to.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        return_std : bool, default=False
            Whether to return the standard errors of the probabilities too.

        Returns
        -------
        probability : ndarray of shape (m, n_classes)
            Probabilities in the order of `classes_`.
        std : ndarray of shape (m, n_classes)
            Only with `return_std`: how much each would vary if the rows were drawn again, bias not counted. NaN where
            the window is empty, whatever `empty` says.

        Raises
        ------
        ValueError
            With `return_std`, if there are fewer than five rows, or the model was fitted with `groups`.

        Warns
        -----
        EmptyWindowWarning
            If a window is empty, with ``empty="nan"``, ``"nearest"`` or `return_std`.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        probability_interval : Which is right where no row of a class is near, and standard errors are too small.

        Notes
        -----
        .. math:: \widehat{\mathrm{se}}_c(x)^2 = \sum_j \frac{l_j(x)^2}{w_j} \big([y_j = c] - \hat p_{-j,c}(x_j)\big)^2,
                  \qquad l_j = (1 - s)\, \alpha_j + s\, w_j / W

        with the leave-one-out probabilities of the rows. Priors are means of labels as well, and count; that the share
        s and the bandwidth were found on the rows does not. With ``recalibrate="isotonic"`` it is the standard error
        of the probability before the map, whose steps have none. After the first call, which leaves each row out once,
        one pass for each class beside the two of the probabilities; of two classes both have the same.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonClassifier
        >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
        >>> model = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y)
        >>> probability, std = model.predict_proba([[1.0], [3.5]], return_std=True)
        >>> probability.round(2)
        array([[0.05, 0.95],
               [0.41, 0.59]])
        >>> std.round(2)
        array([[0.03, 0.03],
               [0.05, 0.05]])
        """
        check_flag("return_std", return_std)
        model: Any = self
        pooled = np.clip(pool_at(model, X, model._report_rank), 0.0, 1.0)  # rounding may leave -1e-17
        probability = mixed(pooled, model.class_prior_, model.prior_share_)
        map_ = vars(model).get("recalibration_")
        probability = probability if map_ is None else recalibrated(probability, map_)
        if not return_std:
            return probability
        of, places = _independent(model, "standard errors"), places_of(model, X, warn=False)
        return probability, standard_errors(of, places, warn=model.empty not in ("nan", "nearest"))

    def probability_interval(self, X: ArrayLike, level: float = 0.95) -> ProbabilityInterval:
        r"""Find intervals for the probabilities of classes, by Wilson's formula.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        level : float, default=0.95
            Probability that an interval covers; each place and class by itself.

        Returns
        -------
        ProbabilityInterval
            With `center`, `lower` and `upper` of shape (m, n_classes), within [0, 1], and `effective_rows` of shape
            (m,). NaN where the window is empty.

        Raises
        ------
        ValueError
            If the level is none, or the model was fitted with `groups`.

        Warns
        -----
        EmptyWindowWarning
            If a window is empty.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        The number of rows is :math:`1 / \sum_j \alpha_j^2 / w_j`, Kish's number in unit rows. The center is pooled
        labels, without the share of the priors and before `recalibrate`: relative frequencies of what was seen around
        x, which need not be what `predict_proba` returns. Where nothing was seen of a class after n rows, the interval
        ends at :math:`z^2 / (n + z^2)`.

        The bias of pooling is not taken off: the interval is for the mean of the class in the window of x. Two passes
        over rows and places.

        References
        ----------
        .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927),
           209-212.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonClassifier
        >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
        >>> model = NadarayaWatsonClassifier("boxcar", bandwidth=2.0).fit(X, y)
        >>> found = model.probability_interval([[1.0]])
        >>> found.effective_rows.round(6), found.lower.round(3), found.upper.round(3)
        (array([4.]), array([[0.  , 0.51]]), array([[0.49, 1.  ]]))
        """
        check_level(level)
        model: Any = self
        center, rows = effective_rows(_independent(model, "intervals"), places_of(model, X))
        lower, upper = wilson_interval(center, rows[:, None], float(level))
        return ProbabilityInterval(center, lower, upper, rows, model.classes_.copy(), float(level))

    def leave_one_out(self) -> LeaveOneOutProbabilities:
        """Predict every training row from the others, at the fitted bandwidth; from the other groups, if it has any.

        Returns
        -------
        LeaveOneOutProbabilities
            With `prediction` of shape (n, n_classes), the pooled labels, their Brier score `error`, `occupied` and
            `empty_windows`; and `probability`, the same with the share of the priors, as in `predict_proba`. For a row
            of weight 3 one unit is left out.

        Notes
        -----
        No row has a voice in its own probability, so these show how well the model is calibrated, without rows that are
        kept from it: ``CalibrationDisplay.from_predictions(y, model.leave_one_out().probability[:, 1])``. The bandwidth
        has seen all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.calibration import calibration_curve
        >>> from kernpool import NadarayaWatsonClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(500, 1))
        >>> y = rng.uniform(size=500) < X[:, 0]
        >>> model = NadarayaWatsonClassifier(bandwidth=0.1).fit(X, y)
        >>> observed, said = calibration_curve(y, model.leave_one_out().probability[:, 1], n_bins=4)
        >>> said.round(2), observed.round(2)
        (array([0.16, 0.36, 0.62, 0.86]), array([0.15, 0.34, 0.61, 0.88]))
        """
        found = super().leave_one_out()  # type: ignore[misc]  # of `KernelSmoother`
        model: Any = self
        label, weight = np.asarray(model.value_, dtype=np.float64), model.key_weight_
        probability = self._left_out_probability(found.prediction, label, weight)
        return LeaveOneOutProbabilities(found.prediction, found.error, found.occupied, probability)

    def summary(self) -> ClassSummary:
        """Sum up the fit: classes, bandwidths, and how well each row is predicted from the others.

        Returns
        -------
        ClassSummary
            A record that prints well.

        Notes
        -----
        One pass over pairs of training rows, that of `leave_one_out`; after a fit with `groups` whole clusters are left
        out. The bandwidths were found on the same rows, so new rows are predicted somewhat worse.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonClassifier
        >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
        >>> print(NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y).summary())
        NadarayaWatsonClassifier: 6 rows, 1 column, 2 classes
        kernel gaussian, bandwidth as given
        <BLANKLINE>
          column  bandwidth  relevance
          0       1
        <BLANKLINE>
          classes                 high 33.3%, low 66.7%
          share of the priors     0.143
          leave-one-out log loss  0.08462
          leave-one-out accuracy  100.0%
        """
        model: Any = self
        found, weight = self.leave_one_out(), model.key_weight_
        weight = np.ones(len(model.key_)) if weight is None else weight
        own = np.sum(found.probability * model.value_, axis=1)
        right = found.probability.argmax(axis=1) == model.value_.argmax(axis=1)
        name = model.bandwidth
        return ClassSummary(
            title=type(self).__name__,
            kernel=get_kernel(model.kernel).name,
            chosen=f"bandwidth by {name!r}" if isinstance(name, str) else "bandwidth as given",
            columns=printed_columns(model),
            rows=float(weight.sum()),
            priors=dict(zip(model.classes_.tolist(), model.class_prior_.tolist(), strict=True)),
            prior_share=model.prior_share_,
            left_out="row" if vars(model).get("key_group_") is None else "cluster",
            log_loss=float(weight @ -np.log(np.maximum(own, np.finfo(float).tiny)) / weight.sum()),
            accuracy=float(weight @ right / weight.sum()),
            empty_windows=int(found.empty_windows),
        )

    def _left_out_probability(self, pooled: Array, label: Array, weight: Array | None) -> Array:
        """Mix the share of the priors of the other rows into pooled labels of the other rows."""
        model: Any = self
        prior, share = priors_of_others(label, weight, vars(model).get("key_group_")), model.prior_share_
        return np.asarray((1.0 - share) * np.clip(pooled, 0.0, 1.0) + share * prior)


def probabilities_of(model: Any) -> Probabilities:
    """Return the rows of a fitted classifier and how probabilities are pooled; what is left out is kept per fit."""
    smoother = smoother_of(model)
    label, group = np.asarray(model.value_, dtype=np.float64), vars(model).get("key_group_")
    recipe = smoother.recipe  # parameters that a caller may change after the fit count as they are now
    of = group, recipe.algorithm, recipe.empty, recipe.n_jobs, float(model.prior_share_), *fit_of_rows(model, smoother)
    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    return prepared.get("probabilities", of, lambda: Probabilities(smoother, label, float(model.prior_share_), group))


def _independent(model: Any, what: str) -> Probabilities:
    """Return the same of a model whose rows are independent."""
    of = probabilities_of(model)
    if of.group is not None:
        raise ValueError(
            f"{what} of probabilities count rows as independent, and this model was fitted with groups; fit "
            "NadarayaWatsonRegressor(bandwidth=model.bandwidth_) to 1.0 * (y == label) with the same groups, whose "
            "standard_error and confidence_interval count clusters"
        )
    return of
