"""Bandwidths for the whole distribution of y: in y, and in X."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth import BandwidthSearch
from kernpool.distribution.y_bandwidth import indicators
from kernpool.estimators.bandwidth_choice import choose_bandwidth, in_order_of_columns
from kernpool.estimators.fitted import recipe_of, scaled_keys
from kernpool.estimators.parameters import search_parameters
from kernpool.estimators.smoothing_rows import need_rows
from kernpool.estimators.weighed import y_bandwidths
from kernpool.execution.messages import abbreviate, check_choice

Array = NDArray[np.float64]

CRITERIA = ("loo", "regularised")


class ConditionalBandwidths:
    """Searches for bandwidths that a fitted regressor offers beside its own."""

    def y_bandwidth(self, method: str = "rule") -> float | Array:
        """Find the bandwidth by which a distribution is smoothed in y.

        Parameters
        ----------
        method : {"rule", "ml"}, default="rule"
            Silverman's rule, of the leave-one-out residuals and the median of the effective sample sizes; or maximum
            likelihood of the rows, each from the others (`kernpool.distribution.y_bandwidth` has the formulas).

        Returns
        -------
        float, or ndarray of shape (c,)
            In units of y: the standard deviation of the normal distribution around each value.

        Raises
        ------
        ValueError
            If there is no such method, y does not differ from the fit, or no row has another one in its window.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        UserWarning
            If the likelihood has no maximum, as where outputs are equal to the last digit.

        Notes
        -----
        The rule is for noise that is near to normal, and takes the same time at any n; it oversmooths where there are
        several modes. The likelihood finds these, and follows tails: a value far from all others widens the bandwidth
        for all. Both look at up to 1000 rows and all that they are predicted from, 2**21 pairs where that leaves at
        least 50 rows; the result is kept until the next fit.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(300, 1))
        >>> y = x[:, 0] + rng.choice([-1.0, 1.0], 300) + 0.1 * rng.normal(size=300)
        >>> model = LocalLinearRegressor(bandwidth=0.2).fit(x, y)
        >>> model.y_bandwidth("ml") < 0.3 * model.y_bandwidth()
        True
        """
        need_rows(self, "a bandwidth in y needs")
        if not isinstance(method, str):
            raise ValueError(f"method must be 'rule' or 'ml', got {abbreviate(method)}")
        widths = y_bandwidths(self, method)
        return float(widths[0]) if self.value_.ndim == 1 else widths.copy()  # type: ignore[attr-defined]  # set by fit

    def distribution_bandwidth(self, criterion: str = "loo", *, thresholds: int = 19) -> BandwidthSearch:
        r"""Search the bandwidths that are best for the whole distribution of y, and not for its mean alone.

        .. math:: CV(h) = \sum_i w_i \sum_b \big(1\{y_i \le t_b\} - F_{-i}(t_b \mid x_i)\big)^2 \Big/ \sum_i w_i

        over quantiles t of y: the mean of y may hardly depend on a column that its spread depends on.

        Parameters
        ----------
        criterion : {"loo", "regularised"}, default="loo"
            The first is the formula. The second penalises small and unlike bandwidths, as it does for means
            (`kernpool.bandwidth.criteria`).
        thresholds : int, default=19
            How many quantiles of y; by default those at .05, .1, ..., .95.

        Returns
        -------
        BandwidthSearch
            Of the training rows, with the options of this model. Its `bandwidth` and `smoothing` are parameters of the
            next one, as below.

        Raises
        ------
        ValueError
            If the model is local linear, the criterion unknown, `thresholds` not positive, or y constant.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        y_bandwidth : The bandwidth in y.

        Notes
        -----
        The columns :math:`1\{y \le t_b\}` are outputs like any others, in their own units, so this is the search for a
        mean of so many outputs, and takes as long. Bandwidths are in the convention "support", in the units in which
        columns are compared. A `LocalLinearRegressor` has the distribution of residuals around its fit, and its
        bandwidth is that of the fit.

        References
        ----------
        .. [1] Q. Li, J. Lin and J. S. Racine, "Optimal bandwidth selection for nonparametric conditional distribution
           and quantile functions", Journal of Business and Economic Statistics 31 (2013), 57-65, equation 7.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import NadarayaWatsonRegressor
        >>> rng = np.random.default_rng(1)
        >>> x = rng.uniform(size=(200, 1))
        >>> y = (0.1 + x[:, 0]) * rng.normal(size=200)
        >>> mean = NadarayaWatsonRegressor().fit(x, y)
        >>> found = mean.distribution_bandwidth()
        >>> mean.bandwidth_.round(1), found.bandwidth.round(2)
        (array([9.9]), array([0.15]))
        >>> whole = NadarayaWatsonRegressor(bandwidth=found.bandwidth).fit(x, y)
        """
        need_rows(self, "bandwidths for the distribution need")
        model: Any = self
        if recipe_of(model).degree:
            raise ValueError(
                "distribution_bandwidth is for local constants: this model has the distribution of residuals around a "
                "local linear fit; fit NadarayaWatsonRegressor, or keep the bandwidth of the fit"
            )
        check_choice("criterion", criterion, CRITERIA)
        weight = model.key_weight_
        found = choose_bandwidth(
            scaled_keys(model),
            indicators(model.value_, weight, thresholds),
            weight,
            code=model.key_code_,
            categories=model._categories(),
            group=vars(model).get("key_group_"),
            degree=0,
            standardise=False,
            **(search_parameters(model) | {"bandwidth": criterion}),
        )
        encoding = model.encoding_
        names = vars(model).get("feature_names_in_") if encoding is None else encoding.names
        search: BandwidthSearch = in_order_of_columns(found, names, encoding)["bandwidth_search_"]
        return search
