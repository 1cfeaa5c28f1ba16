"""Simultaneous confidence bands: critical values by the tube formula and by the multiplier bootstrap.

The tube formula is for curves: one numeric column, independent rows, linear weights without jumps. It covers all
points of the interval and draws nothing. The multiplier bootstrap is for everything else (several columns, kernels
with an edge, dependent rows), and covers the given evaluation points. Both end in a critical value, the number of
standard errors on either side. Standard errors are estimated, so at each point Student's quantile of the same tail
probability is used.

Tube formula. The error of a linear estimate, in standard errors, is the inner product of the unit vector ``l(q) /
||l(q)||`` with a standard normal z. As q moves, the unit vector runs along a path on the sphere, and the largest
error anywhere exceeds c with probability (Sun and Loader [1]_)::

    (kappa / pi) exp(-c^2 / 2) + 2 P (1 - Phi(c)),    kappa = integral || d/dq  l(q) / ||l(q)|| || dq

with the length kappa of the path and its number of pieces P, one unless there are empty windows on the way. On a
grid the length is a sum of angles between neighbours, whose inner products are pooling states, too. For the
Gaussian::

    K((q - x) / h) K((r - x) / h') = exp(-(q - r)^2 / (2 (h^2 + h'^2))) K((c - x) / g)
    g^-2 = h^-2 + h'^-2,    c = g^2 (q h^-2 + r h'^-2)

For other kernels neighbours are compared key by key.

Multiplier bootstrap. The error of an estimate at q is sum_j l_j(q) r_j xi_j with independent numbers xi of mean 0
and variance 1, the same at all points. With standard normal xi, drawn B times, the critical value is a quantile
of::

    T_b = sup_q | sum_j l_j(q) r_j xi_jb | / sqrt( sum_j l_j(q)^2 r_j^2 )

over the evaluation points q [2]_ [3]_; at a single point T is the absolute value of a standard normal number. With
a local noise estimate r is one: the noise, smooth at the scale of the linear weights, cancels, as in the tube
formula. In a sandwich estimate r are its residuals, and rows of a larger unit share one xi.

Linear weights do not depend on outputs, so the draws are columns of outputs: tables of weights for blocks of points
are multiplied by all of them, or, where that is too much memory, up to 64 columns at a time are pooled.

References
----------
.. [1] J. Sun and C. R. Loader, "Simultaneous confidence bands for linear regression and smoothing", Annals of
   Statistics 22 (1994), 1328-1345.
.. [2] V. Chernozhukov, D. Chetverikov and K. Kato, "Anti-concentration and honest, adaptive confidence bands",
   Annals of Statistics 42 (2014), 1787-1818.
.. [3] V. Chernozhukov, S. Lee and A. M. Rosen, "Intersection bounds: estimation and inference", Econometrica 81
   (2013), 667-737.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.core import Layout, PoolState, Units
from kernpool.core.local_fit import in_other_bandwidths, mean_product
from kernpool.execution import abbreviate, as_count, blas_threads
from kernpool.inference.resampling import random_draws
from kernpool.inference.variance.standard_errors import Errors
from kernpool.kernels import Gaussian, Kernel, products
from kernpool.smoother import Estimate, EvaluationPoints, LinearWeights, Smoother, WeightTables, estimate, squared_norm
from kernpool.smoother.bias_correction import centers
from kernpool.smoother.quadratic_forms import Summed, product_problem

NOTHING = 1e-10  # a spread below this fraction of the largest is rounding
# Draws up to which they are multiplied by tables. 400 rows of two columns at 225 points take 0.3 s, most of it for
# drawing, where pooling takes 1.5, and 9 for a slope.
NUMBERS = 1 << 23
TABLE = 1 << 21  # linear weights in one table, which is multiplied by all of them


def largest_errors(
    smoother: Smoother,
    places: EvaluationPoints,
    found: Estimate,
    errors: Errors,
    *,
    method: str,
    n_resamples: int = 999,
    random_state: Any = 0,
) -> Array:
    """Draw the supremum of the studentised error over evaluation points (multiplier bootstrap)."""
    # Points whose window is empty, or has only zero residuals, are ignored. The same bits for any number of threads.
    seed = random_draws.as_seed(random_state)
    residual, times = _residuals_to_multiply(errors.residual, smoother.weight, errors.units)
    with np.errstate(invalid="ignore"):
        known = errors.spread > NOTHING * np.max(np.nan_to_num(errors.spread), axis=0, initial=0.0)
    inverse = np.divide(1.0, errors.spread, where=known, out=np.zeros_like(errors.spread))
    values = random_draws.multiplied(
        residual, "gaussian", seed, n_resamples, times=times, units=errors.units, results=len(places.query)
    )
    if residual.size * n_resamples <= NUMBERS:
        return _errors_by_tables(found, np.concatenate([value for _, value in values], axis=1), inverse)
    largest = np.zeros((n_resamples, residual.shape[1]))
    for block, value in values:
        error = centers(smoother.with_values(value.reshape(len(value), -1)), places, method, found.column)
        largest[block] = _largest(error.reshape(len(error), *value.shape[1:]), inverse)
    return largest


def _errors_by_tables(found: Estimate, value: Array, inverse: Array) -> Array:
    """Return the largest studentised error over points, for each draw and output, from tables of linear weights."""
    tables, largest = WeightTables.of(found.terms), np.zeros(value.shape[1:])
    flat = np.ascontiguousarray(value[tables.kept].reshape(len(tables.kept), -1))
    step = max(1, min(TABLE // len(tables.kept), NUMBERS // flat.shape[1]))
    with blas_threads():  # of BLAS: the same bits wherever it runs
        for start in range(0, len(inverse), step):
            rows = slice(start, start + step)
            share = tables.rows(rows)
            share[~np.any(inverse[rows] > 0, axis=1)] = 0.0  # NaN where windows are empty
            error = (share @ flat).reshape(-1, *value.shape[1:])
            np.maximum(largest, _largest(error, inverse[rows]), out=largest)
    return largest


def _largest(error: Array, inverse: Array) -> Array:
    """Return the largest studentised absolute error over points, for each draw and output."""
    size = np.where(inverse[:, None, :] > 0, np.abs(error) * inverse[:, None, :], 0.0)
    return np.asarray(np.max(size, axis=0, initial=0.0))


def critical_values(largest: Array, level: float) -> Array:
    """Return the critical value of a simultaneous band, for each output, from draws of the largest error."""
    # rank ceil(level (B + 1)): one more draw is larger with probability at most 1 - level
    from scipy.special import ndtri

    part = Fraction(str(float(level)))
    rank = math.ceil(part * (len(largest) + 1))
    if rank > len(largest):
        raise ValueError(
            f"n_resamples={len(largest)} are too few for level={level:g}, whose quantile is beyond all of them; use "
            f"n_resamples={math.ceil(part / (1 - part))} or more"
        )
    return np.asarray(np.maximum(np.sort(largest, axis=0)[rank - 1], -ndtri(0.5 * (1.0 - level))))


def _residuals_to_multiply(residual: Array, weight: Array, units: Units) -> tuple[Array, Integers | None]:
    """Return residuals to be multiplied by random draws, and how many draws are averaged for each residual."""
    # a mean of w normal numbers has variance 1 / w: one draw per row, rescaled, where w is fractional or large
    if units.code is not None or np.all(weight == 1.0):
        return residual, None
    if np.array_equal(weight, np.rint(weight)) and weight.sum() <= random_draws.MOST_UNITS:
        return residual, weight.astype(np.int64)
    scale = np.divide(1.0, np.sqrt(weight), where=weight > 0, out=np.zeros_like(weight))
    return residual * scale[:, None], None


PER_BANDWIDTH, FEWEST, MOST = 8, 401, 200_001  # points of the grid


def critical_value(kappa: float, level: float, pieces: int = 1) -> float:
    """Return the critical value of a simultaneous band by the tube formula, in standard errors."""
    # `kappa` is the length of the path of normalised linear weights
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(c: float) -> float:
        return kappa / math.pi * math.exp(-0.5 * c * c) + 2.0 * pieces * float(ndtr(-c)) - (1.0 - level)

    return float(brentq(excess, 0.0, 40.0, xtol=1e-14, rtol=1e-15))


def path_length(
    smoother: Smoother, grid: EvaluationPoints, method: str, column: int | None = None
) -> tuple[float, int]:
    """Return the length of the path of normalised linear weights along a grid, and the number of its pieces."""
    # eight grid points per bandwidth give three digits
    found = estimate(smoother, grid, method, column)
    if len(found.center) < 2:
        near = np.empty(0)
    elif isinstance(smoother.recipe.kernel.form, Gaussian):
        near = _by_centers(found, smoother.sums)
    else:
        near = _by_tables(found)
    squared = squared_norm(found.terms, found.sums)
    known = squared > 0
    pieces = int(known[0]) + int(np.count_nonzero(known[1:] & ~known[:-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = near / np.sqrt(squared[:-1] * squared[1:])
    angle = np.arccos(np.clip(cosine[known[:-1] & known[1:]], -1.0, 1.0))
    return float(np.sum(angle)), max(pieces, 1)


def _by_centers(found: Estimate, sums: Summed) -> Array:
    """Return inner products of linear weights at neighbouring grid points, from kernel sums (Gaussian kernel)."""
    total, rows = np.zeros(len(found.center) - 1), np.arange(len(found.center) - 1)
    for i, (a, one) in enumerate(found.terms):
        for b, other in found.terms[: i + 1]:
            narrow, wide = (one, other) if one.factor <= other.factor else (other, one)
            (term,) = products(one.problem.similarity.kernel, wide.factor / narrow.factor)
            of_both = product_problem(narrow, wide, term, None)
            between = [_neighbour_products(narrow, wide)]
            if one is not other:
                between.append(_neighbour_products(wide, narrow))
            query = np.concatenate([center for center, _ in between])
            state = sums(replace(of_both.block(np.tile(rows, len(between))), query=query))
            for number, (_, inner_products) in enumerate(between):
                total += a * b * inner_products(state.rows(rows + number * len(rows)), of_both.layout)
    return total


def _neighbour_products(one: LinearWeights, other: LinearWeights) -> tuple[Array, Callable[[PoolState, Layout], Array]]:
    """Return a center of each pair of neighbouring grid points, and the inner products of the linear weights there."""
    q, r = one.problem.query[:-1], other.problem.query[1:]
    h, g = one.problem.similarity.bandwidth, other.problem.similarity.bandwidth
    ratio = other.factor / one.factor
    width, other_width = 1.0 / math.sqrt(1.0 + ratio**-2), 1.0 / math.sqrt(1.0 + ratio**2)  # of their product
    center = q * width**2 + r * other_width**2
    first, second = _recentered(one, slice(0, -1), center - q), _recentered(other, slice(1, None), center - r)
    log_factor = -0.5 * np.sum(((q - r) / np.hypot(h, g)) ** 2, axis=1)

    def inner_products(state: PoolState, layout: Layout) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.exp(state.log_denominator + log_factor - first.log_mass - second.log_mass)
            ours = first.base, in_other_bandwidths(first.tilt, layout, width)
            theirs = second.base, in_other_bandwidths(second.tilt, layout, other_width)
            product, _ = mean_product(state, layout, ours, theirs)
            return np.asarray(unit * product)

    return center, inner_products


def _recentered(shares: LinearWeights, which: slice, moved: Array) -> LinearWeights:
    """Rewrite linear weights, polynomials of offsets from queries, as polynomials about other points (one column)."""
    delta = (moved / shares.problem.similarity.bandwidth)[:, 0]
    base, tilt = shares.base[which], shares.tilt[which].copy()
    if tilt.shape[1]:
        base = base + tilt[:, 0] * delta
    if tilt.shape[1] == 2:
        base = base + tilt[:, 1] * delta**2
        tilt[:, 0] += 2.0 * tilt[:, 1] * delta
    return LinearWeights(shares.problem.block(which), shares.factor, shares.log_mass[which], base, tilt)


def _by_tables(found: Estimate) -> Array:
    """Return inner products of linear weights at neighbouring grid points, from tables of weights (any kernel)."""
    tables, last, parts = WeightTables.of(found.terms), len(found.center) - 1, []
    for start in range(0, last, tables.places):
        share = tables.rows(slice(start, min(start + tables.places, last) + 1))
        parts.append(np.sum(share[:-1] * share[1:] / tables.weight, axis=1))
    return np.concatenate(parts)


def curve_grid(smoother: Smoother, places: EvaluationPoints) -> EvaluationPoints:
    """Return an evenly spaced grid from the smallest to the largest evaluation point, for the tube formula."""
    low, high = float(places.query.min()), float(places.query.max())
    bandwidth = float(np.ravel(smoother.recipe.bandwidth)[0])
    number = max(math.ceil(PER_BANDWIDTH * (high - low) / bandwidth) + 1, FEWEST) if high > low else 1
    code = None if places.code is None else np.repeat(places.code[:1], number, axis=0)
    return smoother.points(np.linspace(low, high, number)[:, None], code)


def why_no_tube(smoother: Smoother, places: EvaluationPoints) -> str | None:
    """Return the reason why the tube formula does not apply, in words; None if it does."""
    if smoother.units.code is not None:
        return f"the tube formula is for independent rows, and these come in {smoother.units.plural}"
    if smoother.window != "fixed":
        return "the tube formula is for windows of the bandwidth, and these follow the rows"
    if smoother.columns != 1:
        return f"the tube formula is for curves, of one numeric column, and there are {smoother.columns}"
    if places.code is not None and len(places.code) and np.any(places.code != places.code[0]):
        return "the tube formula is for one curve, and the points of X have several combinations of categories"
    kernel = smoother.recipe.kernel
    if _has_edge(kernel):
        return (
            f"the fit jumps wherever a row enters a window of the kernel {kernel.name!r}, and the tube formula needs a "
            "continuous fit"
        )
    extent = float(np.ptp(places.query)) / float(np.ravel(smoother.recipe.bandwidth)[0])
    if not PER_BANDWIDTH * extent <= MOST:
        return f"the points of X are up to {extent:.6g} bandwidths apart, too far for the grid of the tube formula"
    return None


def _has_edge(kernel: Kernel) -> bool:
    """Return whether a kernel of compact support jumps to zero at its edge."""
    return kernel.is_compact and bool(
        kernel.profile(np.array([np.nextafter(kernel.support, 0.0)]))[0] > 1e-6 * kernel.profile(np.zeros(1))[0]
    )


def choose_band(smoother: Smoother, places: EvaluationPoints, simultaneous: Any) -> str | None:
    """Choose the method of a band: the tube formula where it applies, else the multiplier bootstrap; None for none."""
    flag = isinstance(simultaneous, bool | np.bool_)
    if not (flag or (isinstance(simultaneous, str) and simultaneous in ("tube", "multiplier"))):
        raise ValueError(
            f"simultaneous must be False, True, 'tube' or 'multiplier', got {abbreviate(simultaneous)}; False is for "
            "intervals of single places, True for a band, by the tube formula where it holds"
        )
    if not simultaneous:
        return None
    if simultaneous == "multiplier":
        return "multiplier"
    reason = why_no_tube(smoother, places)
    if reason is not None and simultaneous == "tube":
        raise ValueError(f"{reason}; use simultaneous='multiplier', which covers all places of X at once")
    return "tube" if reason is None else "multiplier"


def band_critical_values(
    smoother: Smoother,
    places: EvaluationPoints,
    found: Estimate,
    errors: Errors,
    *,
    kind: str,
    level: float,
    method: str,
    n_resamples: int = 999,
    random_state: Any = 0,
) -> Array:
    """Return the critical values of a simultaneous band, in standard errors, by the tube formula or the bootstrap."""
    # standard errors are treated as known
    if kind == "tube":
        kappa, pieces = path_length(smoother, curve_grid(smoother, places), method, found.column)
        return np.array([critical_value(kappa, level, pieces)])
    number = as_count("n_resamples", n_resamples, hint=" such as 399")
    critical_values(np.zeros((number, 1)), level)  # raise for too few draws before they are made
    options: dict[str, Any] = {"method": method, "n_resamples": number, "random_state": random_state}
    return critical_values(largest_errors(smoother, places, found, errors, **options), level)
