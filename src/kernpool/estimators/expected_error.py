"""Expected error on new rows after a bandwidth search: nested cross-validation, and what its folds lack.

The leave-one-out error at the selected bandwidths is the smallest of all that were tried, and therefore too small:
the search selects bandwidths where noise helped most. So the search is repeated without some of the rows. With the
rows cut into K folds, the search is done K times without one of them,

    E = g (sum_k sum_{i in k} w_i (y_i - yhat_i^(-k))^2) / sum_i w_i,
    g = CV(h) sum_i w_i / (sum_k sum_{i in k} w_i CV^(-k)(h^(-k))),  and 1 - 1/2K <= g <= 1.

The quotient is nested cross-validation [1]_, of models of fewer rows, which are worse: g is the leave-one-out error of
all rows over that of the K searches. It has the noise of all selections, so it is bounded by no gain and by errors that
fall as n^-1/2: on 25 tables the estimate is .133 of the error of new rows away from it, .139 without the bounds, and
.141 for g = 1. Each fold repeats the model's own search, with its own criterion. Rows that are left out together are in
one fold, and folds are predicted from rows that are not left out with them.

Where rows are copies of others (`kernpool.bandwidth.repeated_rows`), rows are predicted from themselves and
leave-one-out errors are too small. Folds then keep the copies of a row together.

A bandwidth that was given, or is from a rule, has not seen the outputs. Its
leave-one-out error is the estimate for new rows, without the copies of each row, where there are any.

References
----------
.. [1] S. Varma and R. Simon, "Bias in error estimation when using cross-validation for model selection", BMC
   Bioinformatics 7 (2006), 91.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from kernpool._arrays import Array
from kernpool.bandwidth import CRITERIA, TrainingRows, canonical_rows, count_copies
from kernpool.bandwidth.search import Found
from kernpool.core import Exclusion, Keys
from kernpool.estimators.bandwidth import choose_windows
from kernpool.estimators.fitted_model import smoother_of_rows
from kernpool.estimators.limits import smoother_of
from kernpool.estimators.model import FittedModel
from kernpool.execution import current_progress, progress_between, report_progress
from kernpool.smoother import Smoother

Refit = Callable[[TrainingRows, TrainingRows], tuple[Array, float]]

FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 10, 200
FEWEST = 4
STEPS = 1000  # of progress in each part of the work


def expected_error(model: FittedModel) -> float:
    """Estimate the mean squared error of predictions of new rows, summed over outputs.

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
    ValueError
        If there are fewer than four units of rows, or too few for the criterion without some of them.
    """
    smoother = smoother_of(model, "expected_error")
    rows = canonical_rows(smoother.rows_of(np.asarray(model.value_, dtype=np.float64)))
    if not _was_searched(model):
        return _without_copies(smoother, rows) if has_copies(rows) else _left_out_error(model)

    def refit(fold: TrainingRows, there: TrainingRows) -> tuple[Array, float]:
        found = _search(model, fold)
        return _predict(model, found, fold, there), _left_out_error_of_fold(model, found, fold)

    return nested_error(rows, refit, lambda: _left_out_error(model))


def has_copies(rows: TrainingRows) -> bool:
    """Return whether rows that are left out one by one are copies of others."""
    return rows.exclusion is None and count_copies(rows, rows.weight) > 0


def nested_error(rows: TrainingRows, refit: Refit, left_out_error: Callable[[], float]) -> float:
    """Return the held-out error of fits without each fold, times what leave-one-out errors say of the more rows.

    Parameters
    ----------
    rows : TrainingRows
        Those of the fit.
    refit : callable
        Takes the rows of a fit without a fold, and those of the fold; returns predictions of these, and the
        leave-one-out error of the fit.
    left_out_error : callable
        Returns the leave-one-out error of all rows.
    """
    number = rows.units.number(rows.number)
    if number < FEWEST:
        raise ValueError(
            f"expected_error needs at least four {rows.units.plural} to search without some of them, got {number:g}"
        )
    met = promised = held_out = 0.0
    folds = [*folds_of(rows, together=has_copies(rows))]
    for k, held in enumerate(folds):
        fold, there = (_reweighted(rows, weight) for weight in (rows.weight - held, held))
        if not (len(fold.X) > 1 and len(there.X)):
            continue
        with warnings.catch_warnings(), _progress_of(k, len(folds) + 1):
            warnings.simplefilter("ignore")  # what the fit of all rows has said already
            predicted, promise = refit(fold, there)
        met += float(there.weight @ np.sum((predicted - there.value) ** 2, axis=1))
        promised += there.total * promise
        held_out += there.total
    with _progress_of(len(folds), len(folds) + 1):
        gain = left_out_error() * held_out / (promised or 1.0)
    return met / held_out * min(max(gain, 1.0 - 0.5 / len(folds)), 1.0)


def _was_searched(model: FittedModel) -> bool:
    """Return whether the bandwidths were found by a search."""
    if hasattr(model, "loo_error_"):
        return True
    criterion = CRITERIA.get(model.bandwidth) if isinstance(model.bandwidth, str) else None
    return criterion is not None and not criterion.exclude_self


def _search(model: FittedModel, fold: TrainingRows) -> Found:
    """Repeat the bandwidth search of the model on the training rows of a fold."""
    try:
        return choose_windows(model, fold)
    except ValueError as error:  # some criteria want more rows than the fold has left
        raise ValueError(f"expected_error needs a search without some of the rows, and there {error}") from error


@contextmanager
def _progress_of(part: int, parts: int) -> Iterator[None]:
    """Report the progress of one part of the work as progress of the whole work (a context manager)."""
    report = progress_between(current_progress(), STEPS * part, STEPS * (part + 1), STEPS * parts)
    if report is None:
        yield
        return
    with report_progress(report):
        yield
    report(1, 1)


def folds_of(rows: TrainingRows, *, together: bool = False) -> Iterator[Array]:
    """Yield, for each fold, the held-out weight of every row; a row of weight 3 is split like three equal rows.

    Rows that are left out together are held out as a whole, and rows with all of their copies if these are to stay
    together.
    """
    weight, generator = rows.weight, np.random.default_rng(0)
    folds = int(min(rows.number, FOLDS_OF_FEW if rows.number <= FEW_ROWS else FOLDS))
    code = np.arange(len(weight)) if together else None if rows.exclusion is None else rows.exclusion.code
    if code is not None:
        found, place = np.unique(code, return_inverse=True)
        folds = min(folds, len(found))
        mine = (generator.permutation(len(found)) % folds)[place]
        for k in range(folds):
            yield np.where(mine == k, weight, 0.0)
        return
    first = generator.permutation(len(weight)) % folds
    whole = np.floor(weight)
    for k in range(folds):
        units = np.ceil(np.maximum(whole - (k - first) % folds, 0.0) / folds)
        yield units + (weight - whole) * ((first + whole) % folds == k)


def _reweighted(rows: TrainingRows, weight: Array) -> TrainingRows:
    """Return the rows with new frequency weights, without the rows whose new weight is zero."""
    return replace(rows, weight=weight).take(np.flatnonzero(weight > 0))


def _predict(model: FittedModel, found: Found, fold: TrainingRows, there: TrainingRows) -> Array:
    """Predict the held-out rows of a fold from its training rows; by the mean of these where all weights are zero."""
    smoother = smoother_of_rows(model, found, fold, model._categories())
    of_mean = replace(smoother, recipe=replace(smoother.recipe, empty="mean"))
    problem = of_mean.problem(of_mean.points(there.X, there.code))
    return of_mean.predict(problem.beyond(there.exclusion, fold.exclusion))


def _left_out_error_of_fold(model: FittedModel, found: Found, fold: TrainingRows) -> float:
    """Return the leave-one-out error on the training rows of a fold; reuse that of the fold's search if available."""
    if found.loo_error is not None:
        return found.loo_error
    smoother = smoother_of_rows(model, found, fold, model._categories())
    return float(smoother.leave_one_out().error)


def _left_out_error(model: FittedModel) -> float:
    """Return the leave-one-out error of a fitted model."""
    known: float | None = getattr(model, "loo_error_", None)
    return float(model.leave_one_out().error) if known is None else float(known)


def _without_copies(smoother: Smoother, rows: TrainingRows) -> float:
    """Return the leave-one-out error of a model when each row is left out together with all of its copies."""
    alone = replace(
        smoother,
        keys=Keys.read(rows.X, rows.value, rows.weight),
        key_code=rows.code if smoother.categories.kernels else None,
        exclusion=Exclusion(np.arange(len(rows.X))),
    )
    return float(alone.leave_one_out().error)
