"""Levels of a categorical column: which there are, where they lie on a line, and the number of each cell's."""

from __future__ import annotations

import numpy as np

from kernpool.data.columns import Column, Level

LEVELS_SHOWN = 20


def is_pair(column: Column) -> bool:
    """Tell whether a column has two unordered levels, both of which occur."""
    return column.kind == "unordered" and len(levels_of(column, False)) == len(set(column.items())) == 2


def levels_of(column: Column, ordered: bool) -> tuple[Level, ...]:
    """Return the levels of a column: those that are declared, or those that occur."""
    items = column.items()  # a missing cell is an error even where levels are declared
    if column.levels is not None and (column.kind == "ordered" or not ordered):
        return column.levels
    found = items if column.levels is None else column.levels
    levels = sorted(set(found), key=lambda level: (isinstance(level, str), level))
    if ordered and isinstance(levels[-1], str):
        raise ValueError(
            f"{column.label} is to be ordered and holds text such as {levels[-1]!r}, whose order nobody has declared; "
            "make it an ordered pandas category or a polars Enum, or numbers"
        )
    return tuple(levels)


def places_of(column: Column, levels: tuple[Level, ...], ordered_by: str) -> tuple[float, ...]:
    """Return where the levels of an ordered column lie on a line."""
    if ordered_by == "value" and not any(isinstance(level, str) for level in levels):
        values = np.array(levels, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{column.label} has infinite levels, which have no distance; use ordered_by='rank'")
        steps = np.diff(values)
        if np.all(steps > 0) or np.all(steps < 0):
            return tuple(values.tolist())
    return tuple(float(rank) for rank in range(len(levels)))


def codes_of(column: Column, levels: tuple[Level, ...], unseen: str) -> list[int]:
    """Return the number of the level of each cell, -1 for one that is not known, or refuse it."""
    number = {level: i for i, level in enumerate(levels)}
    items = column.items()
    codes = [number.get(item, -1) for item in items]
    if unseen == "raise" and -1 in codes:
        row = codes.index(-1)
        known = ", ".join(map(repr, levels[:LEVELS_SHOWN])) + (", ..." if len(levels) > LEVELS_SHOWN else "")
        raise ValueError(
            f"{column.label} has the level {items[row]!r} in row {row} (counted from 0), which it did not have when it "
            f"was fitted; known levels are {known}. To pool such rows as unlike every level, use unseen='unlike'"
        )
    return codes
