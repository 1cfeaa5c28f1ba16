"""Pooling on a Dask cluster: each partition computes partial sums, and a tree merges them.

Needs the extra ``dask``. `pool` is `kernpool.pool` for Dask collections, `pool_quantile` and `pool_cdf` likewise;
`open_partitions` opens them as the training rows of a regressor. Read `pairs.py` first: the tasks and the tree that
merges their results. `partitions.py` has the blocks of rows that tasks read.
"""

try:
    import dask as _dask  # noqa: F401  # to say at once what is missing
except ImportError as error:
    raise ImportError(
        'kernpool.dask needs Dask, which is not installed; install it with: pip install "kernpool[dask]"'
    ) from error

from kernpool.dask.pairs import PartitionPairs, connect, open_partitions
from kernpool.dask.pool import LeaveOneOutError, leave_one_out_error, pool, pool_cdf, pool_quantile

__all__ = [
    "LeaveOneOutError",
    "PartitionPairs",
    "connect",
    "leave_one_out_error",
    "open_partitions",
    "pool",
    "pool_cdf",
    "pool_quantile",
]
