"""Bootstrap of a fitted regressor, and significance tests of its columns.

`BootstrapMethods` has the public methods. The functions prepare the training rows, the recipe, and fits without some
of the columns for `kernpool.inference`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.bandwidth import CRITERIA, TrainingRows
from kernpool.estimators.bandwidth import choose_bandwidth, search_options
from kernpool.estimators.fitted_model import exclusion_of_groups, places_of
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.model import FittedModel, as_fitted
from kernpool.execution import check_choice, current_progress
from kernpool.inference import SignificanceTable, TestResult, bootstrap
from kernpool.inference.hypothesis_tests.base import TestSample
from kernpool.inference.hypothesis_tests.significance import columns_by_residuals, columns_by_slopes
from kernpool.inference.resampling.random_draws import as_seed
from kernpool.kernels import get_kernel
from kernpool.pooling import Recipe
from kernpool.smoother import Smoother


def sample_of(model: FittedModel) -> TestSample:
    """Return the training rows of a model, after any rank transform, as the sample of a significance test."""
    value = np.asarray(model.value_, dtype=np.float64)
    if value.ndim == 2 and value.shape[1] > 1:
        raise ValueError(
            f"significance_test is of one output, and the model has {value.shape[1]}; fit one output after the other"
        )
    numeric = model.encoding_.numeric
    X = smoother_of(model).keys.rows.array[:, : len(numeric)]  # levels alone have one column of zeros
    what = "significance_test"
    return TestSample.of(X, value.ravel(), model.key_weight_, model.key_code_, model._categories(), what=what)


def _tested(columns: Any, names: Sequence[str] | None, count: int) -> list[int]:
    """Convert the tested columns, given by position or name, to sorted positions without repetitions."""
    asked = [columns] if isinstance(columns, str) or not np.iterable(columns) else list(columns)
    if not asked:
        raise ValueError("columns is empty; name at least one column that is tested")
    places = []
    for column in asked:
        if isinstance(column, str) and names is not None and column in names:
            places.append(names.index(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool) and -count <= column < count:
            places.append(int(column) % count)
        else:
            known = "position 0" if count == 1 else f"positions 0 to {count - 1}"
            known += "" if names is None else f", or {list(names)}"
            raise ValueError(f"columns holds {column!r}, and the model has no such column; it has {known}")
    return sorted(set(places))


def _refuse_constant(
    sample: TestSample, tested: list[int], labels: list[str], numeric: list[int], categorical: list[int]
) -> None:
    for place, label in zip(tested, labels, strict=True):
        values = sample.X[:, numeric.index(place)] if place in numeric else sample.code[:, categorical.index(place)]
        if np.ptp(values) == 0:
            raise ValueError(
                f"column {label} does not vary over the training rows, so that there is nothing to test; leave it out"
            )


def _fit_of_fewer(model: FittedModel, rest: TestSample) -> Smoother:
    """Return the smoother without the tested columns, at newly chosen bandwidths."""
    if not rest.X.shape[1] and not rest.categories.kernels:
        return rest.smoother(Recipe.of("constant", n_jobs=model.n_jobs), np.zeros(0))  # the mean
    # With a compact kernel the best bandwidth of columns that do not matter may be so small that all windows are empty:
    # rows are predicted by the mean of the others, and the fit itself passes through every row.
    options = replace(search_options(model), kernel=get_kernel("gaussian"), algorithm="auto")
    # A rule may smooth so much that what is left of the other columns looks like an effect of the tested ones: that of
    # Scott rejected a true null hypothesis in a third of the samples.
    searched = isinstance(model.bandwidth, str) and model.bandwidth in CRITERIA
    found = choose_bandwidth(
        model.bandwidth if searched else "loo",
        TrainingRows.from_arrays(rest.numeric, rest.y, code=rest.code),
        options,
        categories=rest.categories,
    )
    recipe = Recipe.of("gaussian", found.bandwidth, degree=model._degree, ridge=found.ridge or 0.0, n_jobs=model.n_jobs)
    return rest.smoother(recipe, found.smoothing)


def _significance(model: FittedModel, sample: TestSample, columns: Any, method: str) -> TestResult:
    """Test whether the output of the sample depends on given columns, given the others."""
    encoding = model.encoding_
    names, numeric, categorical = encoding.names, list(encoding.numeric), list(encoding.categorical)
    tested = _tested(columns, names, len(numeric) + len(categorical))
    labels = [str(i) if names is None else repr(names[i]) for i in tested]
    _refuse_constant(sample, tested, labels, numeric, categorical)
    which = f"column{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
    others = ", given the others" if len(tested) < len(numeric) + len(categorical) else ""
    null = f"{model.target_name_ or 'y'} does not depend on {which}{others}"
    of_numbers = [numeric.index(i) for i in tested if i in numeric]
    of_levels = [categorical.index(i) for i in tested if i in categorical]
    if method == "gradient":
        if of_levels:
            raise ValueError(
                f"method='gradient' is of slopes, and categorical columns have none: use method='residual' for {which}"
            )
        fit = sample.smoother(model.smoother_.recipe, model.smoothing_)
        return columns_by_slopes(sample, fit, of_numbers, null)
    levels = [a for a in range(len(categorical)) if a not in of_levels]
    rest = sample.take([a for a in range(len(numeric)) if a not in of_numbers], levels)
    return columns_by_residuals(sample, _fit_of_fewer(model, rest), model.smoothing_, of_levels, null)


class BootstrapMethods(FittedModel):
    """Mixin of regressors: bootstrap of the fit, and significance tests of columns."""

    def bootstrap(
        self,
        X: ArrayLike | None = None,
        statistic: Callable[[Array], Any] | None = None,
        *,
        n_resamples: int = 999,
        kind: str = "wild",
        groups: ArrayLike | None = None,
        random_state: Any = 0,
        max_bytes: int = 1 << 30,
    ) -> Array:
        r"""Compute the fit, or a statistic of it, in bootstrap resamples at the fitted bandwidth.

        .. math:: \hat m^*(x) = \sum_j l_j(x)\, y^*_j, \qquad y^*_j = \hat m(x_j) + r_j \xi_j

        Parameters
        ----------
        X : array_like of shape (m, d), optional
            Where; by default the training rows.
        statistic : callable, optional
            Takes the fit of a resample, of shape (m,) or (m, c), and returns a number or an array, such as
            ``lambda fit: fit.max()``. By default the fit itself.
        n_resamples : int, default=999
            How many.
        kind : {"wild", "mammen", "gaussian", "residual", "pairs"}, default="wild"
            The first three multiply the leave-one-out residual of each row by a random sign, Mammen's two points, or a
            normal number. ``"residual"`` gives rows the residuals of others, ``"pairs"`` draws rows with replacement.
        groups : array_like of shape (n,), optional
            Cluster of each training row, by default as in `fit`; rows of one share a draw. Not for ``"residual"``.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.
        max_bytes : int, default=2**30
            The largest result allowed.

        Returns
        -------
        ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, ...) of a statistic
            One resample after the other; the same bits for any number of threads.

        Raises
        ------
        ValueError
            If the result would be larger than `max_bytes`, a weight is no whole number, an argument is out of its
            range, or a window is empty and `empty` is ``"raise"``.
        TypeError
            If the model was fitted to chunks.

        Notes
        -----
        Nothing is fitted again: ``np.std(result, axis=0)`` is a standard error, and percentiles are no confidence
        interval for the truth.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> model = LocalLinearRegressor(bandwidth=1.0).fit([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 1.0, 3.0, 2.0])
        >>> model.bootstrap([[1.0], [2.0]], lambda fit: fit.max(), n_resamples=99).shape
        (99,)
        """
        model = as_fitted(self)
        smoother, at = smoother_of(model, "bootstrap"), None
        units = smoother.units
        if groups is None:
            refuse(model, "bootstrap without groups=")
        else:
            units = exclusion_of_groups(model, groups).units
        if X is not None:
            at = places_of(model, X)
        return bootstrap(
            smoother,
            at,
            statistic=statistic,
            n_resamples=n_resamples,
            kind=kind,
            units=units,
            random_state=random_state,
            max_bytes=max_bytes,
            flat=model.value_.ndim == 1,
            progress=current_progress(),
        )

    def significance_test(
        self,
        columns: int | str | Sequence[int | str] | None = None,
        *,
        method: str = "residual",
        kind: str = "wild",
        n_resamples: int = 399,
        random_state: Any = 0,
    ) -> TestResult | SignificanceTable:
        r"""Test whether y depends on given columns, given the other columns, or on each column given the others.

        .. math:: T = \sum_i u_i \sum_{j \ne i} K_{ij} u_j \Big/ \sqrt{2 \sum_i u_i^2 \sum_{j \ne i} K_{ij}^2 u_j^2}

        with the residuals u of a fit without these columns, and weights K of pairs by all of them.

        Parameters
        ----------
        columns : int, str, or sequence of them, optional
            Positions or names. Several are tested together: whether any of them matters. By default one column after
            the other, which gives a table.
        method : {"residual", "gradient"}, default="residual"
            By the residuals of a fit without the columns; or by slopes over their standard errors, as R's
            ``npsigtest``, for numeric columns. The first is the more powerful.
        kind : {"wild", "mammen", "gaussian"}, default="wild"
            As in `bootstrap`.
        n_resamples : int, default=399
            How many; a p-value near .05 then has a standard deviation of .011.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.

        Returns
        -------
        TestResult or SignificanceTable
            Whose `bandwidth` is that of pairs, or for ``"gradient"`` that of the fit. A table, of all columns, has such
            results by name.

        Raises
        ------
        TypeError
            If the model was fitted to chunks.
        ValueError
            If there is no such column or it does not vary, there are several outputs, fewer than five rows, or no
            residuals, or a weight is no whole number.

        Notes
        -----
        The fit without the columns is Gaussian, of the degree of the model, and has bandwidths of its own. Pairs are
        weighed with bandwidths :math:`\hat\sigma_a n^{-1/(4 + d)}`, not those of the fit.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x = np.linspace(0.0, 1.0, 40)[:, None]
        >>> LocalLinearRegressor(bandwidth=0.2).fit(x, np.sin(6 * x[:, 0])).significance_test(0, n_resamples=99).p_value
        0.01
        """
        model = as_fitted(self)
        check_choice("method", method, ("residual", "gradient"))
        refuse(model, "significance_test")
        sample = replace(sample_of(model), kind=kind, n_resamples=n_resamples, seed=as_seed(random_state))
        if columns is not None:
            return _significance(model, sample, columns, method)
        every = model.encoding_.names or range(model.n_features_in_)
        tests = {one: _significance(model, sample, one, method) for one in every}
        return SignificanceTable(model.target_name_ or "y", tests)
