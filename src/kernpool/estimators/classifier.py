"""Nadaraya-Watson classification as a scikit-learn estimator.

The values are one-hot labels, so the pooled values are probabilities of the classes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from kernpool._arrays import AnyArray
from kernpool.bandwidth.criteria import prior_of_others, prior_share
from kernpool.core import Exclusion
from kernpool.data import Chunks
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.methods.classification import ClassProbabilities, ClassSets, class_prior
from kernpool.estimators.model import check_parameters, with_parameters
from kernpool.estimators.training_rows import Scoring, one_hot, read_rows, refuse_formula


# Scikit-learn is not typed.
@with_parameters
class NadarayaWatsonClassifier(ClassSets, ClassProbabilities, Scoring, ClassifierMixin, KernelSmoother):  # type: ignore[misc]
    r"""Nadaraya-Watson (local constant) kernel classification.

    .. math:: \hat p_c(x) = (1 - s) \frac{\sum_j w_j K((x - x_j)/h)\, [y_j = c]}{\sum_j w_j K((x - x_j)/h)}
              + s\, \pi_c

    with the class priors :math:`\pi_c = \sum_j w_j [y_j = c] / \sum_j w_j` and their weight s.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`.
    bandwidth : float, array_like of shape (d,), or name, default="log_loss"
        As in `NadarayaWatsonRegressor`; ``"loo"`` minimises the leave-one-out Brier score.
        ``"log_loss"`` minimises the leave-one-out log loss, with a penalty on narrow windows: the better probabilities
        where rows are few for their columns; see `kernpool.bandwidth.search.log_loss`.
    prior_share : "loo" or float in [0, 1), default="loo"
        Weight of the class priors in every probability. ``"loo"`` finds the one of least leave-one-out log loss,
        between 1/(n + 1) and n/(n + 1), by one pass over the training rows after the search. 0.0 gives the pooled
        labels as they are; a probability is then exactly zero for a class that is in no window.
    unordered, ordered, categorical_kernel
        As in `NadarayaWatsonRegressor`.
    smoothing, unseen, window, search
        As in `NadarayaWatsonRegressor`; the floor of effective rows is 12 with ``"log_loss"`` and ``"regularised"``,
        and ``Nearest()`` minimises the squared error of the probabilities (Brier).
    empty : {"mean", "nearest", "nan", "zero", "raise"}, default="mean"
        Probabilities where no training row lies within the kernel's support. ``"mean"`` gives the class priors; with
        ``"nan"`` and ``"zero"`` such rows have probabilities of that kind and no predicted class; with ``"nearest"``
        the priors are mixed in as anywhere else.
    periodic, geographic : dict and pair of columns, or None, default=None
        Columns that come round, and latitude and longitude, as in `NadarayaWatsonRegressor`.
    n_jobs : int or None, default=None
        Threads; None is 1 unless in a ``joblib.parallel_config`` context, -1 all processors, -2 all but one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class priors: weighted class frequencies of the training rows.
    prior_share_ : float
        The weight of the class priors in `predict_proba`. Where the search for ``bandwidth="log_loss"`` drew rows
        (``"auto"``), ``"loo"`` finds it by the rows held out, in windows of the bandwidth alone.
    loo_error_ : float
        Leave-one-out Brier score of the pooled labels without the priors, the squared error summed over classes; only
        with ``bandwidth="loo"``. Where the search drew rows (``"auto"``) it is the Brier score of the
        rows held out.
    key_, value_, key_weight_ : ndarray
        The training rows, one-hot labels and weights.
    bandwidth_, smoothing_, encoding_, relevance_, bandwidth_search_, loo_empty_windows_, window_
        As in `NadarayaWatsonRegressor`.
    n_features_in_, feature_names_in_
        As in `NadarayaWatsonRegressor`.

    See Also
    --------
    NadarayaWatsonRegressor : The same for numbers, with the notes on cost.

    Notes
    -----
    The Brier score is a proper scoring rule, so its minimum asks for honest probabilities and not only for the right
    class [1]_. Costs are those of `NadarayaWatsonRegressor` with one output per class.

    Where classes hardly overlap, the best windows hold one neighbour each, and the pooled probability of the right
    class may be 1e-40, which no number of rows can tell. The weight of the priors is what leave-one-out proves: at
    least that of Laplace's rule of succession, 1/(n + 1), by which no probability is less than :math:`\pi_c/(n + 1)`. A
    constant weight is Cestnik's m-estimate with :math:`s = m/(n + m)` [2]_, found as in deleted interpolation [3]_.

    `attention_weights` are those of the pooled labels: times the one-hot labels they give the probabilities before the
    priors are mixed in, and so does the `prediction` of `leave_one_out`; its `probability` includes them.

    References
    ----------
    .. [1] G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78 (1950),
       1-3.
    .. [2] B. Cestnik, "Estimating probabilities: a crucial task in machine learning", ECAI 1990, 147-149.
    .. [3] F. Jelinek and R. L. Mercer, "Interpolated estimation of Markov source parameters from sparse data", Pattern
       Recognition in Practice (1980), 381-397.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonClassifier
    >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
    >>> model = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y)
    >>> model.predict([[0.5], [4.0]]).tolist()
    ['low', 'high']

    Far away one neighbour decides, and leave-one-out has not seen more than six rows that were right:

    >>> round(model.prior_share_, 3), model.class_prior_.round(3)
    (0.143, array([0.333, 0.667]))
    >>> model.predict_proba([[3.0], [12.0]]).round(3)
    array([[0.15 , 0.85 ],
           [0.905, 0.095]])
    >>> model.set_params(prior_share=0.0).fit(X, y).predict_proba([[3.0], [12.0]]).round(3)
    array([[0.12, 0.88],
           [1.  , 0.  ]])
    """

    _standardise = False  # one-hot labels have the same unit
    _floor = 12.0  # probabilities of fewer rows are too sure

    bandwidth: Any = "log_loss"
    _: KW_ONLY
    empty: str = "mean"
    prior_share: Any = "loo"

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> NadarayaWatsonClassifier:
        """Store the training rows, and choose the bandwidth and the weight of the class priors.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs.
        y : array_like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.
        groups : array_like of shape (n,), optional
            Which cluster each row belongs to, as in `NadarayaWatsonRegressor.fit`: the search, and the share of the
            priors, predict every row from the rows of all other clusters.

        Returns
        -------
        NadarayaWatsonClassifier
            Itself.

        Raises
        ------
        ValueError
            If X holds NaN or infinity, a cell or label is missing, y is continuous, shapes do not match, or a parameter
            is out of its range; or as for the groups of `NadarayaWatsonRegressor.fit`.

        Warns
        -----
        RepeatedRowsWarning, SuspectColumnWarning
            As for `NadarayaWatsonRegressor.fit`.
        """
        refuse_formula(X, y)
        if isinstance(X, Chunks | str | Path):
            raise TypeError(
                "NadarayaWatsonClassifier takes rows in memory; for rows in chunks fit NadarayaWatsonRegressor to one "
                "column of 0 and 1 per class, whose predictions are the probabilities"
            )
        check_parameters(self)  # some of them say how rows are read
        key, code, label = read_rows(self, X, y, numbers=False, sample_weight=sample_weight, groups=groups)
        classes, _, value = one_hot(label, key.dtype)
        exclusion = None if groups is None else Exclusion.of_groups(groups, len(key))
        self._fit_pairs(key, code, value, sample_weight, exclusion)
        self._find_priors()
        self.classes_ = classes
        return self

    def _find_priors(self) -> None:
        """Find the class priors and their weight."""
        label, weight, share = self.value_.astype(np.float64), self.key_weight_, self.prior_share
        self.class_prior_ = class_prior(label, weight)
        rows, pooled = len(label) if weight is None else float(weight.sum()), np.zeros(label.shape)
        if share == "loo":  # where rows were held out it is known: to leave out each of 1e5 took two of three parts
            share = getattr(self, "prior_share_", share)
        if share == "loo":
            if rows > 1.0:
                pooled = KernelSmoother.leave_one_out(self).prediction
            own = np.sum(label * pooled, axis=1)
            share = prior_share(own, prior_of_others(label, weight, self.exclusion_), weight).share
        self.prior_share_ = float(share)

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

        Raises
        ------
        ValueError
            If a window is empty and `empty` is ``"nan"`` or ``"zero"``, since then no class is more probable.

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning
            As `predict_proba`.
        """
        probability = self.predict_proba(X)
        nothing = ~(probability.sum(axis=1) > 0)
        if nothing.any():
            raise ValueError(
                f"{np.count_nonzero(nothing)} of {len(probability)} rows have no training row within the kernel's "
                f"support and empty={self.empty!r} gives them no class; use empty='mean' or 'nearest'"
            )
        labels: AnyArray = self.classes_[probability.argmax(axis=1)]
        return labels
