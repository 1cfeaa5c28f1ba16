"""Conditional distributions: quantiles, distribution functions, densities and scores from kernel weights.

The weights of a query are a distribution over the values of the keys. Read `quantile.py` first: conditional quantiles
and their intervals. `weighted_quantile.py` finds them exactly without an m x n table. `cdf.py` has distribution
functions, from the sums of `weighted_cdf.py`. `ordered_sums.py` chooses how weights are summed over ordered keys. For
data in chunks, `multipass_quantile.py` finds quantiles by passes of counting, and `chunk_queries.py` has the map-reduce
queries of each pass. `smoothed_cdf.py` smooths distributions in y; `scoring_rules.py` has PIT, CRPS and the bandwidth
in y. The folder `loops` has the compiled sums.
"""

from kernpool.distribution.cdf import Function, counted_functions, pool_cdf
from kernpool.distribution.chunk_queries import without_axes
from kernpool.distribution.multipass_quantile import counted_quantiles
from kernpool.distribution.quantile import QuantileInterval, as_levels, pool_quantile
from kernpool.distribution.weighted_cdf import as_thresholds, finalize_cdf, shares_below
from kernpool.distribution.weighted_quantile import KernelWeights, known_quantiles, with_limits

__all__ = [
    "Function",
    "KernelWeights",
    "QuantileInterval",
    "as_levels",
    "as_thresholds",
    "counted_functions",
    "counted_quantiles",
    "finalize_cdf",
    "known_quantiles",
    "pool_cdf",
    "pool_quantile",
    "shares_below",
    "with_limits",
    "without_axes",
]
