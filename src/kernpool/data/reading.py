"""Reading tables: text as it is found, Parquet and `.npy`; by suffix, unless the format is given."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.data.compression import SUFFIXES, decompressed
from kernpool.data.suspects import row_labels
from kernpool.data.tables import SMALL, Table, TableError, import_parquet, table_format
from kernpool.data.texts import AS_FOUND, Progress, TextForm, read_text

__all__ = ["AS_FOUND", "TextForm", "input_format", "read_table"]


def input_format(name: str, override: str | None = None) -> str:
    """Return the format of a file to be read: by its suffix before that of a compression.

    Examples
    --------
    >>> input_format("table.csv.gz"), input_format("table.txt"), input_format("-")
    ('csv', 'csv', 'csv')
    """
    path = Path(name)
    if override is None and name != "-" and path.is_dir() and next(path.rglob("*.parquet"), None) is not None:
        return "parquet"
    if override is None and path.suffix.removeprefix(".").lower() in SUFFIXES:
        path = path.with_suffix("")
    if override is None and path.suffix.lower() in (".txt", ".dat", ".data", ".tab"):
        return "csv"  # whose separator is found
    return table_format(name if name == "-" else str(path), override)


def read_table(
    name: str, format: str | None = None, form: TextForm = AS_FOUND, progress: Progress | None = None
) -> Table:
    """Read a table.

    Parameters
    ----------
    name : str
        File name, or ``-`` for standard input.
    format : {"csv", "tsv", "parquet", "npy"}, optional
        By suffix if not given.
    form : TextForm, optional
        How text is written, where that is known; the rest is found.
    progress : callable, optional
        Hears how many lines of how many were read.

    Returns
    -------
    Table
        Columns of a text file are named by its first line, those of a plain `.npy` matrix ``"0"``, ``"1"``, ...

    Raises
    ------
    TableError
        If the file is malformed or empty, or may be read in two ways.
    FileNotFoundError
        If there is none.
    """
    format = input_format(name, format)
    source = "standard input" if name == "-" else name
    if format in ("csv", "tsv"):
        if name == "-" and sys.stdin is None:
            raise TableError("standard input is closed, so there is no table to read from it")
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        try:
            data = decompressed(data, source)
        except ValueError as error:
            raise TableError(str(error)) from None
        return read_text(data, source, format, form, progress)
    binary = io.BytesIO(sys.stdin.buffer.read()) if name == "-" else name
    table = _read_parquet(binary, source) if format == "parquet" else _read_npy(binary, source)
    if not table.rows:
        raise TableError(f"{source} has no rows")
    return replace(table, blanks=form.blanks)


def _read_npy(data: Any, source: str) -> Table:
    try:
        array = np.load(data, allow_pickle=False)
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged header can make NumPy raise nearly anything
        raise TableError(f"{source} is truncated or no .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{source} is an archive of arrays (.npz), not one array; save the table with np.save")
    if array.dtype.names:
        return Table(source, {name: array.ravel()[name] for name in array.dtype.names}, array.size)
    if array.ndim != 2:
        raise TableError(f"{source}: expected a matrix (rows, columns) or a structured array, got shape {array.shape}")
    return Table(source, {str(i): column for i, column in enumerate(array.T)}, len(array))


def _read_parquet(data: Any, source: str) -> Table:
    parquet = import_parquet()
    from pyarrow import ArrowException
    from pyarrow.dataset import HivePartitioning

    try:
        if isinstance(data, str) and Path(data).is_dir():
            # Columns by which it is partitioned are text or numbers, and not categories.
            table = parquet.read_table(data, partitioning=HivePartitioning.discover(infer_dictionary=False))
        else:
            size = data.getbuffer().nbytes if isinstance(data, io.BytesIO) else Path(data).stat().st_size
            with parquet.ParquetFile(data, pre_buffer=size > SMALL) as file:
                table = file.read(use_threads=size > SMALL)
    except ArrowException as error:
        raise TableError(f"{source} is truncated or no Parquet file: {error}") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise TableError(f"{source}: two columns have the same name; columns are {', '.join(table.column_names)}")
    columns = dict(zip(table.column_names, table.itercolumns(), strict=True))
    labels = row_labels(table.column_names, table.schema.pandas_metadata)
    return Table(source, columns, table.num_rows, row_labels=labels)
