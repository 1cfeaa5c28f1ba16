"""kernpool for Dask: the same states, made where the rows are and merged by a tree. Needs the extra ``dask``.

`pool` is `kernpool.pool` for collections; read `pool.py` first, then `partitions.py`: what a collection is cut into.
"""

from kernpool.dask.pool import connect, pool

__all__ = ["connect", "pool"]
