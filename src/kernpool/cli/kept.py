"""Rows to predict, their cells beside predictions, and results as JSON can hold them."""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import Any

import numpy as np

from kernpool.cli.tables import listed, open_table, without_missing
from kernpool.cli.terminal import UsageError
from kernpool.data.cells import as_objects, is_time, is_words, time_words, unreadable
from kernpool.data.codes import is_code
from kernpool.data.kinds import queries_of
from kernpool.data.tables import Advice, Table, TableError, table_format

QUERIES = Advice(
    "correct it: the model predicts from numbers in this column",
    "convert it first: the model predicts from numbers in this column",
    "drop such rows with --missing drop: the model predicts from this column",
)


def query_rows(options: argparse.Namespace, model: Any, header: dict[str, Any]) -> tuple[Any, Table]:
    """Read the columns that a model predicts from, and the table that they come from."""
    table = open_table(options)
    table.need(header["features"])
    kept = [] if not options.keep else listed(options.keep)
    table.need(kept)
    table = without_missing(table, header["features"], options)
    return read_queries(table, model, header), table


def read_queries(table: Table, model: Any, header: dict[str, Any], advice: Advice = QUERIES) -> Any:
    """Read the columns that a model predicts from, as it was fitted to them."""
    unseen = vars(model).get("unseen", "raise")
    return queries_of(table, header["features"], model.encoding_, advice, unseen=unseen)


def beside_inputs(columns: dict[str, Any], table: Table, target: str, options: argparse.Namespace) -> dict[str, Any]:
    """Put the inputs that are to be kept before predictions, which then are called Y_predicted if there is a Y."""
    if options.keep is None:
        return columns
    as_text = not options.json and (options.out == "-" or table_format(options.out) in ("csv", "tsv"))
    kept = {name: _cells(table, name, as_text) for name in listed(options.keep) or table.names}
    if target in kept:
        columns = {f"{target}_predicted{name.removeprefix(target)}": column for name, column in columns.items()}
    twice = sorted(set(kept) & set(columns))
    if twice:
        raise UsageError(f"--keep has a column {twice[0]!r}, as predictions do; name the others, as in --keep A,B")
    return kept | columns


def _cells(table: Table, name: str, as_text: bool) -> Any:
    """Return cells as they were written; numbers where files hold numbers, and where they have decimal commas."""
    cells = table.columns[name]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells
    if is_time(cells):
        return time_words(cells)
    found: list[Any] = [
        cell if isinstance(cell, str | int | float | type(None)) else str(cell) for cell in as_objects(cells)
    ]
    if not is_words(cells) or unreadable(cells) is not None or (as_text and not any("," in cell for cell in found)):
        return found
    if any(map(is_code, found)):
        return found
    try:
        read, sign = table.floats(name), table.sign(name)
    except TableError:  # nobody can tell what 1,234 is, and nobody needs to
        return found
    if not np.isfinite(read).all() or (as_text and sign == "."):
        return found
    return read.astype(np.int64) if all(cell.lstrip("+-").isdecimal() for cell in found) else read


def records_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per row."""
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain_json(what: Any) -> Any:
    """Return a result as JSON can hold it: arrays are lists, NaN is null, and infinity is text, as for ``--bandwidth``.

    Examples
    --------
    >>> plain_json({"h": np.array([0.5, np.nan, np.inf])})
    {'h': [0.5, None, 'inf']}
    """
    if dataclasses.is_dataclass(what) and not isinstance(what, type):
        return {field.name: plain_json(getattr(what, field.name)) for field in dataclasses.fields(what)}
    if isinstance(what, dict):
        return {str(name): plain_json(value) for name, value in what.items()}
    if isinstance(what, list | tuple):
        return [plain_json(value) for value in what]
    if hasattr(what, "tolist"):
        return plain_json(what.tolist())
    if isinstance(what, float):
        return what if math.isfinite(what) else None if math.isnan(what) else str(what)
    return what if what is None or isinstance(what, str | int | bool) else str(what)
