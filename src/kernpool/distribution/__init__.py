"""What to expect beside the mean: the weights of a query are a distribution over the values.

Read `quantile.py` first: quantiles of that distribution, exactly, without a table of all weights. `places.py` says
which key one is, `descent.py` how it is found among many, `selection.py` and `dense.py` among a few, `line.py` at many
places on a line. `counting.py` finds quantiles of rows that are not held together, by questions that chunks answer
(`questions.py`).
"""

from kernpool.distribution.arrays import known_quantiles, quantiles, with_limits
from kernpool.distribution.chunks import chunk_quantiles, counted_quantiles
from kernpool.distribution.places import Sums
from kernpool.distribution.quantile import as_levels, pool_quantile

__all__ = [
    "Sums",
    "as_levels",
    "chunk_quantiles",
    "counted_quantiles",
    "known_quantiles",
    "pool_quantile",
    "quantiles",
    "with_limits",
]
