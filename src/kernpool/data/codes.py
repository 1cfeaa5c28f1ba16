"""Cells of text as levels: numbers where numbers say all that was written, and codes such as 01 and 1E2 as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kernpool.data.cells import as_objects, is_words, unreadable
from kernpool.data.integers import LARGEST
from kernpool.data.tables import COUNTED, Table, TableError

SHOWN = 20  # levels, in a message
PADDED = re.compile(r"[+-]?0\d")
POWER = re.compile(r"\d[eE]")


def is_code(cell: str) -> bool:
    """Tell whether a number would lose something of a cell: zeros in front of it, or digits beyond those of float64.

    Examples
    --------
    >>> [is_code(cell) for cell in ("007", "9007199254740993", "0.5", "0", "-12")]
    [True, True, False, False, False]
    """
    if PADDED.match(cell):
        return True
    digits = cell.lstrip("+-")
    return digits.isdecimal() and int(digits) > LARGEST


def levels_in(table: Table, name: str, known: Collection[Any] | None = None) -> list[Any]:
    """Return a column as levels; a missing cell is an error.

    Parameters
    ----------
    table : Table
        From a file.
    name : str
        Of the column.
    known : collection, optional
        Levels as a model has them, or in the order that was declared: a cell is the one of them that it names, whether
        the file holds it as text or as a number. Without them text is numbers if all of it is, and no two different
        texts are one number.
    """
    table.labels(name)
    cells = table.columns[name]
    found: list[Any] = [cell if isinstance(cell, str | int | float) else _text(cell) for cell in as_objects(cells)]
    is_text = is_words(cells) and unreadable(cells) is None
    if known is not None:
        read = table.floats(name).tolist() if is_text else found
        return _as_known(found, read, known)
    if not is_text or any(is_code(cell) or POWER.search(cell) for cell in found):
        return found
    read = table.floats(name)
    if not np.isfinite(read).all() or len(set(read.tolist())) < len(set(found)):
        return found
    return _whole(read)


def ordered_numbers(table: Table, name: str) -> list[Any]:
    """Return a column of levels whose order is that of numbers: by their values, however they are written."""
    found = levels_in(table, name)
    if all(isinstance(level, str) for level in found) and unreadable(table.columns[name]) is None:
        read = table.floats(name)
        return _whole(read) if np.isfinite(read).all() else found
    return found


def refuse_unseen(table: Table, name: str, cells: Sequence[Any], known: Collection[Any]) -> None:
    """Refuse levels that a model does not have, by their place in the file."""
    levels = set(known)
    row = next((row for row, cell in enumerate(cells) if cell not in levels), None)
    if row is None:
        return
    shown = ", ".join(map(repr, list(known)[:SHOWN])) + (", ..." if len(known) > SHOWN else "")
    raise TableError(
        f"{table.place(row, name)} holds {cells[row]!r}, a level that the model has not seen ({COUNTED}); known levels "
        f"are {shown}. To pool such rows as unlike every level, say --unseen unlike"
    )


def _text(cell: Any) -> str:
    """Return the text of a cell of another type: days as text files have them, whatever unit they are stored in."""
    if isinstance(cell, np.datetime64) and cell == cell.astype("M8[D]"):
        return str(cell.astype("M8[D]"))
    return str(cell)


def _as_known(found: Sequence[Any], read: Sequence[Any], known: Collection[Any]) -> list[Any]:
    by_text = {str(level): level for level in known}
    flags = {text.lower(): level for text, level in by_text.items() if text.lower() in ("true", "false")}
    by_value = {float(level): level for level in known if isinstance(level, int | float)}

    def as_known(cell: Any, number: Any) -> Any:
        whole = isinstance(cell, float) and cell.is_integer()
        text = str(int(cell)) if whole else str(cell)
        if text in by_text:
            return by_text[text]
        if text.lower() in flags:  # as written by R, Python and SQL
            return flags[text.lower()]
        return by_value.get(number, cell)

    return list(map(as_known, found, read))


def _whole(read: Any) -> list[Any]:
    return [int(number) if number.is_integer() else number for number in read.tolist()]
