"""Prediction intervals of a fitted regressor whose training rows are in memory, in chunks or on a cluster.

The numbers are those of `kernpool.conformal`. Fits whose rows are not in memory use split conformal: calibration
rows are given, or held back from the fit. Every row has a pseudo-random number (`estimators/bandwidth.py`). Rows
whose numbers lie in a range are brought into memory, and passes over the rows skip them. So they are not rows of
the fit, and a search that drew the smallest numbers has not seen them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.conformal.calibration import Calibration, ConformalProblem, Origin, PredictionInterval
from kernpool.conformal.methods import METHODS, check_method, prediction_interval
from kernpool.conformal.order_statistics import as_fraction, least_rows
from kernpool.core import Keys, fill_in_silence
from kernpool.data.chunks.sampling import UniformRange
from kernpool.data.encoding import group_codes
from kernpool.estimators.bandwidth import SearchDraw, seed_of
from kernpool.estimators.fitted_model import (
    numeric_query,
    places_of,
    plain_smoother_of,
    predicting_smoother,
    recipe_of,
    refuse_nearest,
    shaped,
)
from kernpool.estimators.methods.calibration import (
    METHODS_OF_SAMPLES,
    as_method,
    check_rows,
    origin_of,
    other_rows,
    read_outputs,
    training_rows,
)
from kernpool.estimators.methods.robust_regression import refit_robustly
from kernpool.estimators.model import FittedModel, gap_of, robust_weight_of, source_of
from kernpool.execution.progress import current_progress
from kernpool.execution.text_table import ROWS
from kernpool.inference.resampling.random_draws import as_seed, generator
from kernpool.pooling import Recipe, StoredPairs, Sums
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]

MOST_HELD = 4_000  # the coverage of split conformal, given so many rows, has a standard deviation of half a percent
LEAST_HELD = 2


class CalibrationSplit(NamedTuple):
    """Calibration rows held out from an out-of-core fit.

    Parameters
    ----------
    key, value, weight : ndarray
        The rows, in an order that was drawn.
    numbers : UniformRange
        Which they are.
    rows : int
        How many rows of positive weight there are in all.
    searched : bool
        Whether the search for the bandwidth may have seen some of them.
    """

    key: Array
    value: Array
    weight: Array
    numbers: UniformRange
    rows: int
    searched: bool

    def part(self, start: int, stop: int | None = None) -> CalibrationSplit:
        """Return the split restricted to calibration rows `start` to `stop`; the others stay held out, too."""
        return self._replace(key=self.key[start:stop], value=self.value[start:stop], weight=self.weight[start:stop])


def held_back(
    pairs: StoredPairs, size: int, level_rows: int, search: SearchDraw | None, seed: int, which: Any
) -> CalibrationSplit:
    """Draw the calibration rows that are held out from an out-of-core fit.

    Parameters
    ----------
    pairs : StoredPairs
        The rows.
    size : int
        How many, or a quarter of all if that is less.
    level_rows : int
        How many are needed for a finite interval.
    search : SearchDraw or None
        Rows seen by the bandwidth search; None if there was no search, or they are unknown.
    seed : int
        Of the numbers of rows, if nothing was drawn before.
    which : {None, "all", "unsearched"}
        Whether the search may have seen them. None is rows that it has not seen, if there are as many as are wanted.

    Returns
    -------
    CalibrationSplit
        In the order of their numbers.

    Raises
    ------
    ValueError
        If there are too few rows to hold some back.
    """
    seen, seed = (0, seed) if search is None else search
    sample = pairs.draw_sample(seen + size, seed)
    rows = 0 if sample is None else sample.rows
    wanted = min(size, max(rows // 4, LEAST_HELD))
    if sample is None or rows <= wanted:
        raise ValueError(
            f"prediction intervals of a fit whose rows are not in memory hold some rows back, and there are {rows}; "
            "fit the rows in memory, or give X_calibration and y_calibration"
        )
    unsearched = max(rows - seen, 0)
    if which == "unsearched" and unsearched < min(wanted, level_rows):
        raise ValueError(
            f"calibration='unsearched' needs rows that the search for the bandwidth has not seen, and of {rows} there "
            f"are {unsearched}; fit with max_search_rows less than the number of rows, or leave calibration out"
        )
    fresh = which == "unsearched" or (which is None and unsearched >= wanted)
    first = seen if fresh else 0
    order = np.argsort(sample.lot)[first : first + (min(wanted, unsearched) if fresh else wanted)]
    lots = sample.lot[order]
    numbers = UniformRange(seed, float(lots[0]), float(lots[-1]), len(order))
    return CalibrationSplit(
        sample.key[order], sample.value[order], sample.weight[order], numbers, rows, searched=not fresh and seen > 0
    )


def values_of(recipe: Recipe, sums: Sums, queries: int) -> Array:
    """Compute predictions of shape (m, c) from kernel sums; apply `empty` where all kernel weights are zero.

    Predictions there are NaN if ``empty`` is ``"nan"`` or ``"raise"``. If it is ``"nearest"``, a warning counts such
    rows among the first `queries`, which are not calibration rows.
    """
    fit = sums.fit(recipe.ridge_weight(sums.layout.columns))
    recipe.report_empty(fit.occupied[:queries])
    assert sums.fill is not None
    return fill_in_silence(fit.intercept, fit.occupied, recipe.empty, sums.fill)


def interval_of_stored(
    model: FittedModel,
    pairs: StoredPairs,
    X: ArrayLike,
    *,
    level: float,
    method: str,
    X_calibration: ArrayLike | None,
    y_calibration: ArrayLike | None,
    calibration: str | None,
    groups: ArrayLike | None,
) -> PredictionInterval:
    """Compute prediction intervals for a model whose training rows are not in memory.

    Parameters
    ----------
    model : regressor
        Fitted.
    pairs : StoredPairs
        Its rows.
    X, level, method, X_calibration, y_calibration, calibration, groups
        As of ``prediction_interval``.

    Returns
    -------
    PredictionInterval
        In the shape of ``predict``.

    Raises
    ------
    TypeError
        If the method needs all rows in memory, or `groups` are for rows without numbers.
    ValueError
        As of ``prediction_interval``, or if there are too few rows to hold some back.

    Notes
    -----
    ``"adaptive"`` holds back as many rows for its scale, which has their bandwidth: that of the fit, made larger by the
    rate :math:`n^{-1/(4 + d)}`, and three times that.
    """
    fraction, others = as_fraction(level), check_rows(X_calibration, y_calibration, calibration)
    _check_out_of_core(model, method, groups, others)
    recipe, place, scaled = recipe_of(model), numeric_query(model, X), method == "adaptive"
    there, held = np.empty((0, place.shape[1])), None
    if others:
        try:
            there = numeric_query(model, X_calibration, warn=False)  # type: ignore[arg-type]  # refused there, in words
        except (ValueError, TypeError) as error:
            raise type(error)(f"X_calibration: {error}") from None
    if scaled or not others:
        held = _held(
            model, pairs, MOST_HELD * (scaled + (not others)), least_rows(fraction) * (1 + scaled), calibration
        )
    rows, scale = (None, held) if others else _halves(held, scaled)
    shape = (len(there), *(() if pairs.flat else (pairs.outputs,)))
    value = read_outputs(y_calibration, shape) if rows is None else rows.value
    there = there if rows is None else rows.key
    query = np.vstack([place, there] + ([scale.key] if scaled and scale is not None else []))
    kept = pairs if held is None else pairs.without(held.numbers)
    found = values_of(recipe, kept.reduce(recipe, query, current_progress()), len(place))
    center, predicted, around = np.split(found, [len(place), len(place) + len(there)])
    weight = np.ones(len(there)) if rows is None else rows.weight
    group = None if groups is None else group_codes(groups, len(there))
    calibrating = Calibration(
        EvaluationPoints(there), value, predicted, weight, group=group, held_back=rows is not None
    )
    setting = ConformalProblem(
        _smoother(recipe, scale) if scaled and scale is not None else _unscaled(recipe, there, value),
        EvaluationPoints(place),
        fraction,
        calibrating,
        generator(0, 0),
        _origin(model, held),
        known=around,
        center=center,
    )
    result = prediction_interval(setting, method)
    ends = (result.center, result.lower, result.upper)
    center, lower, upper = (end[:, 0] if pairs.flat else end for end in ends)
    return replace(result, center=center, lower=lower, upper=upper)


def _check_out_of_core(model: FittedModel, method: str, groups: Any, others: bool) -> None:
    """Raise TypeError for options of prediction intervals that need all training rows in memory."""
    name = type(model).__name__
    remedy = "fit a sample of them in memory, with bandwidth=model.bandwidth_"
    if method not in METHODS_OF_SAMPLES:
        raise TypeError(
            f"method={method!r} needs the rows themselves, and this {name} knows where they are and does not hold "
            f"them; use method='adaptive' or 'split', which hold some rows back, or {remedy}"
        )
    if groups is not None and not others:
        raise TypeError(
            f"groups must be None for this {name}, which does not hold its rows; give X_calibration and y_calibration "
            f"of other clusters with their groups, or {remedy}"
        )


def _held(
    model: FittedModel, pairs: StoredPairs, size: int, level_rows: int, calibration: str | None
) -> CalibrationSplit:
    search: SearchDraw | None = vars(model).get("_search_draw")
    if calibration == "unsearched" and search is None:
        why = (
            "the model does not know which these are"
            if isinstance(model.bandwidth, str)
            else "it was given, and not searched"
        )
        raise ValueError(
            f"calibration='unsearched' needs rows that the search for the bandwidth has not seen, and {why}; leave "
            "calibration out"
        )
    return held_back(pairs, size, level_rows, search, seed_of(model.random_state), calibration)


def _halves(held: CalibrationSplit | None, scaled: bool) -> tuple[CalibrationSplit, CalibrationSplit]:
    """Split held-out rows into calibration rows and, if `scaled`, rows that estimate the scale of the noise."""
    assert held is not None
    half = (len(held.key) + 1) // 2 if scaled else len(held.key)
    return held.part(0, half), held.part(half)


def _origin(model: FittedModel, held: CalibrationSplit | None) -> Origin:
    """Return how the bandwidth was chosen: "given", "found", or "unsearched" if found without the held-out rows."""
    if origin_of(model) == "given":
        return "given"
    known = vars(model).get("_search_draw") is not None
    return "unsearched" if held is not None and known and not held.searched else "found"


def _smoother(recipe: Recipe, rows: CalibrationSplit) -> Smoother:
    """Return the smoother that estimates the scale of the noise from held-out rows.

    Its bandwidth is rescaled to their number.
    """
    factor = 1.0 / rate_factor(len(rows.key), rows.rows, rows.key.shape[1])
    wider = replace(recipe, bandwidth=np.asarray(recipe.bandwidth * factor))
    return Smoother(Keys.read(rows.key, rows.value, rows.weight), wider)


def _unscaled(recipe: Recipe, key: Array, value: Array) -> Smoother:
    """Return a smoother of calibration rows for intervals without a noise scale, which use its outputs and `empty`."""
    return Smoother(Keys.read(key, value), recipe)


def chosen_method(model: FittedModel, method: Any, others: bool, grouped: bool) -> str:
    """Return the method of prediction intervals that "auto" stands for; refuse those that are not for robust fits.

    Weights of a robust fit depend on y, so a row that is left out must have no say in them: methods that subtract it
    from the sums, or add a new one, do not hold. One is left for each kind of calibration rows.

    Parameters
    ----------
    model : regressor
        Fitted.
    method : str
        As of ``prediction_interval``.
    others, grouped : bool
        Whether calibration rows, and clusters of rows, are given.
    """
    chosen, name = as_method(method, METHODS), type(model).__name__
    if robust_weight_of(model) is None:
        return chosen
    only = "split" if others else "jackknife+" if grouped else "cv+"
    if method not in ("auto", only):
        raise TypeError(
            f"method={method!r} is not for this {name}, which is robust: its weights of rows depend on y; use "
            f"method={only!r} for these arguments (with X_calibration and y_calibration it is 'split', with groups "
            "'jackknife+', else 'cv+', which fits again without each tenth of the rows), or fit it with robust=False"
        )
    return only


class PredictionIntervals(FittedModel):
    """Mixin of regressors: prediction intervals of new observations."""

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "auto",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        calibration: str | None = None,
        groups: ArrayLike | None = None,
        random_state: Any = 0,
    ) -> PredictionInterval:
        r"""Compute prediction intervals: they contain a new observation of y with a given probability.

        .. math:: \hat m(x) \pm \hat s(x)\, Q, \qquad Q = \Big( \frac{|y_i - \hat m_{-i}(x_i)|}{\hat s_{-i}(x_i)}
                  \Big)_{(\lceil (1 - \alpha)(n + 1) \rceil)}

        for the default method: residuals of rows that the fit has not seen, in units of the noise around them.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals, between 0 and 1; for each output separately.
        method : str, default="auto"
            ``"auto"``: ``"adaptive"``, but for robust fits ``"cv+"``, ``"split"`` with calibration rows, or
            ``"jackknife+"`` with `groups`, which are all they have. ``"adaptive"``: as above, as wide as the noise is
            around x. ``"full"``: full conformal, the shortest with a guarantee of `level`. ``"jackknife+"`` and
            ``"cv+"``: guarantee twice the error rate, by fits without each row or each tenth. ``"split"``: one width
            from calibration rows. ``"cqr"``: two conditional quantiles, moved until they cover; for skew noise.
            ``"localized"``: as wide as a quantile of the residuals around x.
        X_calibration, y_calibration : array_like of shape (k, d) and (k,) or (k, c), optional
            Rows that the model was not fitted to, nor its bandwidth found on. For ``"split"``, ``"adaptive"`` and
            ``"cqr"``, which then guarantee `level` whatever the fit, and for ``"localized"``.
        calibration : {None, "all", "unsearched"}, default=None
            Which training rows calibrate. ``"unsearched"``: those that the search for the bandwidth has not seen, if it
            drew `max_search_rows`; then guarantees hold although the bandwidth was searched. None takes them from
            100 000 rows on, and all below.
        groups : array_like, optional
            Cluster of each training row, or of each calibration row if these are given; the interval is then for a row
            of a new cluster, and each cluster counts as one row. By default those that `fit` was given, if any.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the folds that ``"cv+"`` draws.

        Returns
        -------
        PredictionInterval
            With `center`, `lower` and `upper` in the shape of `predict`, and `guarantee`, which says what holds.
            Infinite ends where rows do not bound them: too few for the level, or none around x. `center` is NaN in an
            empty window with ``empty="nan"``.

        Raises
        ------
        ValueError
            If the level is no probability, there is no such method, it is not for these rows, calibration rows have
            other columns than those of the fit, there are too many pairs of rows and places for the method, or a
            window is empty and ``empty="raise"``.
        TypeError
            If the model was fitted to chunks, and the method is neither ``"adaptive"`` nor ``"split"``; or there are
            `groups` of its rows; or the model is robust, and the method is not for it.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, with the least number that is enough; if intervals are infinite, or
            have no width.
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        confidence_interval : Where the curve is; it shrinks as rows come.
        quantile : Values that y stays below with given probabilities, without a guarantee.

        Notes
        -----
        Probabilities are averages over new points and over the rows at hand, and not given a point: an interval of one
        width covers too often where the noise is small. Guarantees need rows that could as well have come in any other
        order, and a bandwidth that was not chosen by the rows that calibrate: it was given, or these are other rows, or
        unsearched ones. Where it was found on the same rows statements are approximate, and `guarantee` says so.

        Weights of the fit are frequencies: a weight of 3 is three equal rows. Rows with nothing else in their window
        have an infinite score, unless `empty` gives them a number.

        Weights of a robust fit (`robust`) depend on all outputs, so rows are left out there by fitting the others again
        at the same bandwidth: without each tenth for ``"cv+"``, which takes 10 to 19 fits, and without each cluster for
        ``"jackknife+"``. Intervals cover new values, outliers among them: at level 0.9 they are as wide as the noise
        if fewer than a tenth of the rows are outliers, and reach to them if more are.

        A model on chunks does not hold its rows. ``"adaptive"`` and ``"split"`` then bring up to 4 000 of them into
        memory, at most a quarter, and go through all others once: for each place and each of these 4 000. The interval
        is that of a fit without them, and so is `center`, which guarantees `level` for both methods. They are rows that
        the search for the bandwidth has not seen, if there are so many; ``"adaptive"`` holds back as many again, for
        its scale. With calibration rows ``"split"`` holds none back.

        ``"adaptive"`` takes a pass over pairs of training rows for the residuals, which the model keeps, one for their
        scale, and two over rows and places. ``"full"``, ``"jackknife+"`` and ``"cv+"`` go through all pairs of rows and
        places, at most 2^30. Memory is O(n + m).

        References
        ----------
        .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer (2005).
        .. [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive inference
           for regression", JASA 113 (2018), 1094-1111.
        .. [3] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+",
           Annals of Statistics 49 (2021), 486-507.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> from kernpool.datasets import make_sine_power
        >>> sample = make_sine_power(random_state=0)
        >>> model = NadarayaWatsonRegressor(bandwidth=0.2).fit(sample.x_train[:, None], sample.y_train)
        >>> found = model.prediction_interval([[1.0], [2.5]], method="full")
        >>> bool((found.lower < found.center).all() and (found.center < found.upper).all())
        True
        """
        check_is_fitted(self)
        others = check_rows(X_calibration, y_calibration, calibration)
        stored = source_of(self)
        method = chosen_method(self, method, others, groups is not None)
        if stored is not None:
            return interval_of_stored(
                self, stored, X, level=level, method=method, X_calibration=X_calibration,
                y_calibration=y_calibration, calibration=calibration, groups=groups,
            )  # fmt: skip
        fraction = as_fraction(level)
        check_method(method, not others, groups is not None)
        if gap_of(self) and not others and method != "adaptive":
            raise ValueError(
                f"method={method!r} leaves rows out one by one, and the fit has gap={gap_of(self)}; use "
                "method='adaptive', whose residuals are of fits without the rows within the gap, or give X_calibration "
                "and y_calibration"
            )
        if method == "full":
            refuse_nearest(
                self, 'method="full", which adds a row to every window,', 'use "split", "jackknife+" or "cv+"'
            )
        smoother, places = plain_smoother_of(self), places_of(self, X)
        fit = predicting_smoother(self, smoother)
        known, origin = None, origin_of(self)
        if others:
            rows = other_rows(self, fit, X_calibration, y_calibration, groups)
        else:
            rows, known, origin = training_rows(self, smoother, calibration, groups)
        setting = ConformalProblem(smoother, places, fraction, rows, generator(as_seed(random_state), 0), origin, known)
        if fit is not smoother:  # weights of rows follow from y
            center = fit.predict(fit.problem(places), report=True)
            setting = replace(setting, center=center, refit=partial(refit_robustly, self))
        found = prediction_interval(setting, method)
        center, lower, upper = (shaped(self, places.query, end) for end in (found.center, found.lower, found.upper))
        return replace(
            found,
            center=center,
            lower=lower,
            upper=upper,
            effective_rows=smoother.effective_rows(places.rows(slice(0, ROWS))),
        )
