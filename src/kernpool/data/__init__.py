"""Input data: validation and conversion of arrays, data frames, dates and files, and reading of data in chunks.

Read `array_validation.py` first: the requirements on an array, and the errors. `columns.py` reads the columns of frames
of any library, and `encoding.py` encodes them as numbers and category codes. `column_options.py` has columns that are
pooled otherwise than as they are, such as points on circles. `dates.py` converts dates and durations, and
`suspect_columns.py` detects columns such as row numbers. `atomic_files.py` writes files whole or not at all. The folder
`chunks` reads pairs of keys and values piece by piece.
"""

from kernpool.data.array_validation import (
    INFINITE,
    TableError,
    as_bandwidth,
    as_key_weight,
    as_real_array,
    dates_refused,
    import_parquet,
    in_words,
    refuse_foreign,
    unshared,
)
from kernpool.data.atomic_files import refuse_existing, whole_file
from kernpool.data.chunks import Chunk, Chunks, open_chunks
from kernpool.data.chunks.base import ArrayChunks
from kernpool.data.columns import (
    Columns,
    Kind,
    MixedTable,
    is_arrow_table,
    is_frame,
    labels_of,
    labels_of_rows,
    order_of_columns,
    plain_label,
    refuse_other_columns,
    refuse_other_labels,
    series_as_frame,
    with_days,
)
from kernpool.data.dates import TIME_KINDS, Times
from kernpool.data.encoding import COLUMN_OPTIONS, Encoding, label_codes
from kernpool.data.suspect_columns import SuspectColumnWarning, row_labels

__all__ = [
    "COLUMN_OPTIONS",
    "INFINITE",
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
    "label_codes",
    "labels_of",
    "labels_of_rows",
    "open_chunks",
    "order_of_columns",
    "plain_label",
    "refuse_existing",
    "refuse_foreign",
    "refuse_other_columns",
    "refuse_other_labels",
    "row_labels",
    "series_as_frame",
    "unshared",
    "whole_file",
    "with_days",
]
