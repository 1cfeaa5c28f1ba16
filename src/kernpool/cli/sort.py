"""`kernpool sort`: a Parquet file sorted by a column, in row groups that predictions can skip."""

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

from kernpool.cli.terminal import UsageError, parse_memory, print_json, say
from kernpool.data import TableError, import_parquet
from kernpool.data.atomic_files import refuse_existing, whole_file
from kernpool.data.chunks.base import rows_per_chunk
from kernpool.data.chunks.parquet import BATCH_ROWS, parquet_files
from kernpool.tables.table import table_format


def run_sort(options: argparse.Namespace) -> None:
    """Run `kernpool sort`: write the rows of Parquet files sorted by a column."""
    memory, path = parse_memory(options.memory), Path(options.data)
    if options.out == "-" or table_format(options.out) != "parquet":
        raise UsageError(f"--out must name a Parquet file, such as sorted.parquet, got {options.out!r}")
    if options.data == "-" or not (path.is_dir() or table_format(options.data) == "parquet"):
        raise UsageError(f"sort takes a Parquet file or a folder of them, got {options.data!r}; convert it first")
    refuse_existing(Path(options.out), options.force)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    import_parquet()
    from pyarrow import ArrowException

    try:
        rows, groups = _sort(path, options, memory)
    except ArrowException as error:
        raise TableError(f"{path} cannot be sorted by {options.by!r}: {error}") from None
    if options.json:
        print_json({"out": options.out, "rows": rows, "row_groups": groups})
    elif not options.quiet:
        say(f"{rows} rows in {groups} row groups, sorted by {options.by!r}")


def _sort(path: Path, options: argparse.Namespace, memory: int | None) -> tuple[int, int]:
    """Write the sorted file; return the number of rows and of row groups.

    The column itself is sorted in memory; the rows are a part at a time, those between two quantiles of the column.
    """
    from pyarrow import compute, types
    from pyarrow.dataset import dataset, field

    parquet, by = import_parquet(), options.by
    data = dataset([str(file) for file in parquet_files(path)], format="parquet", partitioning="hive")
    if by not in data.schema.names:
        raise TableError(f"{path}: no column {by!r}; columns are {', '.join(data.schema.names)}")
    column: Any = data.to_table(columns=[by])[by]
    if column.null_count or (types.is_floating(column.type) and compute.any(compute.is_nan(column)).as_py()):
        raise TableError(f"{path}: column {by!r} has missing cells; drop such rows first")
    column = column.take(compute.sort_indices(column))
    step = max(1, len(column))
    if memory is not None:
        step = max(1, rows_per_chunk(len(data.schema), memory) // BATCH_ROWS) * BATCH_ROWS
    cuts = [*(column[i] for i in range(0, len(column), step)), None]
    groups = 0
    with (
        whole_file(Path(options.out), force=options.force) as temporary,
        parquet.ParquetWriter(temporary, data.schema) as writer,
    ):
        for low, high in pairwise(cuts):
            chosen = field(by) >= low
            table = data.to_table(filter=chosen if high is None else chosen & (field(by) < high)).sort_by(by)
            if table.num_rows:  # none, where two quantiles are equal
                writer.write_table(table, row_group_size=BATCH_ROWS)
            groups += -(-table.num_rows // BATCH_ROWS)
    return len(column), groups
