r"""The multiplier bootstrap: how wide a band over any set of places is, whatever the kernel, the columns and the rows.

The error of an estimate at q is :math:`\sum_j l_j(q) r_j \xi_j` with independent numbers :math:`\xi` of mean 0 and
variance 1, the same at all places. With standard normal :math:`\xi`, drawn B times, the critical value of a band is a
quantile of

.. math:: T_b = \sup_q \Big| \sum_j l_j(q)\, r_j\, \xi_{jb} \Big| \Big/ \Big( \sum_j l_j(q)^2\, r_j^2 \Big)^{1/2}

over the places q [1]_ [2]_: at each of them alone T is the absolute value of a standard normal number. Where noise is
local, r is one: the noise, smooth at the scale of the shares, cancels, as in the tube formula. In a sandwich r are the
residuals that it takes, and rows of a cluster have one :math:`\xi` together.

Shares do not depend on outputs, so the draws are columns of outputs: a table of shares, some places at a time, times
all of them, or where there are too many numbers, pooled up to 64 at a time.

References
----------
.. [1] V. Chernozhukov, D. Chetverikov and K. Kato, "Anti-concentration and honest, adaptive confidence bands", Annals
   of Statistics 42 (2014), 1787-1818.
.. [2] V. Chernozhukov, S. Lee and A. M. Rosen, "Intersection bounds: estimation and inference", Econometrica 81 (2013),
   667-737.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.blas import one_thread
from kernpool.inference import draws
from kernpool.inference.bootstrap import multiplied
from kernpool.inference.corrected import Estimate, centers
from kernpool.inference.share_tables import ShareTables
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.standard_errors import Errors

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NOTHING = 1e-10  # a spread below this share of the largest is that of rounding
# Draws up to which they are multiplied by tables. 400 rows of two columns at 225 places take 0.3 s, most of it for
# drawing, where pooling takes 1.5, and 9 for a slope.
NUMBERS = 1 << 23


def largest_errors(
    smoother: Smoother,
    places: Places,
    found: Estimate,
    errors: Errors,
    *,
    method: str = "robust",
    column: int | None = None,
    n_resamples: int = 999,
    random_state: Any = 0,
) -> Array:
    """Draw the largest error over some places, in standard errors.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    places : Places
        Those that a band is to hold at, all at once.
    found : Estimate
        The estimate there.
    errors : Errors
        Its residuals, spread and clusters.
    method, column
        As of `estimate`.
    n_resamples : int, default=999
        How many are drawn.
    random_state : int, RandomState, Generator or None, default=0
        As of `draws.as_seed`.

    Returns
    -------
    ndarray of shape (n_resamples, c) or (n_resamples, 1)
        One for each output; one for all where residuals are ones. The same bits for any number of threads.

    Notes
    -----
    Time of rows times places times draws, at the speed of matrix products; of many rows, as many passes as for the
    estimate for each 64 draws. Places whose window is empty, or has residuals of zero alone, do not count.
    """
    seed = draws.as_seed(random_state)
    residual, units = _of_unit_rows(errors.residual, smoother.weight, errors.cluster)
    with np.errstate(invalid="ignore"):
        known = errors.spread > NOTHING * np.max(np.nan_to_num(errors.spread), axis=0, initial=0.0)
    inverse = np.divide(1.0, errors.spread, where=known, out=np.zeros_like(errors.spread))
    values = multiplied(
        residual, "gaussian", seed, n_resamples, units=units, cluster=errors.cluster, results=len(places.query)
    )
    if residual.size * n_resamples <= NUMBERS:
        return _by_tables(found, np.concatenate([value for _, value in values], axis=1), inverse)
    largest = np.zeros((n_resamples, residual.shape[1]))
    for block, value in values:
        error = centers(smoother.with_values(value.reshape(len(value), -1)), places, method, column)
        largest[block] = _largest(error.reshape(len(error), *value.shape[1:]), inverse)
    return largest


def _by_tables(found: Estimate, value: Array, inverse: Array) -> Array:
    """Return the largest errors of all draws at once, of shape (n_resamples, c)."""
    tables, largest = ShareTables.of(found.terms), np.zeros(value.shape[1:])
    flat = np.ascontiguousarray(value[tables.kept].reshape(len(tables.kept), -1))
    step = max(1, min(tables.places, NUMBERS // flat.shape[1]))
    with one_thread():  # of BLAS: the same bits wherever it runs
        for start in range(0, len(inverse), step):
            rows = slice(start, start + step)
            share = tables.rows(rows)
            share[~np.any(inverse[rows] > 0, axis=1)] = 0.0  # NaN where windows are empty
            error = (share @ flat).reshape(-1, *value.shape[1:])
            np.maximum(largest, _largest(error, inverse[rows]), out=largest)
    return largest


def _largest(error: Array, inverse: Array) -> Array:
    """Return the largest of errors of shape (places, draws, c), in units of their spread; for no place zero."""
    size = np.where(inverse[:, None, :] > 0, np.abs(error) * inverse[:, None, :], 0.0)
    return np.asarray(np.max(size, axis=0, initial=0.0))


def critical_values(largest: Array, level: float) -> Array:
    """Return how many standard errors a band is wide on either side, from draws of the largest error.

    Parameters
    ----------
    largest : ndarray of shape (n_resamples, c)
        From `largest_errors`.
    level : float
        Of the band.

    Returns
    -------
    ndarray of shape (c,)
        The value at rank ``ceil(level (B + 1))``, so that one more draw is larger with probability at most
        ``1 - level``; never less than the quantile of a single interval.

    Raises
    ------
    ValueError
        If there are too few draws for the level.

    Examples
    --------
    >>> critical_values(np.linspace(0.0, 4.0, 99)[:, None], 0.9).round(3)
    array([3.633])
    >>> critical_values(np.zeros((99, 1)), 0.9).round(3)
    array([1.645])
    """
    from scipy.special import ndtri

    part = Fraction(str(float(level)))
    rank = math.ceil(part * (len(largest) + 1))
    if rank > len(largest):
        raise ValueError(
            f"n_resamples={len(largest)} are too few for level={level:g}, whose quantile is beyond all of them; use "
            f"n_resamples={math.ceil(part / (1 - part))} or more"
        )
    return np.asarray(np.maximum(np.sort(largest, axis=0)[rank - 1], -ndtri(0.5 * (1.0 - level))))


def _of_unit_rows(residual: Array, weight: Array, cluster: Integers | None) -> tuple[Array, Integers | None]:
    """Return residuals and the unit rows that each row stands for.

    A mean of w normal numbers is one of variance 1 / w, which is what fractions of rows get: they have no draws.
    """
    if cluster is not None or np.all(weight == 1.0):
        return residual, None
    if np.array_equal(weight, np.rint(weight)) and weight.sum() <= draws.MOST_UNITS:
        return residual, weight.astype(np.int64)
    scale = np.divide(1.0, np.sqrt(weight), where=weight > 0, out=np.zeros_like(weight))
    return residual * scale[:, None], None
