"""Class probabilities of a fitted classifier with standard errors and intervals, and prediction sets of classes.

`ClassPrediction` keeps what is computed at given rows. `ClassProbabilities` includes the leave-one-out probabilities of
the training rows. `ClassSets` reads calibration rows; the sets themselves are defined in
`kernpool.conformal.sets`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import AnyArray, Array, Index
from kernpool.bandwidth import LeaveOneOut
from kernpool.conformal import PredictionSet, as_fraction
from kernpool.conformal.sets import SCORES, ClassRows, find_sets
from kernpool.data import labels_of_rows
from kernpool.estimators.fitted_model import places_of, windows_of
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.methods.prediction import PredictionBase, computed_once, prediction_at
from kernpool.estimators.methods.prediction_intervals import check_rows
from kernpool.estimators.model import FittedModel, as_fitted, holder_of
from kernpool.estimators.training_rows import as_labels
from kernpool.execution import as_level, check_choice, check_flag
from kernpool.execution.interval import Interval
from kernpool.inference import Probabilities, Summary, as_random
from kernpool.inference.class_probabilities import effective_rows, standard_errors, wilson_interval
from kernpool.inference.model_summary import summary_of_classes


def class_prior(label: AnyArray, weight: Array | None = None) -> Array:
    """Return the class priors: the weighted frequencies of the classes among one-hot labels.

    Parameters
    ----------
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.

    Returns
    -------
    ndarray of shape (k,)
        Frequencies, which add up to one.

    Examples
    --------
    >>> class_prior(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 1.0]))
    array([0.75, 0.25])
    """
    total = label.sum(axis=0, dtype=np.float64) if weight is None else weight @ label.astype(np.float64)
    return np.asarray(total / total.sum())


def mixed(pooled: AnyArray, prior: Array, share: float) -> AnyArray:
    """Shrink pooled one-hot labels (class probabilities) towards the class priors.

    Parameters
    ----------
    pooled : ndarray of shape (m, k)
        Probabilities. Rows of zeros or NaN, for empty windows, stay as they are.
    prior : ndarray of shape (k,)
        Priors.
    share : float
        Weight of the priors.

    Returns
    -------
    ndarray of shape (m, k)
        In the dtype of `pooled`.

    Examples
    --------
    >>> mixed(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([0.5, 0.5]), 0.25)
    array([[0.875, 0.125],
           [0.   , 0.   ]])
    """
    if not share:
        return pooled
    found = (1.0 - share) * pooled + share * pooled.sum(axis=1, keepdims=True) * prior
    return np.asarray(found, dtype=pooled.dtype)


@dataclass(frozen=True)
class LeaveOneOutProbabilities(LeaveOneOut):
    """Leave-one-out predictions of the training rows of a classifier, with class probabilities.

    Parameters
    ----------
    prediction, error, occupied
        As of `LeaveOneOut`: pooled one-hot labels, of shape (n, k), and their Brier score.
    probability : ndarray of shape (n, k)
        Leave-one-out probabilities as in `predict_proba`: with the priors of the other rows mixed in, within
        [0, 1].
    """

    probability: Array


class FittedClassifier(FittedModel):
    """Base class of what a fitted classifier holds beside what every model does."""

    classes_: AnyArray
    prior_share: Any
    prior_share_: float
    class_prior_: Array


@dataclass(frozen=True, eq=False, repr=False)
class ClassPrediction(PredictionBase):
    """Prediction of a classifier at given rows, made by ``model.get_prediction(X)``.

    Parameters
    ----------
    model, query, code, index
        As of `Prediction`.

    Notes
    -----
    Each property is computed when it is first used, and kept; arrays are read-only. The object holds on to the rows of
    the model at that time, never changes, and may be shared among threads.
    """

    model: FittedClassifier

    @computed_once
    def probability(self) -> Array:
        """Class probabilities, of shape (m, n_classes): what `predict_proba` returns, with its warnings."""
        model = self.model
        pooled = np.clip(self._pooled(), 0.0, 1.0)  # rounding may leave -1e-17
        return mixed(pooled, model.class_prior_, model.prior_share_)

    def _predicted_classes(self) -> AnyArray:
        return np.asarray(self.model.classes_[self.probability.argmax(axis=1)])

    @computed_once
    def standard_error(self) -> Array:
        """Standard errors of the probabilities, of shape (m, n_classes); NaN where the window is empty.

        How much each would vary if the rows were drawn again, bias not counted, as `predict_proba` explains.
        """
        of = _independent(self.model)
        return standard_errors(of, self._places, warn=not self._recipe.warns_of_empty)

    @computed_once
    def _frequencies(self) -> tuple[Array, Array]:
        return effective_rows(_independent(self.model), self._places)

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Compute confidence intervals for class probabilities by Wilson's formula.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, pointwise and for each class.

        Returns
        -------
        Interval
            As of the `probability_interval` of the classifier, which has the formula.
        """
        level = as_level(level)
        center, rows = self._frequencies
        lower, upper = wilson_interval(center, rows[:, None], level)
        classes = self.model.classes_.copy()
        return Interval(
            center, lower, upper, level, "wilson", axes=("class",), labels=classes, effective_rows=rows,
            index=self.index,
        )  # fmt: skip


