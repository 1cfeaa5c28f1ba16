"""Bandwidths of many rows from a search on a sample: its size, and the factor that makes its bandwidths those of all.

A search evaluates its criterion some hundred times, each time for all pairs of its rows. On a sample that takes
seconds. Its bandwidths are those of few rows; for n rows they shrink by the rate :math:`n^{-1/(4 + d)}` with the
number d of columns that matter. One common factor c then corrects what is left of the errors of sample and rate: that
by which rows held out from all rows are predicted best from the others, the minimum of ::

    log S(c) + (log(c) / .3)^2 / N

with the mean squared error S of N rows held out. The second term is that of a log-normal prior, in units of a log
likelihood, (N/2) log S: with many rows the error hardly depends on c, and its own minimum is a matter of noise.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.bandwidth.criteria import LOG_LOSS, prior_share
from kernpool.bandwidth.rules_of_thumb import rate_factor, rate_order
from kernpool.bandwidth.search.objective import SearchObjective, Trial, cost_of_empty, narrowest
from kernpool.bandwidth.search.one_factor import minimise_near
from kernpool.bandwidth.search.search import Found
from kernpool.bandwidth.search.setup import SearchOptions, TrainingRows
from kernpool.core import Categories, Keys
from kernpool.data import as_bandwidth
from kernpool.pooling import Recipe, local_fit

HELD_ROWS, HELD_SUMS = 2000, 1e9  # that are predicted, and the sums over pairs that they take at one bandwidth
# Of the logarithm of the factor: a search on some thousand rows is off by that much, and so is the rate where only half
# of d columns matter.
PRIOR_SPREAD = 0.3
TOLERANCE, MOST_EVALUATIONS = 1e-4, 12


@dataclass
class HeldOutRows(SearchObjective):
    """Criterion of some rows, predicted from other rows, as a function of one factor on all bandwidths.

    Parameters
    ----------
    held, others : TrainingRows
        Rows that are predicted, and rows that predict them.
    found : Found
        Bandwidths and smoothings at the factor one; those of columns that are smoothed away stay as they are.
    categories : Categories
        Categories of the codes.
    options : SearchOptions
        Options of the fit, its ridge included. Where the criterion is the log loss it is that of class probabilities,
        mixed with priors; all other criteria are squared errors here.
    """

    held: TrainingRows
    others: TrainingRows
    found: Found
    categories: Categories
    options: SearchOptions

    def __post_init__(self) -> None:
        others, options = self.others, self.options
        self.mean = others.weight @ others.value / others.total
        # Squares in other units may leave the range of float64, and outputs of larger numbers would count alone.
        spread = np.sqrt(others.weight @ (others.value - self.mean) ** 2 / others.total)
        spread = spread if options.standardise and len(spread) > 1 else np.full_like(spread, spread.max())
        self.unit = np.where(spread > 0, spread, 1.0)
        self.keys = Keys.read(others.X, (others.value - self.mean) / self.unit, others.weight)
        self.recipe = Recipe.of(
            options.kernel,
            degree=options.degree,
            algorithm=options.algorithm,
            n_jobs=options.n_jobs,
            ridge=options.ridge or 0.0,
            geometry=others.geometry,
        )
        self.tried = []

    def evaluate(self, theta: Array) -> Trial:
        """Evaluate the criterion at the logarithm of a factor, an array of one number."""
        found = self.at(float(np.exp(theta[0])))
        held, weight = self.held, self.held.weight
        recipe = replace(self.recipe, bandwidth=as_bandwidth(held.geometry.per_column(found.bandwidth), None))
        factors = self.categories.factors(held.code, self.others.code, found.smoothing)
        problem = recipe.problem(held.X, self.keys, factors=factors)
        problem = problem.beyond(held.exclusion, self.others.exclusion)
        fit = local_fit(problem, recipe, self.options.progress)
        predicted = np.where(fit.occupied[:, None], fit.intercept, 0.0)
        off = (held.value - self.mean) / self.unit - predicted
        squares = weight @ off**2 / held.total
        error = squares * self.unit**2
        cost = cost_of_empty(~fit.occupied, weight) + (float(theta[0]) / PRIOR_SPREAD) ** 2 / held.number
        share_of_priors = np.nan
        if self.options.criterion is LOG_LOSS:
            right = held.value > 0.5
            known = self.mean[np.argmax(right, axis=1)] > 0  # a class that is held out as a whole cannot be predicted
            prior = np.broadcast_to(self.mean, right.shape)[known][right[known]]
            share = prior_share((predicted * self.unit + self.mean)[known][right[known]], prior, weight[known])
            criterion, share_of_priors = share.log_loss + 0.5 * cost, float(share.share)
        else:
            criterion = float(np.sum(squares)) * np.exp(cost)
        empty = int(np.count_nonzero(~fit.occupied))
        self.tried.append(Trial(theta, criterion, error, empty, prior_share=share_of_priors))
        return self.tried[-1]

    def at(self, factor: float) -> Found:
        """Return what was found at a factor on all bandwidths."""
        found = self.found.scaled(factor)
        return replace(found, smoothing=np.minimum(found.smoothing, self.categories.largest))


def hold_out(rows: TrainingRows, size: int, generator: Any) -> tuple[TrainingRows, TrainingRows]:
    """Draw so many rows, or whole units of at most so many, and return them and the rows of all others.

    If every unit is larger, rows of the smallest one are drawn.
    """
    together = np.arange(len(rows.X))
    if rows.exclusion is not None:
        together = np.unique(rows.exclusion.code, return_inverse=True)[1]
    counts = np.bincount(together)
    order = generator.permutation(len(counts))
    order = order[counts[order] <= size]
    chosen = order[np.cumsum(counts[order]) <= size] if order.size else [np.argmin(counts)]
    is_held = np.isin(together, chosen)
    held = rows.take(np.flatnonzero(is_held))
    return held.draw(size, generator), rows.take(np.flatnonzero(~is_held))


def rescale_to_all_rows(found: Found, name: str, few: int, many: int, options: SearchOptions) -> Found:
    """Rescale bandwidths found on a sample of rows to the number of all rows, and describe this in a note.

    Parameters
    ----------
    found : Found
        From the sample.
    name : str
        The criterion or the rule.
    few, many : int
        Rows of the sample, and in all.
    options : SearchOptions
        Degree of the fit, and the random state by which the sample was drawn.
    """
    d = int(np.count_nonzero(found.matters[: len(found.bandwidth)]))
    factor = rate_factor(few, many, d, options.degree)
    note = (
        f"{name!r} on a sample of {few} of {many} rows ({seed_as_text(options.random_state)}), then times "
        f"{factor:.6g}: with d = {d} the best bandwidth shrinks as rows^(-1/({rate_order(options.degree)} + d))"
    )
    return replace(found.scaled(factor), bandwidth_note=note)


def seed_as_text(random_state: Any) -> str:
    """Return by which seed a sample was drawn, for notes."""
    return f"random_state={random_state}" if isinstance(random_state, int | np.integer) else "drawn at random"


def adjust_to_all_rows(
    found: Found, rows: TrainingRows, options: SearchOptions, categories: Categories, searched: int, generator: Any
) -> Found:
    """Make bandwidths that were found on a sample those of all rows: by the rate, and a factor by rows held out.

    Parameters
    ----------
    found : Found
        By a search of the sample.
    rows : TrainingRows
        All rows, distinct.
    options : SearchOptions
        Of the search.
    categories : Categories
        Categories of the codes.
    searched : int
        Rows of the sample.
    generator : RandomState
        By which it was drawn.

    Returns
    -------
    Found
        Of all rows, with a note. Errors are of the rows held out, at the bandwidths that predict them best, and so is
        the weight of the class priors with the log loss.

    Notes
    -----
    The factor is that of 2000 rows, predicted from all others, or from as many of them as a second allows; from there
    the rate leads to all rows. O(2000 n d) time for each of about six factors, d^2 for planes.
    """
    whole, least = len(rows.X), narrowest(rows, options.kernel)
    columns = int(np.count_nonzero(found.matters[: len(found.bandwidth)]))
    options = replace(options, ridge=found.ridge or 0.0)
    most = HELD_ROWS + int(HELD_SUMS / HELD_ROWS / rows.sums_per_pair(options.degree))
    rows = rows.draw(most, generator)
    held, others = hold_out(rows, min(HELD_ROWS, len(rows.X) // 5), generator)
    few = len(others.X)
    rate, last = (rate_factor(*sizes, columns, options.degree) for sizes in ((searched, few), (few, whole)))
    criterion = HeldOutRows(held, others, found.scaled(rate), categories, options)
    if found.matters.any():
        minimise_near(criterion, np.ones(1), 1.0, tolerance=TOLERANCE, max_evaluations=MOST_EVALUATIONS)
    else:
        criterion.evaluate(np.zeros(1))
    best = criterion.best
    factor = float(np.exp(best.theta[0]))
    note = (
        f"{options.criterion.name!r} on a sample of {searched} of {whole} rows ({seed_as_text(options.random_state)}), "
        f"then times {rate * factor * last:.6g}: {len(held.X)} rows held out are predicted best so from {few} others"
    )
    found = criterion.at(factor).scaled(last)
    found = replace(found, bandwidth=np.maximum(found.bandwidth, least), bandwidth_note=note)
    if found.loo_error is not None:
        found = replace(found, loo_error=float(best.error.sum()), loo_empty_windows=best.empty_windows)
    return found if np.isnan(best.prior_share) else replace(found, prior_share=best.prior_share)
