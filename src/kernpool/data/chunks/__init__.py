"""Chunks: pairs of keys and values that are read some rows at a time, and need not fit into memory.

Read `base.py` first: what chunks are. `parquet.py` reads Parquet files and Arrow streams; `opening.py` recognizes what
it is given.
"""

from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.chunks.opening import open_chunks

__all__ = ["Chunk", "Chunks", "open_chunks"]
