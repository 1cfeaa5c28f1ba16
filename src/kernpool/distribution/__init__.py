"""Conditional distributions: quantiles, distribution functions, densities and scores from kernel weights.

The weights of a query are a distribution over the values of the keys. Read `pooled.py` first: distribution functions,
quantiles and their intervals. What can be computed of a distribution, and how empty windows are filled, is in
`functionals.py`, one record each. `weighted_quantile.py` chooses how weights are summed over ordered keys, and finds
quantiles without an m x n table; `weighted_cdf.py` sums either side of thresholds. For data in chunks,
`multipass_quantile.py` finds quantiles by passes of counting. `smoothed_cdf.py` smooths distributions in y;
`scoring_rules.py` has CRPS and the bandwidth in y. The folder `loops` has the compiled sums.
"""

from kernpool.distribution.functionals import (
    ArrayOutcomes,
    DistributionFunction,
    Outcomes,
    ProbabilityTransform,
    Quantiles,
    RandomDraws,
    RankedScore,
    StoredOutcomes,
    without_axes,
)
from kernpool.distribution.pooled import as_thresholds, levels_around, pool_cdf, pool_quantile, without_ends
from kernpool.distribution.weighted_quantile import as_levels

__all__ = [
    "ArrayOutcomes",
    "DistributionFunction",
    "Outcomes",
    "ProbabilityTransform",
    "Quantiles",
    "RandomDraws",
    "RankedScore",
    "StoredOutcomes",
    "as_levels",
    "as_thresholds",
    "levels_around",
    "pool_cdf",
    "pool_quantile",
    "without_axes",
    "without_ends",
]
