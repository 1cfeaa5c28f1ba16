"""What to expect beside the mean: the weights of a query are a distribution over the values.

Read `quantile.py` first: quantiles of that distribution, exactly, without a table of all weights. `places.py` says
which key one is, `descent.py` how it is found among many, `selection.py` and `dense.py` among a few.
"""

from kernpool.distribution.places import Sums
from kernpool.distribution.quantile import as_levels, known_quantiles, pool_quantile, quantiles, with_limits

__all__ = ["Sums", "as_levels", "known_quantiles", "pool_quantile", "quantiles", "with_limits"]
