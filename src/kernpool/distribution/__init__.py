"""What to expect beside the mean: the weights of a query are a distribution over the values.

Read `quantile.py` first: quantiles of that distribution, exactly, without a table of all weights. `places.py` says
which key one is, `descent.py` how it is found among many, `selection.py` and `dense.py` among a few, `line.py` at many
places on a line. `counting.py` finds quantiles of rows that are not held together, by questions that chunks answer
(`questions.py`). The other way round, `cdf.py`: the distribution function, of `settled.py`,
whose shares `below.py` sums, and of rows in chunks `chunk_functions.py`. `smooth.py`
has both smoothed in y, by a bandwidth of `y_bandwidth.py`; `scores.py` says how well values were foretold,
`quantile_interval.py` how well a quantile is known.
"""

from kernpool.distribution.arrays import known_quantiles, quantiles, with_limits
from kernpool.distribution.below import shares_below
from kernpool.distribution.cdf import pool_cdf
from kernpool.distribution.chunk_functions import Function, chunk_functions, counted_functions
from kernpool.distribution.chunks import chunk_quantiles, counted_quantiles
from kernpool.distribution.places import Sums
from kernpool.distribution.quantile import as_levels, pool_quantile
from kernpool.distribution.quantile_interval import QuantileInterval
from kernpool.distribution.questions import asked_of, without_axes
from kernpool.distribution.settled import as_thresholds, known_cdf, rows_of, settled

__all__ = [
    "Function",
    "QuantileInterval",
    "Sums",
    "as_levels",
    "as_thresholds",
    "asked_of",
    "chunk_functions",
    "chunk_quantiles",
    "counted_functions",
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
    "without_axes",
]
