"""Chunked data: pairs of keys and values that are read some rows at a time, and need not fit into memory.

Read `base.py` first: the interface of chunks, and chunks of arrays and iterators. `parquet.py` reads Parquet files
and Arrow streams, and `sources.py` recognises a source and opens it.
"""

from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.data.chunks.sources import open_chunks

__all__ = ["Chunk", "Chunks", "open_chunks"]