class MostProbableClass:
    """Mixin of classifiers with `predict_proba`: the most probable class."""

    def predict(self, X: ArrayLike) -> AnyArray:
        """Predict the most probable class of each query.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,)
            Labels; of equally probable classes the first.

        Warns
        -----
        ExtrapolationWarning
            As `predict_proba`.
        """
        model = cast(Any, self)
        shares = model.predict_proba(X)  # which says if nothing has been fitted
        labels: AnyArray = model.classes_[shares.argmax(axis=1)]
        return labels


class ClassProbabilities(FittedClassifier):
    """Mixin of classifiers: class probabilities with standard errors and confidence intervals."""

    @overload
    def predict_proba(self, X: ArrayLike, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict_proba(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict_proba(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        r"""Predict class probabilities: pooled one-hot labels, shrunk to the class priors.

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
            With `return_std`, if there are fewer than five rows, or the fit leaves rows out together (`exclusion_`).

        Warns
        -----
        EmptyWindowWarning
            If a window is empty, with ``empty="nan"``, ``"nearest"`` or `return_std`.
        ExtrapolationWarning
            If rows of X are far beyond the training rows.

        See Also
        --------
        probability_interval : Which is right where no row of a class is near, and standard errors are too small.

        Notes
        -----
        .. math:: \widehat{\mathrm{se}}_c(x)^2 = \sum_j \frac{l_j(x)^2}{w_j} \big([y_j = c] - \hat p_{-j,c}(x_j)\big)^2,
                  \qquad l_j = (1 - s)\, \alpha_j + s\, w_j / W

        with the leave-one-out probabilities of the rows. Priors are means of labels as well, and count; that the share
        s and the bandwidth were found on the rows does not. After the first call, which leaves each row out once, one
        pass for each class in addition to the two of the probabilities; of two classes both have the same.

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
        prediction = self.get_prediction(X)
        probability = prediction.probability.copy()
        return (probability, prediction.standard_error.copy()) if return_std else probability

    def get_prediction(self, X: ArrayLike) -> ClassPrediction:
        """Return the prediction at rows: probabilities, standard errors, intervals, weights, effective sample sizes.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points; they are copied.

        Returns
        -------
        ClassPrediction
            Nothing is computed before it is used, and nothing twice.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonClassifier
        >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
        >>> prediction = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y).get_prediction([[1.0], [3.5]])
        >>> prediction.probability.round(2), prediction.effective_sample_size.round(1)
        (array([[0.05, 0.95],
               [0.41, 0.59]]), array([3.8, 3.3]))
        """
        return prediction_at(ClassPrediction, self, X)

    def probability_interval(self, X: ArrayLike, level: float = 0.95) -> Interval:
        r"""Compute confidence intervals for class probabilities by Wilson's formula.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.95
            Confidence level, pointwise and for each class.

        Returns
        -------
        Interval
            With `center`, `lower` and `upper` of shape (m, n_classes), within [0, 1], and `effective_rows` of shape
            (m,). NaN where the window is empty.

        Raises
        ------
        ValueError
            If the level is invalid, or the fit leaves rows out together (`exclusion_`).

        Warns
        -----
        EmptyWindowWarning
            If a window is empty.
        ExtrapolationWarning
            If rows of X are far beyond the training rows.

        Notes
        -----
        The center is a local linear fit of the labels at the bandwidth times :math:`n^{-1/20}`, within [0, 1]:
        not what `predict_proba` returns, whose bias is about as large as its standard error. With
        its linear weights l the number of rows is :math:`1 / \sum_j l_j^2 / w_j`. Where nothing was seen of a class
        after n rows, the interval ends at :math:`z^2 / (n + z^2)`. Two passes over rows and places.

        At 95 percent it covers 92 to 95 percent of the true probabilities, on average over a square, of two and three
        classes with logistic probabilities in 80 to 1000 rows; fewer where 80 rows do not show a curve: 83 percent of
        .5 + .4 sin(3 x + z).

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
        >>> found.effective_rows.round(3), found.lower.round(3), found.upper.round(3)
        (array([3.889]), array([[0.   , 0.503]]), array([[0.497, 1.   ]]))
        """
        return self.get_prediction(X).confidence_interval(level)

    def leave_one_out(self) -> LeaveOneOutProbabilities:
        """Compute leave-one-out predictions at the fitted bandwidth, without rows that the fit leaves out together.

        Returns
        -------
        LeaveOneOutProbabilities
            With `prediction` of shape (n, n_classes), the pooled labels, their Brier score `error`, `occupied` and
            `empty_windows`; and `probability`, the same with the priors mixed in, as in `predict_proba`. For a row
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
        found = super().leave_one_out()  # of `KernelSmoother`
        probability = probabilities_of(self).of_others(found.prediction, found.occupied)
        return LeaveOneOutProbabilities(found.prediction, found.error, found.occupied, probability)

    def summary(self) -> Summary:
        """Summarise the fit: classes, bandwidths and leave-one-out scores.

        Returns
        -------
        Summary
            A record that prints well.

        Notes
        -----
        One pass over pairs of training rows, that of `leave_one_out`. The bandwidths were found on the same rows, so
        new rows are predicted somewhat worse.

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
          prior share             0.143
          leave-one-out log loss  0.08462
          leave-one-out accuracy  100.0%
        """
        model: FittedClassifier = as_fitted(self)
        return summary_of_fit(model, model, self.leave_one_out(), prior_share=model.prior_share_)


def summary_of_fit(
    model: FittedClassifier, places: FittedModel, found: LeaveOneOutProbabilities, **values: float
) -> Summary:
    """Summarise a classifier with the windows of `places`, and values of its own."""
    weight = smoother_of(places).weight
    own = np.sum(found.probability * model.value_, axis=1)
    right = found.probability.argmax(axis=1) == model.value_.argmax(axis=1)
    every = windows_of(model, places) | values
    every |= {
        "priors": dict(zip(model.classes_.tolist(), model.class_prior_.tolist(), strict=True)),
        "log_loss": float(weight @ -np.log(np.maximum(own, np.finfo(float).tiny)) / weight.sum()),
        "accuracy": float(weight @ right / weight.sum()),
        "alone": int(found.empty_windows),
    }
    return summary_of_classes(type(model).__name__, len(every["columns"]), every)


def probabilities_of(model: FittedClassifier) -> Probabilities:
    """Return smoother and weight of the class priors as `Probabilities`."""
    return Probabilities(smoother_of(model), float(model.prior_share_))


def _independent(model: FittedClassifier) -> Probabilities:
    """Return the `Probabilities` of a classifier; refuse one that was fitted to dependent rows."""
    refuse(model, "the variance of probabilities")
    return probabilities_of(model)


class ClassSets:
    """Mixin of classifiers: conformal prediction sets of classes."""

    classes_: AnyArray

    def _probability_at(self, X: ArrayLike, *, warn: bool = True) -> Array:
        """Return class probabilities for sets, which are the priors where a window is empty."""
        model = cast(FittedClassifier, self)
        return probabilities_of(model).at(places_of(model, X, warn=warn))

    def _left_out_classes(self) -> ClassRows:
        """Return leave-one-out probabilities and classes of the training rows of positive weight."""
        of = probabilities_of(cast(FittedClassifier, self))
        (kept,) = np.nonzero(of.weight > 0)
        return ClassRows(of.left_out[kept], np.argmax(of.label[kept], axis=1), of.weight[kept])

    def predict_set(
        self,
        X: ArrayLike,
        level: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        random_state: Any = None,
    ) -> PredictionSet:
        r"""Compute conformal prediction sets: sets that contain the class of a new row with a given probability.

        .. math:: C(x) = \{ c : s_c(x) \le S_{(k)} \}, \qquad k = \lceil \mathrm{level} \cdot (n + 1) \rceil

        with the k-th smallest of the scores that n calibration rows have at their own classes.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.9
            Probability that a set holds the class.
        method : {"lac", "aps"}, default="lac"
            ``"lac"``: all classes whose probability is large enough, :math:`s_c = 1 - p_c`; the smallest sets on
            average [1]_. ``"aps"``: the most probable classes up to a mass, the last one at random [2]_; larger where
            the model is unsure.
        by_class : bool, default=False
            Whether the level is to hold for rows of each class, by one threshold per class: rare classes are missed as
            seldom as others, for larger sets.
        allow_empty : bool, default=False
            Whether a set may be empty. By default it holds the most probable class at least, which can only raise the
            coverage. True gives the sets of the literature, the smallest of the level: an empty one says that no class
            is probable enough, typically between classes when the classifier is accurate.
        X_calibration : array_like of shape (n_calibration, d), optional
            Rows that the model was not fitted to; by default the training rows calibrate, each left out.
        y_calibration : array_like of shape (n_calibration,), optional
            Their labels.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws of ``"aps"``, one uniform number for each row that calibrates and each
            place, in this order. None draws anew in every call, so that the sets of a point differ between calls.

        Returns
        -------
        PredictionSet
            With `member`, a table of shape (m, n_classes), `labels`, `threshold` and `guarantee`, one honest sentence.

        Raises
        ------
        ValueError
            If the level, the method or the calibration rows are invalid, or only one of `X_calibration` and
            `y_calibration` is given; or if these have classes that the training rows do not have, or one of them has an
            empty window and ``empty="raise"``.
        TypeError
            If X is chunks or the name of a file.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, with the least number that is enough. Sets hold all classes then.
        ExtrapolationWarning
            If rows of X are far beyond the training rows.

        Notes
        -----
        With calibration rows that are exchangeable with new ones every method holds the level, whatever the model; with
        n rows without ties by at most 1/(n + 1) more. With the training rows sets are approximate, and `guarantee` says
        why: bandwidths that leave-one-out likes best make leave-one-out scores a little too small. The level is an
        average over places.

        Where a window is empty, sets are made of the class priors, unless ``empty="raise"``. Weights are frequencies: a
        row of weight 3 calibrates as three. One pass over the training rows, which the model keeps, and one over rows
        and places.

        References
        ----------
        .. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels",
           JASA 114 (2019), 223-234.
        .. [2] Y. Romano, M. Sesia and E. J. Candes, "Classification with valid and adaptive coverage", NeurIPS (2020).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernpool import NadarayaWatsonClassifier
        >>> iris = load_iris()
        >>> X, y = iris.data[:, 2:], iris.target_names[iris.target]
        >>> model = NadarayaWatsonClassifier(bandwidth=0.3, prior_share=0.01).fit(X, y)
        >>> found = model.predict_set([[1.5, 0.2], [4.9, 1.7]], level=0.98)
        >>> found.labels
        [['setosa'], ['versicolor', 'virginica']]
        """
        model = as_fitted(cast(Any, self))
        local = holder_of(model)
        refuse(local, "predict_set")
        check_choice("method", method, SCORES)
        check_flag("by_class", by_class)
        check_flag("allow_empty", allow_empty)
        fraction, others = as_fraction(level), _calibration_rows(model, X_calibration, y_calibration)
        found = find_sets(
            model._probability_at(X),
            others or model._left_out_classes(),
            model.classes_.copy(),
            fraction,
            method,
            as_random(random_state),
            of=None if others else local.smoother_,
            by_class=bool(by_class),
            allow_empty=bool(allow_empty),
        )
        return replace(found, index=labels_of_rows(X))


def _calibration_rows(model: ClassSets, X: Any, y: Any) -> ClassRows | None:
    """Return class probabilities and true classes of the calibration rows; None if none are given."""
    if not check_rows(X, y, None):
        return None
    try:
        probability, label = model._probability_at(X, warn=False), as_labels(y)
    except (ValueError, TypeError) as error:
        raise type(error)(f"X_calibration or y_calibration: {error}") from None
    if len(label) != len(probability):
        raise ValueError(
            f"y_calibration must have one label for each row of X_calibration, {len(probability)}, got {len(label)}"
        )
    return ClassRows(probability, _class_indices(model.classes_, label), np.ones(len(label)))


def _class_indices(classes: AnyArray, label: AnyArray) -> Index:
    """Return the class index of each calibration label; raise for labels that are not among the classes."""
    position = {name: number for number, name in enumerate(classes.tolist())}
    given = label.tolist()
    unseen = sorted({repr(name) for name in given if name not in position})
    if unseen:
        shown = ", ".join(unseen[:5]) + ", ..." * (len(unseen) > 5)
        raise ValueError(
            f"y_calibration has classes that no training row has: {shown}; the classes are "
            f"{', '.join(map(repr, classes.tolist()))}. Fit the model to rows of all classes; without these rows, sets "
            "are for new rows of the known classes alone"
        )
    return np.array([position[name] for name in given], dtype=np.intp)
