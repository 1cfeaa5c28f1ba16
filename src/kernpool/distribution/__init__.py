"""What to expect beside the mean: the weights of a query are a distribution over the values.

Read `quantile.py` first: quantiles of that distribution, exactly, without a table of all weights. `places.py` says
which key one is, `descent.py` how it is found among many, `selection.py` and `dense.py` among a few, `line.py` at many
places on a line. `counting.py` finds quantiles of rows that are not held together, by questions that chunks answer
(`questions.py`). The other way round, `cdf.py`: the distribution function, whose shares `below.py` sums. `smooth.py`
has both smoothed in y, by a bandwidth of `y_bandwidth.py`; `scores.py` says how well values were foretold,
`quantile_interval.py` how well a quantile is known.
"""

from kernpool.distribution.arrays import known_quantiles, quantiles, with_limits
from kernpool.distribution.below import shares_below
from kernpool.distribution.cdf import as_thresholds, known_cdf, pool_cdf, rows_of, settled
from kernpool.distribution.chunks import chunk_quantiles, counted_quantiles
from kernpool.distribution.places import Sums
from kernpool.distribution.quantile import as_levels, pool_quantile
from kernpool.distribution.quantile_interval import QuantileInterval

__all__ = [
    "QuantileInterval",
    "Sums",
    "as_levels",
    "as_thresholds",
    "chunk_quantiles",
    "counted_quantiles",
    "known_cdf",
    "known_quantiles",
    "pool_cdf",
    "pool_quantile",
    "quantiles",
    "rows_of",
    "settled",
    "shares_below",
    "with_limits",
]
