"""Types of columns of tables: numbers, categories and dates, chosen at fit and read from the model at prediction.

A text column is numeric if one of its cells is a number: other text in it is then a mistake, and the error names it.
Without a single number it holds dates, if most cells look like dates, and otherwise unordered categories.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.table_files import Table, import_pandas
from kernpool.data import TIME_KINDS, Encoding, MixedTable, TableError, as_real_array
from kernpool.data.array_validation import COUNTED
from kernpool.data.dates import are_dates, times_of
from kernpool.data.suspect_columns import is_code

ZONED = r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$"
SHOWN = 40  # characters of a cell
CORRECT = "correct or drop such rows"


@dataclass(frozen=True)
class Choice:
    """Column types that the user has chosen: unordered and ordered categorical columns, and dates."""

    unordered: Collection[str] = ()
    ordered: Mapping[str, Sequence[str] | None] = field(default_factory=dict)  # with the order of categories
    dates: Collection[str] | None = ()  # read as days; None for all that look like dates

    def has_date(self, name: str) -> bool:
        """Return whether a column of dates is to be read as such."""
        return self.dates is None or name in self.dates


def need(table: Table, names: Iterable[str]) -> None:
    """Raise TableError if the table lacks one of the named columns."""
    known = [*table.frame.columns]
    for name in names:
        if name not in known:
            hint = "; if other signs separate columns, say --sep" if len(known) == 1 else ""
            raise TableError(f"{table.source}: no column {name!r}; columns are {', '.join(map(repr, known))}{hint}")


def refuse_cells(table: Table, name: str, bad: Any, what: str, remedy: str = CORRECT) -> None:
    """Raise TableError for the first cell of a column where `bad` is true, naming its row in the file."""
    bad = np.asarray(bad)
    if not bad.any():
        return
    row = table.frame.index[bad.argmax()]
    text = str(table.as_written(name).loc[row])
    shown = "is empty" if not text else f"holds {text[:SHOWN]!r}" + "..." * (len(text) > SHOWN)
    more = f", like {bad.sum() - 1} more cells of this column" if bad.sum() > 1 else ""
    raise TableError(f"{table.source}: row {row}, column {name!r} {shown}, {what}{more} ({COUNTED}); {remedy}")


def as_numbers(column: Any) -> Any:
    """Return a column as numbers, with NaN for every cell that is not a number."""
    try:
        return import_pandas().to_numeric(column.astype(object), errors="coerce")
    except OverflowError:  # of integers of hundreds of digits, which are no identifiers of float64
        return column.map(lambda cell: float(str(cell)) if str(cell).lstrip("+-").isdecimal() else np.nan)


def numbers_of(table: Table, name: str, remedy: str = CORRECT) -> NDArray[np.float64]:
    """Return a column as numbers; raise TableError, naming the cell, for anything else."""
    column = table.frame[name]
    if column.dtype.kind in "OUS" or not hasattr(column.dtype, "kind"):
        column = as_numbers(column)
        refuse_cells(table, name, column.isna(), "not a number", remedy)
    if column.dtype.kind == "f":
        refuse_cells(table, name, ~np.isfinite(column.astype(np.float64)), "not a finite number", remedy)
    return as_real_array(f"{table.source}: column {name!r}", column.to_numpy()).astype(np.float64)


def days_of(table: Table, name: str) -> Any:
    """Return a column as dates or durations; raise TableError, naming the cell, for anything else."""
    pandas, column = import_pandas(), table.frame[name]
    if pandas.api.types.is_string_dtype(column):
        zoned = column.str.contains(ZONED)
        refuse_cells(
            table,
            name,
            zoned != zoned.iloc[0],
            "and others differ in having a time zone",
            "write all dates with a time zone, as in 2020-12-31T06:00Z, or none",
        )
        read = pandas.to_datetime(column, format="ISO8601", errors="coerce", utc=bool(zoned.iloc[0]))
        refuse_cells(table, name, read.isna(), "no date like 2020-12-31", "write dates as year-month-day")
        return read
    if times_of(name, column) is None:
        raise TableError(f"{table.source}: column {name!r} holds no dates; write them as text such as 2020-12-31")
    return column


def kind_of(table: Table, name: str) -> Literal["numbers", "levels", "dates"]:
    """Return the kind of a column of a table: "numbers", "levels" (categories) or "dates"."""
    pandas, column = import_pandas(), table.frame[name]
    if times_of(name, column) is not None:
        return "dates"
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return "levels"
    if column.dtype.kind not in "OUS" or as_numbers(column).notna().any():
        return "numbers"
    return "dates" if are_dates(column.tolist()) else "levels"


def without_codes(column: Any) -> Any:
    """Return text as numbers where these say all that is written; codes such as 01 and 1E2 stay text."""
    cells = [cell for cell in column if isinstance(cell, str)]
    if not cells or any(is_code(cell) or "e" in cell.lower() for cell in cells):
        return column
    try:
        return import_pandas().to_numeric(column)
    except ValueError:
        return column


def levels_of(table: Table, name: str, known: Collection[Any] | None = None) -> list[Any]:
    """Return the cells of a column as categories: of the known ones each by its text or number, whatever the file."""
    column = table.as_written(name)
    if known is None:
        return list(without_codes(column).tolist())
    texts = {str(level): level for level in known}
    texts |= {str(level).upper(): level for level in known if str(level) in ("True", "False")}
    numbers = {float(level): level for level in known if isinstance(level, int | float)}
    read = as_numbers(column)
    return [texts.get(str(cell), numbers.get(number, cell)) for cell, number in zip(column, read, strict=True)]


def features_of(table: Table, names: Sequence[str], choice: Choice) -> Any:
    """Convert the predictor columns of a table to the frame to which estimators are fitted."""
    remedy = "correct it, leave the column out with --features, or name it in --unordered if it holds codes"
    columns: dict[str, Any] = {}
    for name in names:
        kind = "levels" if name in choice.unordered or name in choice.ordered else kind_of(table, name)
        if kind == "dates" or (choice.dates and name in choice.dates):
            if not choice.has_date(name):
                refuse_date(
                    table, name, f", --unordered {name} for levels without order, or leave it out with --features"
                )
            columns[name] = days_of(table, name).array
        elif name in choice.ordered:
            columns[name] = _in_order(table, name, choice.ordered[name])
        elif kind == "levels":
            columns[name] = import_pandas().Series(levels_of(table, name), dtype=object)
        else:
            columns[name] = numbers_of(table, name, remedy)
    return import_pandas().DataFrame(columns)


def _in_order(table: Table, name: str, order: Sequence[str] | None) -> Any:
    """Return an ordered categorical column; raise TableError if the order of its categories is unknown."""
    cells = levels_of(table, name, order)
    if order is None:
        is_text = [isinstance(cell, str) for cell in cells]
        remedy = f"say it, as in --ordered {name}=small:medium:large"
        refuse_cells(table, name, is_text, "whose order is not declared", remedy)
        return import_pandas().Series(cells, dtype=object)
    unlisted = [cell not in order for cell in cells]
    refuse_cells(table, name, unlisted, f"which is not in the order {':'.join(order)}", "add it to --ordered")
    return import_pandas().Categorical(cells, order, ordered=True)


def queries_of(table: Table, names: Sequence[str], encoding: Encoding) -> MixedTable:
    """Read the predictor columns of new rows with the types that they had when the model was fitted."""
    known, pairs = iter(encoding.levels), iter(encoding.pairs)
    columns: dict[str, Any] = {}
    for name, kind in zip(names, encoding.kinds, strict=True):
        if kind in TIME_KINDS:
            columns[name] = times_of(name, days_of(table, name))
        elif kind == "numeric":
            columns[name] = numbers_of(table, name, "correct it: the model predicts from numbers in this column")
        else:
            columns[name] = levels_of(table, name, next(pairs if kind == "binary" else known))
    return MixedTable(columns)


def refuse_date(table: Table, name: str, others: str) -> None:
    """Raise TableError for a column of dates that --dates does not name; `others` are other remedies."""
    cell = table.as_written(name).iloc[0]
    raise TableError(
        f"{table.source}: column {name!r} holds {str(cell)!r}, a date; write dates as year-month-day, such as "
        f"2020-12-31, and say --dates {name} to read it as days since 1970-01-01{others}"
    )
