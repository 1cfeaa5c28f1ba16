"""Columns of data frames and arrays: whether each is numeric, a date, a duration or categorical.

=========== ======================================= =================== ========================
column      pandas                                  polars              arrays
=========== ======================================= =================== ========================
numeric     numbers, booleans, decimals, no text    numbers, booleans   numbers, unless named
date        datetime64, objects that are dates      Date, Datetime      datetime64, date objects
duration    timedelta64, objects that are durations Duration            timedelta64, objects
unordered   str, objects with text, category        String, Categorical if it is named
ordered     ordered category                        Enum                if it is named
=========== ======================================= =================== ========================

Types of Arrow, and pandas' types that wrap them, are read as the same types of pandas. Dates and durations become
days (`kernpool.data.dates`); a date with a time zone is a kind of its own.

Booleans are the numbers 0 and 1 unless they are named, as in scikit-learn. Neither library is imported: a caller who
passes a frame has imported its library already. `MixedTable` holds columns of numbers and of categories without a frame
library: a table that was read from a file becomes one, as frames are no dependency.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import AnyArray, Index
from kernpool.data import array_validation
from kernpool.data.array_validation import arrow_numbers, is_missing, is_real
from kernpool.data.dates import TIME_KINDS, TimeKind, Times, times_of
from kernpool.execution import abbreviate


@dataclass(frozen=True, eq=False)
class MixedTable:
    """Table of numeric, categorical and date columns that estimators accept like a data frame.

    Parameters
    ----------
    columns : mapping of str to sequence
        Arrays of numbers, lists of categories, and dates or durations (`kernpool.data.dates.Times`).
    ordered : mapping of str to sequence, default={}
        The declared order of the categories of some columns.

    Examples
    --------
    >>> table = MixedTable({"x": np.array([1.0, 2.0]), "side": ["left", "right"]})
    >>> table.shape, table.take([1]).columns["side"]
    ((2, 2), ['right'])
    """

    columns: Mapping[str, Any]
    ordered: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def take(self, rows: Sequence[int] | Index) -> MixedTable:
        """Return a `MixedTable` of the rows with these indices."""
        some = {
            name: cells.take(rows) if hasattr(cells, "take") else [cells[row] for row in rows]
            for name, cells in self.columns.items()
        }
        return MixedTable(some, self.ordered)


IMPUTE = ", or use SimpleImputer(add_indicator=True) of scikit-learn in a pipeline"

Kind = Literal["numeric", "unordered", "ordered", "binary", TimeKind]  # "binary" by decision of an encoding only
Level = str | bool | int | float


@dataclass(frozen=True)
class Column:
    """One column of a table: its label, its kind, its declared categories, and functions that read its cells."""

    label: str  # name in messages
    read_numbers: Callable[[], Any]  # return the cells as an array, and as a list of Python objects
    read_items: Callable[[], list[Any]]
    kind: Kind = "numeric"  # kind of the column in the table
    levels: tuple[Level, ...] | None = None  # the categories that the table declares, in their order

    times: Times | None = None  # the cells, if they are dates or durations

    @property
    def content(self) -> str:
        """Kind of data in the column in words, such as "ordered categories", for messages."""
        return KIND_WORDS[self.kind]

    def numbers(self, kind: Kind | None = None) -> NDArray[np.floating[Any]]:
        """Return the cells as finite numbers, with dates and durations in days; raise ValueError for text."""
        if kind is not None and kind != self.kind and (kind in TIME_KINDS or self.kind in TIME_KINDS):
            if self.kind == "numeric":
                self._refuse_missing(np.asarray(self.read_numbers()))  # missing cells alone count as numeric
            raise ValueError(
                f"{self.label} holds {self.content}, and it held {KIND_WORDS[kind]} when the model was fitted; "
                f"{_REMEDIES[kind]}"
            )
        cells = np.asarray(self.read_numbers()) if self.times is None else self.times.days()
        if cells.dtype.kind in "OUS" and (text := [str(cell) for cell in cells if isinstance(cell, str)]):
            raise ValueError(
                f"{self.label} holds text such as {text[0]!r:.60} and is no categorical column; name it in unordered= "
                "or ordered=, convert it to numbers, or drop it"
            )
        if cells.dtype.kind == "O" or (cells.dtype.kind == "f" and not np.isfinite(cells).all()):
            self._refuse_missing(cells)
        return array_validation.as_real_array(self.label, cells)

    def _refuse_missing(self, cells: AnyArray) -> None:
        """Raise an error that names the row if a cell is missing, infinite or not a number."""
        items = cells.tolist()
        for row, cell in enumerate(items):
            if is_missing(cell):
                raise ValueError(
                    f"{self.label} is missing (NaN, None or NA) in row {row} (counted from 0){_others(items, row)}; "
                    f"drop such rows{IMPUTE}"
                )
            if cell in (np.inf, -np.inf):
                raise ValueError(f"{self.label} is {cell} in row {row} (counted from 0); drop or replace such rows")
            if not isinstance(cell, array_validation.NUMBERS):
                raise TypeError(
                    f"{self.label} must hold real numbers, got {cell!r:.60} ({type(cell).__name__}) in row {row} "
                    "(counted from 0); the argument must be numeric apart from columns of strings that are named in "
                    "unordered= or ordered=, so convert such cells to numbers, or drop the column"
                )

    def items(self) -> list[Level]:
        """Return the cells as a list of category labels; raise ValueError, naming the row, if one is missing."""
        items = [_plain(item) for item in self.read_items()]
        for row, item in enumerate(items):
            if is_missing(item):
                raise ValueError(
                    f"{self.label} is missing in row {row} (counted from 0){_others(items, row)}: a categorical column "
                    "needs a level in every row; drop such rows, or give missing cells a level of their own, such as "
                    "'unknown'"
                )
        return items


def _others(items: Sequence[Any], row: int) -> str:
    """Return how many cells below a missing one are missing as well, in words."""
    count = sum(map(is_missing, items[row + 1 :]))
    return f" and in {count} more" if count else ""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a frame or array of any supported library, with their labels; cells are read when they are needed.

    Parameters
    ----------
    table : frame, or ndarray of shape (rows, columns)
        From `as_table`.
    name : str, default="X"
        Of the argument, for messages.
    """

    table: Any
    name: str = "X"

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Return the columns of a frame, of an array-like of shape (n, columns), or of one column.

        Raises
        ------
        TypeError
            If some names are strings and some are not, or X is no table.
        ValueError
            If X has more than two dimensions, no row or no column, or two columns of one name.

        Examples
        --------
        >>> table = Columns.of([["north", 1.5], ["south", 2.5]])
        >>> table.rows, [column.label for column in table.columns], table.columns[1].numbers()
        (2, ['column 0 of X', 'column 1 of X'], array([1.5, 2.5]))
        """
        return X if isinstance(X, Columns) else cls(as_table(X))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.table)

    @cached_property
    def numbers(self) -> NDArray[np.floating[Any]] | None:
        """The rows, if they are an array of finite floats, as nearly always; None for other tables."""
        X = self.table
        usual = type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.size > 0
        return X if usual and np.isfinite(X).all() else None

    @cached_property
    def labels(self) -> tuple[Any, ...] | None:
        """Labels of the columns; None for arrays."""
        labels = labels_of(self.table)
        return None if labels is None else tuple(labels)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Labels of the columns, if they are strings."""
        return self.labels if self.labels is not None and all_text(self.labels) else None

    def refuse_labels(self) -> None:
        """Raise TypeError or ValueError unless all labels are strings, or none is, and no name is there twice."""
        labels = self.labels or ()
        if len({isinstance(label, str) for label in labels}) > 1:
            raise TypeError(
                f"names of columns must be all strings or none, got {list(labels)}; use X.columns = "
                "X.columns.astype(str)"
            )
        if len(set(labels)) < len(labels) and all_text(labels):
            raise ValueError(
                f"two columns of X have the same name; rename one of them. Columns are {', '.join(map(repr, labels))}"
            )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with their kinds."""
        series, make = _parts(self.table)
        if not (self.rows and series):
            raise ValueError(  # in the words that scikit-learn's tests of estimators look for
                f"{self.name} is empty: {self.rows} sample(s), {len(series)} feature(s) (shape="
                f"{(self.rows, len(series))}) while a minimum of 1 is required."
            )
        labels = range(len(series)) if self.labels is None else map(repr, map(plain_label, self.labels))
        columns = tuple(
            make(cells, f"column {label} of {self.name}") for cells, label in zip(series, labels, strict=True)
        )
        if isinstance(self.table, MixedTable):
            ordered = self.table.ordered
            columns = tuple(map(_in_order, columns, (ordered.get(name) for name in self.table.columns)))
        return columns


def as_table(X: Any, columns: int | None = None, name: str = "X") -> Any:
    """Convert X to a data frame or a two-dimensional array; a one-dimensional X becomes one column.

    Parameters
    ----------
    X : object
        What the caller passed.
    columns : int, optional
        How many a model was fitted to; unless it is one, X with one dimension is an error.
    name : str, default="X"
        Of the argument, for messages.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f":  # as nearly always
        return X
    array_validation.refuse_foreign(name, X)
    given, X = X, series_as_frame(X)
    if is_frame(X):
        return X
    X = X.to_pylist() if hasattr(X, "to_pylist") else X  # of pyarrow, whose arrays lose their time zones
    read = None
    if not hasattr(X, "dtype"):
        with suppress(TypeError, ValueError):
            read = np.asarray(X)
    if read is not None and read.dtype.kind in "fiubcmM":
        array_validation.refuse_inexact(name, X, read)
        X = read
    X = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    if X.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (rows,) or (rows, columns), got {type(given).__name__} of shape {tuple(X.shape)}"
        )
    if X.dtype.names:
        raise TypeError(
            f"{name} is a structured array, whose fields are no columns; pass pandas.DataFrame({name}), or numbers by "
            f"numpy.lib.recfunctions.structured_to_unstructured({name})"
        )
    if X.dtype.kind == "c":
        raise ValueError(  # in the words that scikit-learn's tests of estimators look for, without all of the numbers
            f"Complex data not supported: {name} must hold real numbers, got {abbreviate(X)}; pass {name}.real, or "
            "real and imaginary parts as columns"
        )
    if X.ndim == 1 and columns not in (None, 1):
        raise ValueError(
            f"X has one dimension, which is one column, and the model was fitted to {columns} columns. Reshape your "
            "data: one row is X.reshape(1, -1)"
        )
    return X[:, None] if X.ndim == 1 else X


