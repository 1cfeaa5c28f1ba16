"""Standard errors where rows are not independent: rows in clusters, or next to each other in an order such as time.

With clusters, such as the visits of a patient, the variance at q, and the effective number G(q) of clusters, are::

    var(q) = sum_g ( sum_{j in g} l_j(q) r_j )^2
    G(q) = (sum_g s_g)^2 / sum_g s_g^2,    s_g = sum_{j in g} l_j(q)^2 / w_j

with residuals r from fits without the row's whole cluster. Student's quantile has ``G - 1`` degrees of freedom.
With 24 clusters of 10 rows 95 percent intervals cover 95.1 percent; with residuals of the fit itself and the normal
quantile [1]_ 90; under the assumption of independent rows 60 to 84.

In an order, with correlations rho_d of the residuals d places apart, the variance is::

    var(q) = sigma^2(q) [ sum_j l_j^2 + sum_d g_d rho_d sum_(j, k d places apart) l_j l_k ]

and that of a sandwich has the products of residuals themselves [2]_::

    var(q) = sum_j sum_k g_|j - k| (l_j r_j) (l_k r_k)

Residuals r are of fits without the rows within the gap. The first one is the default for the reason that it is one for
independent rows: a sandwich knows the noise by the few rows that make the fit. Its tapers g are one up to the gap and
fall to zero at twice the gap, because the weights that Newey and West [2]_ let fall from the first lag on take a sixth
of the correlations away (a correlation of .6, a gap of 5); it is never less than for independent noise. The sandwich,
which has to be positive, has theirs, up to twice the gap.

Keys are sorted by cluster or place, and linear weights of a block of queries at a time are summed over the keys of
each: time is that of all pairs, for an order once for each lag, memory n + m.

References
----------
.. [1] K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73
   (1986), 13-22.
.. [2] W. K. Newey and K. D. West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent
   covariance matrix", Econometrica 55 (1987), 703-708.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.core import Exclusion
from kernpool.execution import cut, resolve_n_jobs, run_blocks
from kernpool.smoother import Estimate, Smoother, Training, WeightTables

LEFT_OUT = ("local", "sandwich", "hc3")  # with clusters all three leave clusters out
OF_CLUSTERS = (*LEFT_OUT, "hc0", "hc1")
FEW_CLUSTERS = (
    "fewer than two clusters count, so that nothing tells how much clusters differ, and standard errors become NaN; "
    "use a larger bandwidth, or finer groups"
)


def refuse_for_dependent(variance: str, exclusion: Exclusion) -> None:
    """Raise ValueError if a variance estimator is for independent rows only."""
    allowed: tuple[str, ...] = OF_CLUSTERS
    which = "leave-cluster-out, or those of the fit itself with 'hc0' and 'hc1'"
    if exclusion.gap:
        allowed = LEFT_OUT
        which = "those without the rows within the gap, and their correlations count"
    if variance not in allowed:
        raise ValueError(
            f"variance={variance!r} is for independent rows; with {exclusion.option}, residuals are {which}; leave "
            "variance out, or use 'sandwich'"
        )


def residuals_of_whole_fit(code: Integers, training: Training, *, corrected: bool) -> Array:
    r"""Return residuals of the fit to all rows, for CR0 variances of clusters; scaled for CR1 if `corrected`.

    CR1 multiplies variances by :math:`\frac{G}{G - 1} \frac{W - 1}{W - \operatorname{tr} H}`, with G clusters and W
    rows, as Stata's and nprobust's cluster-robust variances do with the number of parameters in place of the trace.
    """
    kept = training.weight > 0
    factor = 1.0
    if corrected:
        count = len(np.unique(code[kept]))
        factor = count / (count - 1.0) * (training.rows - 1.0) / training.freedom
    return np.asarray(np.sqrt(factor) * np.where(kept[:, None], training.value - training.fitted, 0.0))


def errors_of_units(smoother: Smoother, found: Estimate, code: Integers, residual: Array) -> tuple[Array, Array, Array]:
    """Compute cluster-robust standard errors, degrees of freedom, and norms of linear weights of an estimate."""
    # df is the effective number of clusters minus one; the size is the norm of the linear weights of unit rows
    tables = WeightTables.of(found.terms, np.argsort(code, kind="stable"))
    residual, code = residual[tables.kept], code[tables.kept]
    starts = np.append(0, np.flatnonzero(np.diff(code)) + 1)  # of the rows of each cluster
    m = len(found.center)
    variance, sizes = np.zeros((m, residual.shape[1])), np.zeros((m, 2))

    def work(rows: slice) -> Iterator[None]:
        share = tables.rows(rows)
        for c, column in enumerate(residual.T):
            variance[rows, c] = np.sum(np.add.reduceat(share * column, starts, axis=1) ** 2, axis=1)
        own = np.add.reduceat(share**2 / tables.weight, starts, axis=1)
        sizes[rows, 0] = own.sum(axis=1)
        sizes[rows, 1] = np.sum(own**2, axis=1)
        yield

    run_blocks(work, cut(m, tables.places), resolve_n_jobs(smoother.recipe.n_jobs), None)
    told = found.occupied & (sizes[:, 1] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.where(told, sizes[:, 0] ** 2 / sizes[:, 1], np.nan)
    error = np.where(told[:, None], np.sqrt(variance), np.nan)
    return error, np.asarray(count - 1.0), np.where(found.occupied, np.sqrt(sizes[:, 0]), np.nan)


LAGS = 2  # gaps


def autocorrelation(residual: Array, weight: Array, order: Exclusion) -> Array:
    """Estimate correlations of residuals at each lag up to twice the gap, by pairs of unit rows."""
    # correlation of two rows at the same place, then 1, 2, ... places apart, times the taper
    count, sums = sums_of_places(order, weight, weight[:, None] * residual)
    square = np.sum(weight[:, None] * residual**2, axis=0)
    mean = square / weight.sum()
    unit = np.where(mean > 0, mean, 1.0)
    pairs = float(np.sum(count**2) - weight.sum())
    found = np.zeros((1 + min(LAGS * order.gap, len(count) - 1), len(unit)))
    if pairs > 0:
        found[0] = (np.sum(sums**2, axis=0) - square) / pairs / unit
    for lag in range(1, len(found)):
        pairs = float(count[lag:] @ count[:-lag])
        if pairs > 0:
            taper = min(1.0, (LAGS * order.gap + 1 - lag) / (order.gap + 1.0))
            found[lag] = taper * np.sum(sums[lag:] * sums[:-lag], axis=0) / pairs / unit
    return found


def sums_of_places(order: Exclusion, weight: Array, number: Array) -> tuple[Array, Array]:
    """Sum weights, and numbers of shape (n, c), over the rows of each place."""
    places = int(order.code.max()) + 1
    count = np.bincount(order.code, weight, places).astype(np.float64)
    sums = np.zeros((places, number.shape[1]))
    np.add.at(sums, order.code, number)
    return count, sums


def inflation(order: Exclusion, found: Estimate, correlations: Array) -> Array:
    """Return the variance of an estimate with correlated noise, in units of that with independent noise."""
    tables, (m, c) = _in_order(order, found), (len(found.center), correlations.shape[1])
    added, alone = np.zeros((m, c)), np.zeros(m)
    for rows in cut(m, tables.places):
        share = tables.rows(rows)
        alone[rows] = np.sum(share**2 / tables.weight, axis=1)
        products = _products_by_lag(_by_place(order, tables, share), len(correlations) - 1)
        added[rows] = (products[:, :1] - alone[rows, None]) * correlations[0]
        added[rows] += 2.0 * products[:, 1:] @ correlations[1:]
    ratio = np.divide(added, alone[:, None], where=alone[:, None] > 0, out=np.zeros_like(added))
    return np.where(found.occupied[:, None], 1.0 + np.maximum(ratio, 0.0), 1.0)


def sandwich(order: Exclusion, found: Estimate, residual: Array) -> Array:
    """Return the standard errors of an estimate from products of residuals up to twice the gap apart, (m, c)."""
    tables, m = _in_order(order, found), len(found.center)
    lags = LAGS * order.gap
    taper = np.append(1.0, 2.0 * (1.0 - np.arange(1, lags + 1) / (lags + 1.0)))
    variance = np.zeros((m, residual.shape[1]))
    for rows in cut(m, tables.places):
        share = tables.rows(rows)
        for c, column in enumerate(residual[tables.kept].T):
            products = _products_by_lag(_by_place(order, tables, share * column), lags)
            variance[rows, c] = products @ taper
    return np.sqrt(np.maximum(variance, 0.0))


def _in_order(order: Exclusion, found: Estimate) -> WeightTables:
    """Return the linear weights of an estimate for the rows of positive weight, in their order."""
    return WeightTables.of(found.terms, np.argsort(order.code, kind="stable"))


def _by_place(order: Exclusion, tables: WeightTables, share: Array) -> Array:
    """Sum numbers of rows in their order over the rows of each place; places without rows are zero."""
    place = order.code[tables.kept]
    starts = np.flatnonzero(np.append(True, np.diff(place) > 0))
    sums = np.zeros((len(share), int(place[-1] - place[0]) + 1))
    sums[:, place[starts] - place[0]] = np.add.reduceat(share, starts, axis=1)
    return sums


def _products_by_lag(sums: Array, lags: int) -> Array:
    """Return sums of products of numbers 0, 1, ... places apart, of shape (queries, lags + 1)."""
    products = np.zeros((len(sums), lags + 1))
    for lag in range(min(lags + 1, sums.shape[1])):
        products[:, lag] = np.einsum("ij,ij->i", sums[:, lag:], sums[:, : sums.shape[1] - lag])
    return products
