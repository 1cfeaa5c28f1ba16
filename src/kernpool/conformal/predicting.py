"""Predictions at places, and of training rows without themselves. Planes are not clipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.keys import Prepared
from kernpool.core.problem import Problem
from kernpool.core.reading import in_unit
from kernpool.execution.threads import cut
from kernpool.inference.smoother import Places, Smoother
from kernpool.pooling.limits import limit_values

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes


def predict(smoother: Smoother, places: Places) -> Array:
    """Predict at some places.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : Places
        Where.

    Returns
    -------
    ndarray of shape (m, c)
        What `empty` says where the window is empty; NaN for ``"nan"`` and ``"raise"``, without a warning or an error.
    """
    return predict_problem(smoother, smoother.problem(places))


def predict_without_each(smoother: Smoother) -> Array:
    """Predict each training row from the others: one unit of it is left out.

    Parameters
    ----------
    smoother : Smoother
        The fit.

    Returns
    -------
    ndarray of shape (n, c)
        As of `predict`, by one pass.
    """
    return predict_problem(smoother, smoother.problem(smoother.training, exclude_self=True))


def predict_without_clusters(smoother: Smoother, code: Integers) -> Array:
    """Predict each training row from the rows of all other clusters; parameters as of `predict_without_each`."""
    problem = smoother.problem(smoother.training).with_groups(code, code)
    return predict_problem(smoother, problem)


def predict_problem(smoother: Smoother, problem: Problem) -> Array:
    """Predict at the queries of a problem; see `predict`."""
    state = smoother.sums(problem)
    if not problem.degree:  # of a million places half of the time that is not spent on sums
        occupied = state.denominator > 0
        share = np.divide(1.0, state.denominator, where=occupied, out=np.zeros(len(occupied)))
        values = state.numerator * share[:, None]
        values += problem.value_center
        return filled(smoother, problem, values, occupied)
    values, occupied = np.empty((len(problem.query), problem.value.shape[1])), np.empty(len(problem.query), dtype=bool)
    for rows in cut(len(values), ROWS_AT_ONCE):
        fit = smoother.settled(problem, state.rows(rows))
        values[rows], occupied[rows] = fit.intercept, fit.occupied
    return filled(smoother, problem, values, occupied)


def filled(smoother: Smoother, problem: Problem, values: Array, occupied: NDArray[np.bool_]) -> Array:
    """Give predictions in empty windows what the policy says; changes them in place.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    problem : Problem
        Of its queries.
    values : ndarray of shape (m, c)
        Predictions; those of empty windows may be anything.
    occupied : ndarray of bool, shape (m,)
        Which windows have a row.

    Returns
    -------
    ndarray of shape (m, c)
        As of `predict`.
    """
    recipe, (empty,) = smoother.recipe, np.nonzero(~occupied)
    if not empty.size:
        return values
    if recipe.empty in ("mean", "nearest"):
        values[empty] = limit_values(problem, empty, recipe.empty, recipe.n_jobs)
    else:
        values[empty] = 0.0 if recipe.empty == "zero" else np.nan
    return values


def thinned(smoother: Smoother, weight: Array) -> Smoother:
    """Return the same rows with other frequencies, some of them zero, of shape (n,)."""
    table, unit = in_unit(weight)
    keys = replace(smoother.keys, weight=table, unit=unit, prepared=Prepared())
    return replace(smoother, keys=keys, kept=None)
