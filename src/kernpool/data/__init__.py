"""Input data: validation and conversion of arrays, data frames, dates and files, and reading of data in chunks.

Read `array_validation.py` first: the requirements on an array, and the errors. `columns.py` reads the columns of frames
of any library, and `encoding.py` encodes them as numbers and category codes. `column_options.py` has columns that are
pooled otherwise than as they are, such as points on circles. `dates.py` converts dates and durations, and
`suspect_columns.py` detects columns such as row numbers. `atomic_files.py` writes files whole or not at all. The folder
`chunks` reads pairs of keys and values piece by piece.
"""

from kernpool.data.array_validation import (
    TableError,
    as_bandwidth,
    as_key_weight,
    as_real_array,
    dates_refused,
    import_parquet,
    in_words,
    refuse_foreign,
)
from kernpool.data.chunks import Chunk, Chunks, open_chunks
from kernpool.data.chunks.base import ArrayChunks
from kernpool.data.columns import (
    Columns,
    Kind,
    MixedTable,
    is_arrow_table,
    is_frame,
    labels_of,
    plain_label,
    refuse_other_columns,
    series_as_frame,
    with_days,
)
from kernpool.data.dates import TIME_KINDS, Times
from kernpool.data.encoding import Encoding
from kernpool.data.suspect_columns import SuspectColumnWarning, row_labels

__all__ = [
    "TIME_KINDS",
    "ArrayChunks",
    "Chunk",
    "Chunks",
    "Columns",
    "Encoding",
    "Kind",
    "MixedTable",
    "SuspectColumnWarning",
    "TableError",
    "Times",
    "as_bandwidth",
    "as_key_weight",
    "as_real_array",
    "dates_refused",
    "import_parquet",
    "in_words",
    "is_arrow_table",
    "is_frame",
    "labels_of",
    "open_chunks",
    "plain_label",
    "refuse_foreign",
    "refuse_other_columns",
    "row_labels",
    "series_as_frame",
    "with_days",
]
