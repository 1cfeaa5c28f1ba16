r"""The error to expect of new rows, of a model whose bandwidths were searched for.

The leave-one-out error at the bandwidths found is the smallest of all that were tried, and so too small: a search finds
where noise helped most. How much too small, other searches tell that do not know some of the rows. With the rows cut
into K folds, the search is done K times without one of them,

.. math:: \hat E = CV(\hat h) \cdot \frac{\sum_k \sum_{i \in k} w_i (y_i - \hat y^{(-k)}_i)^2}
                                      {\sum_k \sum_{i \in k} w_i\, CV^{(-k)}(\hat h^{(-k)})},

the leave-one-out error of all rows times the ratio of what the K searches were judged by and what they promised. The
ratio, not the numerator itself, because a model of fewer rows is worse: both of its parts are of as many rows. The
numerator is nested cross-validation [1]_. Searches by every criterion are repeated so, each by its own. After a fit
with groups each fold holds whole groups.

A bandwidth that was given, or is of a rule, has not seen the outputs at all, and the plug-in estimates three numbers
from them and minimises nothing: their leave-one-out error is expected of new rows as it is.

References
----------
.. [1] S. Varma and R. Simon, "Bias in error estimation when using cross-validation for model selection", BMC
   Bioinformatics 7 (2006), 91.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernpool.bandwidth import CRITERIA, leave_one_out
from kernpool.bandwidth.search.rows import TrainingRows, canonical_rows
from kernpool.core.keys import Keys
from kernpool.core.reading import as_tol
from kernpool.estimators.bandwidth_choice import choose_bandwidth
from kernpool.estimators.fitted import recipe_of, scaled_keys
from kernpool.estimators.parameters import search_parameters
from kernpool.pooling.arrays import KeyPairs
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.settle import settle

Array = NDArray[np.float64]

FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 10, 200
FEWEST = 4


class TooFewRowsError(AttributeError, ValueError):
    """Raised where no rows can be kept from a search; also an AttributeError, so that `hasattr` says no."""


def expected_error(model: Any) -> float:
    """Estimate the mean squared error of new rows, summed over outputs.

    Parameters
    ----------
    model : KernelSmoother
        Fitted to arrays.

    Returns
    -------
    float
        In squared units of the outputs.

    Raises
    ------
    TooFewRowsError
        If there are fewer than four rows or groups, or too few for the criterion without some of them.
    """
    if not _was_searched(model):
        return float(model.leave_one_out().error)
    rows = canonical_rows(
        scaled_keys(model).astype(np.float64),
        np.asarray(model.value_, dtype=np.float64).reshape(len(model.value_), -1),
        model.key_weight_,
        model.key_code_,
        model.key_group_,
    )
    if rows.group is not None and rows.groups < FEWEST:
        raise TooFewRowsError(
            f"expected_error_ needs at least four groups to search without some of them, got {rows.groups}"
        )
    if rows.number < FEWEST:
        raise TooFewRowsError(
            f"expected_error_ needs at least four rows to search without some of them, got {rows.number:g}"
        )
    met = promised = 0.0
    for held in _folds(rows):
        fold, there = (_part(rows, weight) for weight in (rows.weight - held, held))
        if not (len(fold.X) > 1 and len(there.X)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the search of all rows has said already
            found = _search(model, fold)
            squared = np.sum((_predict(model, found, fold, there) - there.value) ** 2, axis=1)
            met += float(there.weight @ squared)
            promised += there.total * _left_out(model, found, fold)
    error = vars(model)["loo_error_"] if "loo_error_" in vars(model) else model.leave_one_out().error
    return float(error) * (met / promised if promised > 0 else 1.0)


def _was_searched(model: Any) -> bool:
    """Whether the bandwidths were searched for on the very rows that the model has."""
    if "loo_error_" in vars(model):  # gone once rows are added
        return True
    criterion = CRITERIA.get(model.bandwidth) if isinstance(model.bandwidth, str) else None
    return criterion is not None and not criterion.exclude_self and "_growing" not in vars(model)


def _search(model: Any, fold: TrainingRows) -> dict[str, Any]:
    """Search as the model did, on some of its rows."""
    try:
        return choose_bandwidth(
            fold.X,
            fold.value,
            fold.weight,
            code=fold.code,
            categories=model._categories(),
            group=fold.group,
            degree=model._degree,
            standardise=model._standardise,
            **search_parameters(model),
        )
    except ValueError as error:  # some criteria want more rows than the fold has left
        raise TooFewRowsError(f"expected_error_ needs a search without some of the rows, and there {error}") from error


def _folds(rows: TrainingRows) -> Iterator[Array]:
    """Yield how much of the weight of each row is held out: its units go to fold after fold, as equal rows do.

    Groups are held out as a whole.
    """
    weight, generator = rows.weight, np.random.default_rng(0)
    folds = int(min(rows.number, FOLDS_OF_FEW if rows.number <= FEW_ROWS else FOLDS))
    if rows.group is not None:
        folds, (found, place) = min(folds, rows.groups), np.unique(rows.group, return_inverse=True)
        mine = (generator.permutation(len(found)) % folds)[place]
        for k in range(folds):
            yield np.where(mine == k, weight, 0.0)
        return
    first = generator.permutation(len(weight)) % folds
    whole = np.floor(weight)
    for k in range(folds):
        units = np.ceil(np.maximum(whole - (k - first) % folds, 0.0) / folds)
        yield units + (weight - whole) * ((first + whole) % folds == k)


def _part(rows: TrainingRows, weight: Array) -> TrainingRows:
    """Return rows with other weights, without those of none."""
    return replace(rows, weight=weight).take(np.flatnonzero(weight > 0))


def _recipe(model: Any, found: dict[str, Any]) -> Recipe:
    one = clone(model)
    vars(one).update(found)
    return replace(recipe_of(one), empty="mean")


def _predict(model: Any, found: dict[str, Any], fold: TrainingRows, there: TrainingRows) -> Array:
    """Pool the outputs of the rows of a fold at others; empty windows become the mean, as in leave-one-out."""
    factors = model._categories().factors(there.code, fold.code, found["smoothing_"])
    pairs, recipe = KeyPairs(Keys.read(fold.X, fold.value, fold.weight), factors), _recipe(model, found)
    return settle(recipe, pairs.reduce(recipe, there.X), _say_nothing).astype(np.float64)


def _left_out(model: Any, found: dict[str, Any], fold: TrainingRows) -> float:
    """Return the leave-one-out error of a fold, which most criteria have found."""
    if "loo_error_" in found:
        return float(found["loo_error_"])
    factors = model._categories().factors(fold.code, fold.code, found["smoothing_"])
    pairs, recipe = KeyPairs(Keys.read(fold.X, fold.value, fold.weight), factors, True), _recipe(model, found)
    problem = replace(pairs.problem(recipe, fold.X), tol=as_tol(None))
    ridge = recipe.ridge_weight(fold.X.shape[1])
    return leave_one_out(problem, algorithm=model.algorithm, n_jobs=model.n_jobs, ridge=ridge).error


def _say_nothing(rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
    """Planes of folds that are not determined are no matter of the caller."""
