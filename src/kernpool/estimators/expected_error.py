r"""The error to expect of new rows, of a model whose bandwidths were searched for.

The leave-one-out error at the bandwidths found is the smallest of all that were tried, and so too small: a search finds
where noise helped most. How much too small, other searches tell that do not know some of the rows. With the rows cut
into K folds, the search is done K times without one of them,

.. math:: \hat E = CV(\hat h) \cdot \frac{\sum_k \sum_{i \in k} w_i (y_i - \hat y^{(-k)}_i)^2}
                                      {\sum_k \sum_{i \in k} w_i\, CV^{(-k)}(\hat h^{(-k)})},

the leave-one-out error of all rows times the ratio of what the K searches were judged by and what they promised. The
ratio, not the numerator itself, because a model of fewer rows is worse: both of its parts are of as many rows. The
numerator is nested cross-validation [1]_.

References
----------
.. [1] S. Varma and R. Simon, "Bias in error estimation when using cross-validation for model selection", BMC
   Bioinformatics 7 (2006), 91.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from kernpool.bandwidth.search.rows import canonical_rows
from kernpool.core.factors import Factors
from kernpool.core.keys import Keys
from kernpool.estimators.bandwidth_choice import choose_bandwidth
from kernpool.estimators.fitted import recipe_of
from kernpool.estimators.parameters import search_parameters
from kernpool.pooling.arrays import KeyPairs
from kernpool.pooling.settle import settle

Array = NDArray[np.float64]

FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 10, 200


def expected_error(model: Any) -> float:
    """Estimate the mean squared error of new rows, summed over outputs.

    Parameters
    ----------
    model : KernelSmoother
        Fitted to arrays by a search.

    Returns
    -------
    float
        In squared units of the outputs.

    Raises
    ------
    ValueError
        If there are fewer than four distinct rows.
    """
    rows = canonical_rows(
        np.asarray(model.key_, dtype=np.float64),
        np.asarray(model.value_, dtype=np.float64).reshape(len(model.value_), -1),
        model.key_weight_,
        model.key_code_,
    )
    n = len(rows.X)
    if n < 4:
        raise ValueError(f"expected_error_ needs at least four distinct rows to search without some of them, got {n}")
    folds = KFold(min(n, FOLDS_OF_FEW if n <= FEW_ROWS else FOLDS), shuffle=True, random_state=0)
    met = promised = 0.0
    for known, held in folds.split(rows.X):
        fold, there = rows.take(known), rows.take(held)
        found = choose_bandwidth(
            fold.X,
            fold.value,
            fold.weight,
            code=fold.code,
            categories=model._categories(),
            degree=model._degree,
            standardise=model._standardise,
            **search_parameters(model),
            **({"ridge": model.ridge} if model._degree else {}),
        )
        squared = np.sum((_predict(model, found, fold, there) - there.value) ** 2, axis=1)
        met += float(there.weight @ squared)
        promised += float(there.weight.sum()) * found["loo_error_"]
    return float(model.loo_error_) * (met / promised if promised > 0 else 1.0)


def _predict(model: Any, found: dict[str, Any], fold: Any, there: Any) -> Array:
    """Pool the outputs of the rows of a fold at others; empty windows become the mean, as in leave-one-out."""
    one = clone(model)
    vars(one).update(found)
    factors, categories = None, model._categories()
    if len(categories):
        tables, slopes = categories.tables(found["smoothing_"]), categories.slopes(found["smoothing_"])
        factors = Factors(there.code, fold.code, tables, slopes)
    recipe = replace(recipe_of(one), empty="mean")
    pairs = KeyPairs(Keys.read(fold.X, fold.value, fold.weight), factors)
    return settle(recipe, pairs.reduce(recipe, there.X), _say_nothing).astype(np.float64)


def _say_nothing(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
    """Planes of folds that are not determined are no matter of the caller."""
