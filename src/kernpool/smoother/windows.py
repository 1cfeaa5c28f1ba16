r"""Windows of at least a number of effective rows: how much wider than the bandwidths each query's window is.

A plane on fewer effective rows than it has coefficients has a variance without bound, and a mean of one or two rows is
as noisy as these. Where the effective rows (Kish) at the bandwidths are fewer than a floor,

.. math:: e(q) = \Big(\sum_j w_j K_j\Big)^2 \Big/ \sum_j w_j K_j^2 < e_{\min},

all numeric bandwidths of the query are multiplied by the smallest factor of `FACTORS` at which they are not, or by the
largest. Smoothings of categorical columns stay: at factors above two, tables whose windows are thin because of their
categories lost what the others won.

Measured on tables of `benchmarks/tables.py`: the log loss of `NadarayaWatsonClassifier()` fell on 12 of 12, by
.006 on average on the 8 that took part in no choice and by .015 to .038 on 4 for tuning, so that its default has a
floor. The R^2 of local planes changed by -.0002 on average on 8 tables for tuning (-.016 to .010) and by -.0012 on the
20 others (-.058 to .025), that of local means by -.0073 on 8, so that those have none.

The factors are a grid, so that few different windows are pooled (`kernpool.pooling.plan`), and derivatives of
predictions are those at a fixed window. Training rows are queries without themselves.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from kernpool._arrays import Array
from kernpool.core import Problem
from kernpool.smoother.quadratic_forms import Summed, effective_rows

FACTORS = (1.0, 2.0**0.25, 2.0**0.5, 2.0**0.75, 2.0)


def widening(problem: Problem, least: float, sums: Summed) -> Array | None:
    """Return the factor of the bandwidths at which each query's window has enough effective rows.

    Parameters
    ----------
    problem : Problem
        Queries and keys, at the bandwidths of the fit.
    least : float
        Effective rows that a window has at least, if the largest factor is enough.
    sums : callable
        Sums a problem; `Smoother.sums`.

    Returns
    -------
    ndarray of shape (m,) or None
        None if no window is wider than the bandwidths. Takes one pass, one more for queries that are not sure to have
        enough rows, and two for queries of thin windows at each factor.
    """
    alone, thin = without_values(problem), np.arange(len(problem.query))
    factor, peak = np.ones(len(thin)), problem.similarity.log_peak
    for narrow, wide in pairwise(FACTORS):
        asked = alone.with_kernel(alone.similarity.kernel, narrow).block(thin)
        mass = sums(asked).log_denominator
        # No weight is larger than the peak, so that sum K^2 <= peak sum K and e >= sum K / peak: in few columns most
        # queries need no squares (half of the time).
        (doubtful,) = np.nonzero(mass - peak < np.log(least))
        found = effective_rows(asked.block(doubtful), mass[doubtful], sums)
        thin = thin[doubtful[found < least]]
        if not thin.size:
            break
        factor[thin] = wide
    return None if np.all(factor == 1.0) else factor


def without_values(problem: Problem) -> Problem:
    """Return the problem of the weights alone; a single column stays, so that the preparation of the keys is reused."""
    problem = replace(problem, degree=0)
    if problem.value.shape[1] == 1:
        return problem
    return replace(problem, value=np.zeros((len(problem.key), 1)), value_center=np.zeros(1), prepared=None)