def _parts(X: Any) -> tuple[list[Any], Callable[[Any, str], Column]]:
    """Return the columns of a table, and the function that converts each to a `Column`."""
    if _is_frame(X, "pandas"):
        return [X.iloc[:, i] for i in range(X.shape[1])], _pandas_column
    if _is_frame(X, "polars"):
        return X.get_columns(), _polars_column
    if is_arrow_table(X):
        return X.columns, _arrow_column
    if isinstance(X, MixedTable):
        return list(X.columns.values()), _list_column
    return list(X.T), _array_column


def with_days(name: str, X: Any, kinds: Sequence[Kind] | None = None) -> tuple[Any, tuple[Kind, ...] | None]:
    """Convert dates and durations of a table to days, for functions that take numeric columns.

    Examples
    --------
    >>> with_days("X", np.array(["1970-01-03", "1970-01-05"], "M8[D]"))
    (array([[2.],
           [4.]]), ('date',))
    """
    known = kinds is not None and any(kind in TIME_KINDS for kind in kinds)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and not known:
        return X, None
    columns = Columns(as_table(X, name=name), name).columns
    if not known and all(column.times is None for column in columns):
        return X, None
    for column in columns if kinds is None else ():
        if column.times is not None:
            column.times.check_steps(column.label)
    if kinds is None or len(kinds) != len(columns):
        kinds = tuple(column.kind for column in columns)
    cells = [
        column.numbers(kind)
        if column.times is not None or kind in TIME_KINDS
        else array_validation.as_real_array(column.label, column.read_numbers())
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return np.column_stack(cells).astype(np.float64), tuple(kinds)


def is_frame(X: Any) -> bool:
    """Return whether an object is a frame of pandas or polars, a pyarrow table or a `MixedTable`.

    None of the libraries is imported.

    Examples
    --------
    >>> is_frame([[1.0]])
    False
    """
    return isinstance(X, MixedTable) or _is_frame(X, "pandas") or _is_frame(X, "polars") or is_arrow_table(X)


def series_as_frame(X: Any) -> Any:
    """Convert a Series of pandas or polars, or a pandas Index, to a one-column frame; return other objects unchanged.

    Examples
    --------
    >>> series_as_frame([1.0])
    [1.0]
    """
    return X.to_frame() if hasattr(X, "to_frame") and len(getattr(X, "shape", ())) == 1 else X


def labels_of(X: Any) -> list[Any] | None:
    """Return the column labels of a frame; None for anything else.

    Examples
    --------
    >>> labels_of([[1.0]]) is None
    True
    """
    if isinstance(X, np.ndarray) or not is_frame(X):
        return None
    return list(X.column_names if is_arrow_table(X) else X.columns)


def labels_of_rows(rows: Any) -> Any:
    """Return the labels of rows: the index of a frame, Series or answer; None for rows that have only their numbers.

    Frames of polars have no labels, and answers about their rows are frames of polars: their class.

    Examples
    --------
    >>> labels_of_rows([[1.0]]) is None
    True
    """
    index: Any = getattr(rows, "index", getattr(rows, "index_", None))  # of a list it is a method
    index = index.compute() if hasattr(index, "compute") else index  # of Dask
    if isinstance(index, type) or hasattr(index, "is_unique"):
        return index
    polars: Any = sys.modules.get("polars")
    is_polars = polars is not None and isinstance(rows, (polars.DataFrame, polars.Series))
    return polars.DataFrame if is_polars else None


def refuse_other_labels(**given: Any) -> None:
    """Raise ValueError if two Series, frames or answers of as many rows have other row labels, or in another order.

    Rows are paired by position. A frame or Series whose labels count from 0 was given new labels, and fits any other,
    unless the other one has the same labels in another order. Those of a fit are called `model`.
    """
    labels = [(name, labels_of_rows(rows)) for name, rows in given.items()]
    labelled = [(name, index) for name, index in labels if not (index is None or isinstance(index, type))]
    for (of, index), (name, other) in combinations(labelled, 2):
        if len(index) != len(other) or index.equals(other):
            continue
        mine, others = (list(map(plain_label, one)) for one in (index, other))
        counted = list(range(len(mine))) in (mine, others)
        if mine == others or (counted and set(mine) != set(others)):
            continue
        row = next(row for row, pair in enumerate(zip(mine, others, strict=True)) if pair[0] != pair[1])
        remedy = f"{name}.to_numpy() if its rows are in the order of {of}"
        if index.is_unique and set(index) == set(other):
            remedy = f"{name}.loc[{of}.index{'_' * (of == 'model')}] to pair them by label, or {remedy}"
        raise ValueError(
            f"{name} has other row labels than {of}, the first in row {row}: {abbreviate(others[row])} for "
            f"{abbreviate(mine[row])}; rows are paired by position, so pass {remedy}"
        )


def order_of_columns(
    query: Sequence[Any] | None, key: Sequence[Any] | None, names: tuple[str, str] = ("query", "key")
) -> list[int] | None:
    """Return the indices that bring query columns into the order of the key columns, matched by label.

    `names` are what these columns are called in messages.

    Examples
    --------
    >>> order_of_columns(["width", "height"], ["height", "width"])
    [1, 0]
    """
    if query is None or key is None or list(query) == list(key):
        return None
    if len(set(query)) == len(query) == len(key) and set(query) == set(key):
        return [list(query).index(label) for label in key]
    if all_text(query) != all_text(key):
        return None
    new, missing = [name for name in query if name not in key], [name for name in key if name not in query]
    raise ValueError(
        f"columns of {names[0]} and {names[1]} are compared by name, so that both need the same names, each once: "
        f"new are {listed(new)}, missing are {listed(missing)}; rename or select them, "
        f"or pass {names[0]}.to_numpy() to use positions"
    )


def is_column(column: Any) -> bool:
    """Return whether a value can name a column: a string or an integer position."""
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


def position_of(argument: str, column: Any, columns: int, names: Sequence[Any] | None) -> int:
    """Return the position of a column that an argument of this name gives by name or position."""
    if isinstance(column, str):
        if names is None or column not in list(names):
            known = "the columns have no names, so use positions" if names is None else f"columns: {list(names)}"
            raise ValueError(f"{argument} names column {column!r}, which is not there; {known}")
        return list(names).index(column)
    if not -columns <= column < columns:
        raise ValueError(f"{argument} names column {column}, and there are {columns}; positions begin at zero")
    return int(column) % columns


def refuse_other_columns(given: Sequence[Any] | None, fitted: Sequence[Any] | None, where: str) -> None:
    """Raise ValueError unless a table has the columns that a model was fitted to, in the same order.

    `where` is the expression by which a caller gets the labels of the fit, for the remedy.

    Examples
    --------
    >>> refuse_other_columns([0, 1], None, "")
    >>> refuse_other_columns([(2, 1), (2, 0)], [(2, 0), (2, 1)], "labels")
    Traceback (most recent call last):
    ...
    ValueError: X has its columns in another order than in fit: X has [(2, 1), (2, 0)], fit had [(2, 0), (2, 1)];
    use X[labels]
    """
    if given is None or (fitted is not None and list(given) == list(fitted)):
        return
    ours, positions = list(map(plain_label, given)), list(range(len(given)))
    if fitted is None:  # an array, whose columns have their positions for labels
        if set(ours) != set(positions):
            return
        fitted, where = positions, "range(X.shape[1])"
    theirs = list(map(plain_label, fitted))
    if ours == theirs or (all_text(ours) != all_text(theirs) and positions in (ours, theirs)):
        return
    remedy = f"use X[{where}]"
    if set(theirs) <= set(ours) and not set(fitted) <= set(given):  # labels of the fit have become text in a file
        remedy = f"use X.iloc[:, [list(map(str, X)).index(str(label)) for label in {where}]]"
    new = [label for label, one in zip(given, ours, strict=True) if one not in theirs]
    missing = [label for label, one in zip(fitted, theirs, strict=True) if one not in ours]
    problem = "has its columns in another order than in fit:"
    if missing:
        both = (f"new are {listed(new)}, " if new else "") + f"missing are {listed(missing)}"
        problem, remedy = f"lacks columns of fit: {both};", f"add or rename them, then {remedy}"
    elif new or len(ours) != len(theirs):
        problem = f"has columns that fit did not have: new are {listed(new or given)};"
    raise ValueError(f"X {problem} X has {listed(given)}, fit had {listed(fitted)}; {remedy}")


def all_text(labels: Sequence[Any]) -> bool:
    """Return whether all column labels are strings; scikit-learn compares no other labels."""
    return all(isinstance(label, str) for label in labels)


def listed(items: Sequence[Any], most: int = 10) -> str:
    """Format a list of items for a message, with only the first few of a long list."""
    shown = ", ".join(repr(plain_label(item)) for item in items[:most])
    return f"[{shown}]" if len(items) <= most else f"[{shown}, ...] ({len(items)} in all)"


def plain_label(label: Any) -> Any:
    """Convert a column label to the form stored in files: text, numbers, or tuples of these.

    Text and numbers are unchanged, tuples are converted item by item, and others become text.

    Examples
    --------
    >>> import datetime
    >>> plain_label((np.int64(1), datetime.date(2020, 1, 31)))
    (1, '2020-01-31')
    """
    if isinstance(label, tuple | list):  # files hold tuples as lists
        return tuple(map(plain_label, label))
    return "missing" if is_missing(label) else _plain(label)


def _is_frame(X: Any, library: str) -> bool:
    module = sys.modules.get(library)
    return module is not None and isinstance(X, module.DataFrame)


def is_arrow_table(X: Any) -> bool:
    """Return whether an object is a table of pyarrow, which is not imported."""
    module = sys.modules.get("pyarrow")
    return module is not None and isinstance(X, module.Table)


def _pandas_column(series: Any, label: str) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        levels = tuple(_plain(level) for level in dtype.categories.tolist())
        return Column(label, series.to_numpy, series.tolist, "ordered" if dtype.ordered else "unordered", levels)
    if hasattr(dtype, "pyarrow_dtype"):
        import pyarrow

        return _arrow_column(pyarrow.array(series), label)
    if dtype.kind in "fiub":
        # Nullable types have no NaN; integers stay integers, so that they are checked before they become floats.
        as_floats = partial(series.to_numpy, dtype=np.float64, na_value=np.nan)
        exact = dtype.kind in "iu" and not series.hasnans
        read = series.to_numpy if exact or isinstance(dtype, np.dtype) else as_floats
        return Column(label, read, series.tolist)
    return _of_cells(series, label, series.to_numpy, series.tolist)


def _polars_column(series: Any, label: str) -> Column:
    dtype = series.dtype.base_type().__name__
    if dtype == "Enum":
        return Column(label, series.to_numpy, series.to_list, "ordered", tuple(series.dtype.categories.to_list()))
    if dtype == "Categorical":
        return Column(label, series.to_numpy, series.to_list, "unordered")
    if dtype == "Decimal" and not series.dtype.scale:  # integers, which are checked before they become floats
        return Column(label, lambda: np.array(series.to_list(), dtype=object), series.to_list)
    if dtype == "Boolean" or series.dtype.is_numeric():
        exact = series.dtype.is_integer() and not series.null_count()
        read = series if exact or dtype == "Float32" else series.cast(float)
        return Column(label, read.to_numpy, series.to_list)
    return _of_cells(series, label, series.to_numpy, series.to_list)


def _arrow_column(array: Any, label: str) -> Column:
    from pyarrow import float64, types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if is_real(kind):
        is_decimal = types.is_decimal(kind)
        if is_decimal and kind.scale <= 0:  # integers, which are checked before they become floats
            return Column(label, lambda: np.array(array.to_pylist(), dtype=object), array.to_pylist)
        exact = types.is_integer(kind) and not array.null_count
        read = array if exact or is_decimal or types.is_float32(kind) else array.cast(float64())
        return Column(label, partial(arrow_numbers, read), array.to_pylist)
    return _of_cells(array, label, lambda: np.array(array.to_pylist(), dtype=object), array.to_pylist)


def _array_column(cells: AnyArray, label: str) -> Column:
    if cells.dtype.kind in "mMO" and (times := times_of(label, cells)) is not None:
        return _time_column(times, label)
    return Column(label, lambda: cells, cells.tolist)


def _time_column(times: Times, label: str) -> Column:
    return Column(
        label,
        lambda: times.cells,
        lambda: [None if np.isnat(cell) else str(cell) for cell in times.cells],
        times.kind,
        times=times,
    )


def _list_column(cells: Any, label: str) -> Column:
    if isinstance(cells, np.ndarray):
        return _array_column(cells, label)
    if isinstance(cells, Times):
        return _time_column(cells, label)
    return _of_cells(cells, label, lambda: np.array(cells, dtype=object), lambda: cells)


def _of_cells(column: Any, label: str, read_numbers: Callable[[], Any], read_items: Callable[[], list[Any]]) -> Column:
    """Return a `Column` whose kind is inferred from its cells: dates or durations, text, or numbers."""
    times = times_of(label, column)
    if times is not None:
        return Column(label, read_numbers, read_items, times.kind, times=times)
    text = any(isinstance(cell, str) for cell in read_items())
    return Column(label, read_numbers, read_items, "unordered" if text else "numeric")


def _in_order(column: Column, order: Sequence[Any] | None) -> Column:
    return column if order is None else replace(column, kind="ordered", levels=tuple(order))


def _plain(item: Any) -> Any:
    """Convert a category or label for JSON: numbers, text and missing values unchanged, anything else as text."""
    item = item.item() if isinstance(item, np.generic) else item
    return item if item is None or isinstance(item, str | bool | int | float) or is_missing(item) else str(item)


KIND_WORDS: dict[str, str] = {
    "numeric": "numbers",
    "binary": "two categories",
    "unordered": "text",
    "ordered": "ordered categories",
    "date": "dates without a time zone",
    "date with a time zone": "dates with a time zone",
    "duration": "durations",
}
_REMEDIES: dict[Kind, str] = {  # by what a column held in the fit
    "numeric": "pass numbers in the unit of the fit, or fit the model to what it holds",
    "date": "pass dates without a time zone: column.dt.tz_convert(zone).dt.tz_localize(None) removes one, and pandas."
    "to_datetime(column) makes dates of text, with unit='D' of days since 1970-01-01; durations need their start",
    "date with a time zone": "pass dates with a time zone: column.dt.tz_localize(zone) adds one, and pandas."
    "to_datetime(column, utc=True) makes dates of text, with unit='D' of days since 1970-01-01",
    "duration": "pass durations: dates less the one that they are counted from, or pandas.to_timedelta(column), which "
    "makes them of text, with unit='D' of days",
}
