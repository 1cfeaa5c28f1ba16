"""Whatever holds numbers, read and refused in one place: arrays, frames, tables, files, chunks.

Read `checks.py` first: what an array has to be. `columns.py` and `frames.py` read frames with categorical columns,
`tables.py` is what files hold, `reading.py` and `writers.py` read and write them, `texts.py` reads text as it is found
(`compression.py`, `decoding.py`, `separators.py`, `decimals.py`), `kinds.py` decides what its columns are
(levels: `codes.py`; what looks like something else: `suspects.py`), `files.py` writes files whole or not at all,
`folders.py` models, and `chunks/` reads pairs piece by piece.
"""

from kernpool.data.chunks import Chunk, Chunks, open_chunks
from kernpool.data.frames import Encoding
from kernpool.data.suspects import SuspectColumnWarning
from kernpool.data.tables import TableError

__all__ = ["Chunk", "Chunks", "Encoding", "SuspectColumnWarning", "TableError", "open_chunks"]
