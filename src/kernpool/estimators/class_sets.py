"""Sets of classes of a fitted classifier; what they are, `kernpool.conformal.sets` says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.conformal.class_results import PredictionSet
from kernpool.conformal.class_scores import ClassRows
from kernpool.conformal.levels import COPIED, FRACTIONS, LONELY, are_copied, lonely_levels
from kernpool.conformal.ranks import as_level
from kernpool.conformal.sets import SET_METHODS, SetSetting, find_sets
from kernpool.estimators.calibrating import check_rows, origin_of
from kernpool.estimators.class_probabilities import probabilities_of
from kernpool.estimators.labels import as_labels
from kernpool.estimators.smoothing_rows import need_rows, places_of
from kernpool.execution.messages import abbreviate, check_choice
from kernpool.inference.draws import as_random
from kernpool.inference.probabilities import Probabilities
from kernpool.inference.smoother import Places

Array = NDArray[np.float64]


class ClassSets:
    """Sets of classes that hold the class of the next row with a given probability."""

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
        r"""Find sets of classes that hold the class of a new row with a given probability, by conformal prediction.

        .. math:: C(x) = \{ c : s_c(x) \le S_{(k)} \}, \qquad k = \lceil \mathrm{level} \cdot (n + 1) \rceil

        with the k-th smallest of the scores that n calibration rows have at their own classes.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        level : float, default=0.9
            Probability that a set holds the class.
        method : {"lac", "aps", "raps", "full"}, default="lac"
            ``"lac"``: all classes whose probability is large enough, :math:`s_c = 1 - p_c`; the smallest sets on
            average [1]_. ``"aps"``: the most probable classes up to a mass, the last one at random [2]_; larger where
            the model is unsure.
            ``"raps"``: the same with a penalty on improbable classes, for many classes [3]_. ``"full"``: for each class
            the p-value that it would have as one more row of the fit, with the scores of ``"lac"``; exact without rows
            that are kept from the fit.
        by_class : bool, default=False
            Whether the level is to hold for rows of each class, by one threshold per class: rare classes are missed as
            seldom as others, for larger sets.
        allow_empty : bool, default=False
            Whether a set may be empty. By default it holds the most probable class at least, which can only raise the
            coverage. True gives the sets of the literature, the smallest of the level: an empty one says that no class
            is probable enough, typically between classes when the classifier is accurate. With `recalibrate` the most
            probable class is that before the map, which need not be that of `predict`.
        X_calibration : array_like of shape (n_calibration, d), optional
            Rows that the model was not fitted to; by default the training rows calibrate, each left out. Not for
            ``"full"``.
        y_calibration : array_like of shape (n_calibration,), optional
            Their labels.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws of ``"aps"`` and ``"raps"``, one uniform number for each row that calibrates and each
            place, in this order. None draws anew in every call, so that sets of a place differ between calls.

        Returns
        -------
        PredictionSet
            With `member`, a table of shape (m, n_classes), `labels`, `threshold` and `guarantee`, one honest sentence.

        Raises
        ------
        ValueError
            If the level, the method, or the calibration rows are none, or only one of `X_calibration` and
            `y_calibration` is given; if these have classes that the training rows do not have, or one of them has an
            empty window and ``empty="raise"``; or for ``"full"``, if there are calibration rows, or the model was
            fitted with `groups`.
        TypeError
            If X is chunks or the name of a file.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, with the least number that is enough. Sets hold all classes then.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        With calibration rows that are exchangeable with new ones every method holds the level, whatever the model; with
        n rows without ties by at most 1/(n + 1) more. So does ``"full"`` with the training rows, if the bandwidth and
        `prior_share` were given as numbers. Else sets are approximate, and `guarantee` says why: bandwidths that
        leave-one-out likes best make leave-one-out scores a little too small. The level is an average over places.

        Sets are made of the probabilities before `recalibrate`, because thresholds are a calibration of their own, and
        steps of an isotonic map would tie their scores. Where a window is empty they are made of the class priors,
        unless ``empty="raise"``. Weights are frequencies: a row of weight 3 calibrates as three. ``"raps"`` chooses its
        penalty by leave-one-out on the training rows. One pass over the training rows, which the model keeps, and one
        over rows and places; ``"full"`` takes O(n m n_classes) time.

        References
        ----------
        .. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels",
           JASA 114 (2019), 223-234.
        .. [2] Y. Romano, M. Sesia and E. J. Candes, "Classification with valid and adaptive coverage", NeurIPS (2020).
        .. [3] A. N. Angelopoulos, S. Bates, J. Malik and M. I. Jordan, "Uncertainty sets for image classifiers using
           conformal prediction", ICLR (2021).
        .. [4] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World" (2005), chapters 2 and 4.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kernpool import NadarayaWatsonClassifier
        >>> iris = load_iris()
        >>> X, y = iris.data[:, 2:], iris.target_names[iris.target]
        >>> model = NadarayaWatsonClassifier(bandwidth=0.3, prior_share=0.01).fit(X, y)
        >>> found = model.predict_set([[1.5, 0.2], [4.9, 1.7]], level=0.98, method="full")
        >>> found.labels
        [['setosa'], ['versicolor', 'virginica']]
        """
        need_rows(self, "sets of classes need")
        check_choice("method", method, SET_METHODS)
        for name, value in (("by_class", by_class), ("allow_empty", allow_empty)):
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {abbreviate(value)}")
        model: Any = self
        exact, of = as_level(level), probabilities_of(model)
        if method == "full":
            _check_full(of, X_calibration, y_calibration)
        places = places_of(model, X)
        setting = SetSetting(
            of,
            places,
            model.classes_.copy(),
            exact,
            as_random(random_state),
            by_class=bool(by_class),
            allow_empty=bool(allow_empty),
            others=_calibration_rows(model, of, X_calibration, y_calibration),
            doubt=_doubt(model, places, of),
        )
        return find_sets(setting, method)


def _check_full(of: Probabilities, X_calibration: Any, y_calibration: Any) -> None:
    if X_calibration is not None or y_calibration is not None:
        raise ValueError(
            "method='full' calibrates by the training rows themselves; leave X_calibration and y_calibration out, or "
            "use method='lac'"
        )
    if of.group is not None:
        raise ValueError(
            "method='full' takes rows as exchangeable, and this model was fitted with groups; use method='lac', with "
            "calibration rows of other groups"
        )


def _calibration_rows(model: Any, of: Probabilities, X: Any, y: Any) -> ClassRows | None:
    """Read rows that calibrate, and find their probabilities; None if there are none."""
    if not check_rows(X, y, None):
        return None
    try:
        places, label = places_of(model, X, warn=False), as_labels(y)
        probability = of.at(places)[0]
    except (ValueError, TypeError) as error:
        raise type(error)(f"X_calibration or y_calibration: {error}") from None
    if len(label) != len(places.query):
        raise ValueError(
            f"y_calibration must have one label for each row of X_calibration, {len(places.query)}, got {len(label)}"
        )
    return ClassRows(probability, _numbers(model.classes_, label), np.ones(len(label)))


def _numbers(classes: NDArray[Any], label: NDArray[Any]) -> NDArray[np.intp]:
    """Return which class each label is, and refuse those that are none."""
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


def _doubt(model: Any, places: Places, of: Probabilities) -> str:
    """Return why statements about a new row and the training rows are approximate; empty if they are exact."""
    if of.group is None and are_copied(of.smoother, of.label):
        return COPIED
    found = ["the bandwidth"] * (origin_of(model) == "found")
    found += ["the share of the priors"] * (model.prior_share != model.prior_share_)
    if found:
        return f"{' and '.join(found)} {'was' if len(found) == 1 else 'were'} found on the rows that calibrate the sets"
    ranked = not (isinstance(model.scale, str) and model.scale == "raw")
    if ranked:
        return "columns are compared by ranks that count the training rows"
    if lonely_levels(model.key_code_, places.code, of.weight):
        return LONELY
    return "" if np.all(of.weight == np.floor(of.weight)) else FRACTIONS
