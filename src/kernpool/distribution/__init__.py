"""What to expect beside the mean: the weights of a query are a distribution over the values.

Read `quantile.py` first, then `descent.py`: quantiles of that distribution, exactly, without a table of all weights.
`selection.py` looks for a key among a few.
"""

from kernpool.distribution.quantile import as_levels, pool_quantile, quantiles

__all__ = ["as_levels", "pool_quantile", "quantiles"]
