"""Whatever holds numbers, read and refused in one place: arrays, frames, tables, files, chunks.

Read `checks.py` first: what an array has to be. `columns.py` and `frames.py` read frames with categorical columns,
`tables.py` and `writers.py` read and write tables in files, `files.py` writes files whole or not at all, `folders.py`
models, and `chunks/` reads pairs piece by piece.
"""

from kernpool.data.chunks import Chunk, Chunks, open_chunks
from kernpool.data.frames import Encoding
from kernpool.data.tables import TableError

__all__ = ["Chunk", "Chunks", "Encoding", "TableError", "open_chunks"]
