"""Pooling on a Dask cluster: each partition computes partial sums, and a tree merges them.

Needs the extra ``dask``. `open_partitions` opens Dask collections and files as pairs for `kernpool.pool`,
`pool_quantile` and `pool_cdf`, or as the training rows of a regressor. Read `pairs.py` first, which has all of it.
"""

try:
    import dask as _dask  # noqa: F401  # to say at once what is missing
except ImportError as error:
    raise ImportError(
        'kernpool.dask needs Dask, which is not installed; install it with: pip install "kernpool[dask]"'
    ) from error

from kernpool.dask.pairs import PartitionPairs, open_partitions

__all__ = [
    "PartitionPairs",
    "open_partitions",
]
