"""kernpool for Dask: the same states, made where the rows are and merged by a tree. Needs the extra ``dask``.

`pool` is `kernpool.pool` for collections, and `pool_quantile` and `pool_cdf` likewise. Read `pool.py` first, then
`tasks.py`: what runs where the rows are.
"""

try:
    import dask as _dask  # noqa: F401  # to say at once what is missing
except ImportError as error:
    raise ImportError(
        'kernpool.dask needs Dask, which is not installed; install it with: pip install "kernpool[dask]"'
    ) from error

from kernpool.dask.cdf import pool_cdf
from kernpool.dask.cluster import connect
from kernpool.dask.pool import pool
from kernpool.dask.quantile import pool_quantile

__all__ = ["connect", "pool", "pool_cdf", "pool_quantile"]
