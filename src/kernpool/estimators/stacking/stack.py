r"""A fitted stack of members as one linear smoother: predictions, linear weights and leave-one-out predictions.

Every member is a linear smoother of the same training rows, and so is their average: its linear weights are the
averages of theirs, and so are its leave-one-out predictions. The weights of the members

.. math:: \hat\pi = \arg\min_{\pi_m \ge 0,\; \sum_m \pi_m = 1}
          \sum_i w_i \Big( y_i - \sum_m \pi_m\, \hat y^{(m)}_{-i} \Big)^2

are those of stacking [1]_, non-negative [2]_, with a sum of one [3]_. They fit the noise of the leave-one-out errors
too, so they go half way to equal weights: of three members each has between 1/6 and 2/3.

For class probabilities the criterion is the leave-one-out log likelihood of the mixture, whose weights the EM algorithm
finds [4]_; scores become probabilities by a multinomial logistic regression.

References
----------
.. [1] D. Wolpert, "Stacked generalization", Neural Networks 5 (1992), 241-259.
.. [2] L. Breiman, "Stacked regressions", Machine Learning 24 (1996), 49-64.
.. [3] B. Hansen and J. Racine, "Jackknife model averaging", Journal of Econometrics 167 (2012), 38-46.
.. [4] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive distributions",
   Bayesian Analysis 13 (2018), 917-1007.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression

from kernpool._arrays import Array, Codes, Index
from kernpool.bandwidth import TrainingRows
from kernpool.core import Exclusion, Units
from kernpool.data import labels_of_rows
from kernpool.estimators.fitted_model import read_query
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.limits import smoother_of
from kernpool.estimators.methods.inference import Prediction
from kernpool.estimators.stacking.kernel_ridge import KernelRidge, blocks_of, fit_table
from kernpool.estimators.stacking.ridge_kernels import AnovaKernel, LaplaceKernel, RidgeKernel
from kernpool.estimators.stacking.standard_columns import StandardColumns, spread_of
from kernpool.execution import blas_threads
from kernpool.inference import as_random

TOWARDS_EQUAL = 0.5
STEPS, CHANGE = 1000, 1e-10  # of the EM algorithm, at most, and when it ends
INVERSE_PENALTY = 10.0  # of the logistic regression


@dataclass(frozen=True, eq=False)
class FittedStack:
    """Members of a stacked regression, fitted to the same rows, and their weights.

    Parameters
    ----------
    local : KernelSmoother
        The fitted local estimator, which holds the training rows.
    columns : StandardColumns
        How rows become columns of the global members.
    ridges : dict of str to KernelRidge
        The global members, fitted to the rows of positive weight.
    local_left_out : ndarray of shape (n, c)
        Leave-one-out predictions of the local estimator at the rows of positive weight.
    mixing : ndarray of shape (members,)
        Weights of the members.
    """

    local: KernelSmoother
    columns: StandardColumns
    ridges: dict[str, KernelRidge]
    local_left_out: Array
    mixing: Array

    @classmethod
    def of(cls, local: KernelSmoother, random_state: Any) -> FittedStack:
        """Fit the global members to the rows of a fitted local estimator, and find the weights of all.

        Parameters
        ----------
        local : KernelSmoother
            Fitted to arrays.
        random_state : int, Generator or None
            Draws rows where there are many.
        """
        weight = smoother_of(local).weight
        kept, encoding, units = weight > 0, local.encoding_, local.smoother_.units
        weight, value, key = weight[kept], values_of(local)[kept], local.key_[kept]
        columns = StandardColumns.of(key, weight, encoding)
        matrix, code = columns.matrix(key, local.key_code_[kept]), units.take(kept).code
        rows = TrainingRows.from_arrays(
            matrix, value, weight, exclusion=None if code is None else Exclusion(code), geometry=columns.geometry
        )
        if not rows.number > 1.0:
            raise ValueError(f"leave-one-out predictions need at least two rows, got {rows.number:g} sample")
        kernels: dict[str, RidgeKernel] = {
            "kernel_ridge": LaplaceKernel.of(matrix, weight),
            "anova": AnovaKernel.of(columns, matrix, weight),
        }
        # Beside other programs 442 rows of 4 columns took 18 s with two threads, and 1.4 with one.
        with blas_threads():
            ridges = {name: fit_table(kernel, rows, as_random(random_state)) for name, kernel in kernels.items()}
        left_out = local.leave_one_out().prediction[kept]
        unit = spread_of(value, weight)
        residuals = [(value - each) / unit for each in (left_out, *(ridge.left_out for ridge in ridges.values()))]
        return cls(local, columns, ridges, left_out, stacking_weights(residuals, weight))

    @property
    def members(self) -> dict[str, Any]:
        """The fitted members by name."""
        return {"local": self.local, **self.ridges}

    @cached_property
    def kept(self) -> Index:
        """Indices of the training rows of positive weight."""
        return np.flatnonzero(smoother_of(self.local).weight > 0)

    @property
    def labels(self) -> Any:
        """Labels of the training rows of positive weight, as `labels_of_rows` returns them."""
        index = self.local.index_
        return index if index is None or isinstance(index, type) else index[self.kept]

    @cached_property
    def weight(self) -> Array:
        """Frequencies of the training rows of positive weight."""
        return smoother_of(self.local).weight[self.kept]

    @cached_property
    def value(self) -> Array:
        """Outputs of the training rows of positive weight, of shape (n, c)."""
        return values_of(self.local)[self.kept]

    @property
    def units(self) -> Units:
        """Units of the training rows of positive weight."""
        units: Units = self.local.smoother_.units
        return units.take(self.kept)

    @property
    def error(self) -> float:
        """Weighted mean squared leave-one-out error, summed over outputs."""
        return squared_error(self.residual, self.weight)

    @property
    def left_out_of_members(self) -> list[Array]:
        """Predictions of each member at the rows of positive weight, each row left out with its unit."""
        return [self.local_left_out, *(ridge.left_out for ridge in self.ridges.values())]

    @cached_property
    def left_out(self) -> Array:
        """Predictions of the average, each row left out with its unit."""
        return average(self.mixing, self.left_out_of_members)

    @property
    def residual(self) -> Array:
        """Leave-one-out residuals of shape (n, c)."""
        return self.value - self.left_out

    def of_all_rows(self, values: Array) -> Array:
        """Return values of the rows of positive weight with NaN for the others."""
        found = np.full((len(self.local.key_), values.shape[1]), np.nan)
        found[self.kept] = values
        return found

    def read(self, X: ArrayLike, *, warn: bool = True) -> Prediction:
        """Convert X to queries as the local estimator does; warn of extrapolation if `warn`."""
        return self.queries(*read_query(self.local, X, warn=warn), labels_of_rows(X))

    def queries(self, key: Array, code: Codes, index: Any = None) -> Prediction:
        """Return rows of numeric columns and category codes as queries: the prediction of the local estimator there."""
        return Prediction(self.local, key, code, index)

    def columns_of(self, queries: Prediction) -> Array:
        """Return queries as the standardised columns of the global members."""
        return self.columns.matrix(queries.query, queries.code)

    def predict(self, queries: Prediction) -> Array:
        """Return predictions of shape (m, c)."""
        local, columns = queries.mean.reshape(len(queries), -1), self.columns_of(queries)
        with blas_threads():
            ridges = [ridge.predict(columns) for ridge in self.ridges.values()]
        return average(self.mixing, [local, *ridges])

    def weights(self, queries: Prediction, max_bytes: int | None = None) -> Array:
        """Return the linear weights of the training rows of positive weight, of shape (m, n)."""
        size = 8 * len(queries) * len(self.local.key_) if max_bytes is None else max_bytes
        local, columns = queries.weights(max_bytes=size)[:, self.kept], self.columns_of(queries)
        with blas_threads():
            ridges = [ridge.weights(columns) for ridge in self.ridges.values()]
        return average(self.mixing, [local, *ridges])

    def hat_rows(self) -> Iterator[tuple[slice, Array]]:
        """Yield the hat matrix in blocks of rows, which are fits at training rows."""
        for rows in blocks_of(len(self.weight)):
            some = self.kept[rows]
            yield rows, self.weights(self.queries(self.local.key_[some], self.local.key_code_[some]))


def values_of(local: KernelSmoother) -> Array:
    """Return the outputs of a fitted estimator as float64 of shape (n, c)."""
    return np.asarray(local.value_, dtype=np.float64).reshape(len(local.value_), -1)


def squared_error(residual: Array, weight: Array) -> float:
    """Return the weighted mean over rows of squared residuals, summed over outputs."""
    return float(weight @ np.sum(residual**2, axis=1) / weight.sum())


def stacking_weights(residuals: list[Array], weight: Array) -> Array:
    """Return the weights of the members of an average from their leave-one-out residuals, half way to equal weights.

    Parameters
    ----------
    residuals : list of ndarray of shape (n, c)
        Leave-one-out residuals of each member, in units in which outputs may be added.
    weight : ndarray of shape (n,)
        Frequencies.

    Returns
    -------
    ndarray of shape (members,)
        Positive; they sum to one.

    Examples
    --------
    >>> noise = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> stacking_weights([noise, -noise, 3 * noise], np.ones(4)).round(3)
    array([0.417, 0.417, 0.167])
    """
    members, root = len(residuals), np.sqrt(weight)[:, None]
    errors = np.column_stack([np.ravel(root * residual) for residual in residuals])
    size = np.sqrt(np.sum(errors**2))
    found = np.full(members, 1.0 / members)
    if size > 0 and members > 1:
        # The minimum of |E u|^2 + (1'u - 1)^2 over u >= 0 is a multiple of that of |E u|^2 over the simplex.
        triangle = np.linalg.qr(errors / size, mode="r")
        solution, _ = nnls(np.vstack([triangle, np.ones(members)]), np.append(np.zeros(len(triangle)), 1.0))
        found = solution / solution.sum()
    return _towards_equal(found)


def mixture_weights(likelihood: Array, weight: Array) -> Array:
    """Return the weights of the members of a mixture of largest likelihood, half way to equal weights.

    Parameters
    ----------
    likelihood : ndarray of shape (n, members)
        Leave-one-out probability that each member gave to the class of each row.
    weight : ndarray of shape (n,)
        Frequencies.

    Returns
    -------
    ndarray of shape (members,)
        Positive; they sum to one.

    Examples
    --------
    >>> mixture_weights(np.array([[0.9, 0.5], [0.1, 0.5]]), np.ones(2)).round(3)
    array([0.25, 0.75])
    """
    members = likelihood.shape[1]
    likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
    found = np.full(members, 1.0 / members)
    for _ in range(STEPS):
        joint = likelihood * found
        new = weight @ (joint / joint.sum(axis=1, keepdims=True)) / weight.sum()
        done = np.max(np.abs(new - found)) < CHANGE
        found = new
        if done:
            break
    return _towards_equal(found)


def _towards_equal(weights: Array) -> Array:
    return (1.0 - TOWARDS_EQUAL) * weights + TOWARDS_EQUAL / len(weights)


def average(weights: Array, each: Sequence[Array]) -> Array:
    """Return the average of what each member says, which is of any shape, by the weights of the members."""
    return np.asarray(sum(part * one for part, one in zip(weights, each, strict=True)))


class ScoreCalibration:
    """Multinomial logistic regression of classes on scores: class probabilities from a regression of one-hot labels.

    Parameters
    ----------
    score : ndarray of shape (n, classes)
        Leave-one-out scores.
    label : ndarray of int, shape (n,)
        Number of the class of each row.
    weight : ndarray of shape (n,)
        Frequencies.
    """

    def __init__(self, score: Array, label: Index, weight: Array) -> None:
        self.classes = score.shape[1]
        self.present = np.unique(label)
        self._fit = None
        if len(self.present) > 1:
            self._fit = LogisticRegression(C=INVERSE_PENALTY, max_iter=10_000).fit(score, label, sample_weight=weight)

    def probability(self, score: Array) -> Array:
        """Return the probabilities of the classes for scores of shape (m, classes)."""
        found = np.zeros((len(score), self.classes))
        found[:, self.present] = 1.0 if self._fit is None else self._fit.predict_proba(score)
        return found
