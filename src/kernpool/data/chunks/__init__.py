"""Chunks: pairs of keys and values that come some rows at a time, and need not fit into memory.

Read `base.py` first: what chunks are. `parquet.py` reads files of columns, `opening.py` finds out what it was given.
"""

from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.chunks.opening import open_chunks

__all__ = ["Chunk", "Chunks", "open_chunks"]
