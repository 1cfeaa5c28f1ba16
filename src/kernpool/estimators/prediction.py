"""Where a fitted regressor expects the next value; the numbers are those of `kernpool.conformal`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kernpool.conformal import PredictionInterval, Setting, as_level, check_method, prediction_interval
from kernpool.estimators.calibrating import check_rows, origin_of, other_rows, training_rows, with_ratios
from kernpool.estimators.fitted import scale_of
from kernpool.estimators.held_back import ChunkSource
from kernpool.estimators.held_back_intervals import interval_of_source
from kernpool.estimators.smoothing_rows import places_of, shaped, smoother_of
from kernpool.inference.draws import as_seed, generator


class PredictionIntervals:
    """Prediction intervals of a regressor."""

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "adaptive",
        weights: Any = None,
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
        calibration: str | None = None,
        groups: ArrayLike | None = None,
        random_state: Any = None,
    ) -> PredictionInterval:
        r"""Find intervals that hold the next value of y with a given probability.

        .. math:: \hat m(x) \pm \hat s(x)\, Q, \qquad Q = \Big( \frac{|y_i - \hat m_{-i}(x_i)|}{\hat s_{-i}(x_i)}
                  \Big)_{(\lceil (1 - \alpha)(n + 1) \rceil)}

        for the default method: residuals of rows that the fit has not seen, in units of the noise around them.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        level : float, default=0.9
            Probability with which an interval is to cover, between 0 and 1; of each output by itself.
        method : str, default="adaptive"
            ``"adaptive"``: as above, as wide as the noise is around x. ``"full"``: full conformal, the shortest with a
            guarantee of `level`. ``"enclosure"``: contains it, for any number of rows. ``"jackknife+"`` and ``"cv+"``:
            guarantee twice the error rate, by fits without each row or each tenth. ``"minmax"``: the widest jackknife,
            guarantees `level`. ``"jackknife"``: one width, no guarantee. ``"split"``: one width from calibration rows.
            ``"cqr"``: two conditional quantiles, moved until they cover; for skew noise. ``"localized"``: as wide as a
            quantile of the residuals around x. ``"rlcp"``: around a random place near x, which makes its guarantee
            exact with calibration rows.
        weights : callable or (array_like, array_like), optional
            Likelihood ratios of new rows to those that calibrate, where X is distributed differently: a function of a
            table like X, such as ``density_ratio(X_train, X_new)``, or an array for all calibration (or training) rows
            and one for X. Up to a common factor. For ``"adaptive"``, ``"split"``, ``"full"``, ``"enclosure"``,
            ``"cqr"`` and ``"jackknife"``, of single rows.
        X_calibration, y_calibration : array_like of shape (k, d) and (k,) or (k, c), optional
            Rows that the model was not fitted to, nor its bandwidth found on. For ``"split"``, ``"adaptive"``,
            ``"cqr"`` and ``"rlcp"``, which then guarantee `level` whatever the fit, and for ``"localized"``.
        calibration : {None, "all", "unsearched"}, default=None
            Which training rows calibrate. ``"unsearched"``: those that the search for the bandwidth has not seen, if it
            drew `max_search_rows`; then guarantees hold although the bandwidth was searched. None takes them from
            100 000 rows on, and all below.
        groups : array_like, optional
            Cluster of each training row, or of each calibration row if these are given; the interval is then for a row
            of a new cluster, and each cluster counts as one row. By default those that `fit` was given, if any.
        random_state : int, RandomState, Generator or None, default=None
            Seed of methods that draw: ``"cv+"`` its folds, ``"rlcp"`` a place near each.

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
            `groups` or a pair of `weights` of its rows.

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
        Probabilities are averages over new places and over the rows at hand, and not given a place: an interval of one
        width covers too often where the noise is small. Guarantees need rows that could as well have come in any other
        order, and a bandwidth that was not chosen by the rows that calibrate: it was given, or these are other rows, or
        unsearched ones. Where it was found on the same rows statements are approximate, and `guarantee` says so.

        Weights of the fit are frequencies: a weight of 3 is three equal rows. Rows with nothing else in their window
        have an infinite score, unless `empty` gives them a number. With ``extrapolate="clip"`` intervals are those of
        the planes. With ``scale="rank"`` training rows are compared by ranks that they are part of, and statements
        about them are approximate.

        A model on chunks does not hold its rows. ``"adaptive"`` and ``"split"`` then bring up to 4 000 of them into
        memory, at most a quarter, and go through all others once: for each place and each of these 4 000. The interval
        is that of a fit without them, and so is `center`, which guarantees `level` for both methods. They are rows that
        the search for the bandwidth has not seen, if there are so many; ``"adaptive"`` holds back as many again, for
        its scale. With calibration rows ``"split"`` holds none back.

        ``"adaptive"`` takes a pass over pairs of training rows for the residuals, which the model keeps, one for their
        scale, and two over rows and places. ``"full"``, ``"jackknife+"``, ``"minmax"`` and ``"cv+"`` go through all
        pairs of rows and places, at most 2^30. Memory is O(n + m).

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
        if "chunks_" in vars(self):
            return interval_of_source(
                self, ChunkSource(self), X, level=level, method=method, weights=weights, X_calibration=X_calibration,
                y_calibration=y_calibration, calibration=calibration, groups=groups,
            )  # fmt: skip
        fraction, others = as_level(level), check_rows(X_calibration, y_calibration, calibration)
        check_method(method, not others, groups is not None)
        smoother, places = smoother_of(self), places_of(self, X)
        known, origin = None, origin_of(self)
        if others:
            rows = other_rows(self, smoother, X_calibration, y_calibration, groups)
        else:
            rows, known, origin = training_rows(self, smoother, calibration, groups)
        if weights is not None:
            rows = with_ratios(self, rows, weights, X_calibration, X, len(places.query))
        found = prediction_interval(
            Setting(
                smoother,
                places,
                fraction,
                rows,
                generator(as_seed(random_state), 0),
                origin,
                any(scale_of(self).ranked),
                known,
            ),
            method,
        )
        center, lower, upper = (shaped(self, X, [end], "fit") for end in (found.center, found.lower, found.upper))
        return replace(found, center=center, lower=lower, upper=upper, effective_rows=smoother.effective_rows(places))
