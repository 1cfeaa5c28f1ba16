"""A random forest as a member of a stack: given its trees a linear smoother, left out by out-of-bag predictions.

A tree predicts the mean of its leaf, weighted by how often its bootstrap sample has drawn each row. So a forest has
linear weights, the averages of those of its trees [1]_. Out-of-bag predictions average the trees whose sample does not
have the row [2]_: they take the part of leave-one-out predictions.

References
----------
.. [1] N. Meinshausen, "Quantile regression forests", JMLR 7 (2006), 983-999.
.. [2] L. Breiman, "Out-of-bag estimation", University of California, Berkeley (1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

Array = NDArray[np.float64]

FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
MEANS = ("squared_error", "friedman_mse")  # criteria whose leaves predict means


@dataclass(frozen=True, eq=False)
class ForestMember:
    """A forest fitted to weighted rows, with the linear weights of its trees.

    Parameters
    ----------
    forest : RandomForestRegressor or ExtraTreesRegressor
        Fitted.
    leaves : ndarray of int, shape (n, trees)
        Leaf of each training row in each tree.
    mass : ndarray of shape (n, trees)
        Frequency of each row in the bootstrap sample of each tree.
    left_out : ndarray of shape (n, c)
        Out-of-bag predictions.
    """

    forest: Any
    leaves: NDArray[np.intp]
    mass: Array
    left_out: Array

    @classmethod
    def of(cls, forest: Any, columns: Array, value: Array, weight: Array) -> ForestMember:
        """Fit a forest to the rows; raise ValueError if a row is in the bootstrap samples of all trees."""
        fitted = clone(forest).fit(columns, value if value.shape[1] > 1 else value[:, 0], sample_weight=weight)
        drawn = np.stack([np.bincount(rows, minlength=len(weight)) for rows in fitted.estimators_samples_], axis=1)
        without = np.flatnonzero(drawn.all(axis=1))
        if without.size:
            raise ValueError(
                f"forest has no out-of-bag prediction for {without.size} of {len(weight)} rows, which are in the "
                f"bootstrap samples of all {len(fitted.estimators_)} trees; use more trees, n_estimators, and "
                "bootstrap=True"
            )
        # scikit-learn 1.9 draws bootstrap samples by the weights; before, the trees count each drawn row by its weight.
        sizes = [tree.tree_.weighted_n_node_samples[0] for tree in fitted.estimators_]
        by_drawing = np.allclose(sizes, drawn.sum(axis=0))
        mass = np.asarray(drawn * np.where(by_drawing, 1.0, weight)[:, None], dtype=np.float64)
        leaves = fitted.apply(columns)
        weights = _leaf_weights(leaves, leaves, mass, drawn == 0)
        return cls(fitted, leaves, mass, weights @ value)

    def predict(self, columns: Array) -> Array:
        """Predict at rows of standardised columns, of shape (m, c)."""
        return np.asarray(self.forest.predict(columns)).reshape(len(columns), -1)

    def weights(self, columns: Array) -> Array:
        """Return the linear weight of the output of every training row in each prediction, of shape (m, n)."""
        at = self.forest.apply(columns)
        return _leaf_weights(at, self.leaves, self.mass, np.ones(at.shape, dtype=bool))


def _leaf_weights(at: NDArray[np.intp], leaves: NDArray[np.intp], mass: Array, used: NDArray[np.bool_]) -> Array:
    """Return the means of the linear weights of the trees that are used for each query."""
    total = np.zeros((len(at), len(leaves)))
    for tree in range(leaves.shape[1]):
        (rows,) = np.nonzero(used[:, tree])
        shared = (at[rows, tree, None] == leaves[:, tree]) * mass[:, tree]
        total[rows] += shared / shared.sum(axis=1, keepdims=True)
    return np.asarray(total / used.sum(axis=1, keepdims=True))


def check_forest(forest: Any) -> None:
    """Raise if a forest cannot be a member of a stack, before it is fitted."""
    if forest is None:
        return
    if not isinstance(forest, FORESTS):
        raise TypeError(
            f"forest must be None, or a RandomForestRegressor or ExtraTreesRegressor, got {type(forest).__name__}"
        )
    means = forest.criterion in MEANS and forest.monotonic_cst is None and forest.max_samples is None
    if not (forest.bootstrap and means):
        raise ValueError(
            "forest must have bootstrap=True, for out-of-bag predictions, and criterion='squared_error', "
            "monotonic_cst=None and max_samples=None, so that leaves are means of known rows; got "
            f"bootstrap={forest.bootstrap}, criterion={forest.criterion!r}, max_samples={forest.max_samples}"
        )
