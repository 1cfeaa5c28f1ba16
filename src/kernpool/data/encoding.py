"""Encoding of data frames as numbers and category codes, fixed when a model is fitted; and codes of group labels.

`columns.py` reads from the table which columns are numbers, dates, unordered or ordered, unless the caller names
them. For each categorical column the encoding keeps its levels and, if it is ordered, their positions on a line.
Group labels are one per row, none of them missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import AnyArray, Array, Index, Integers
from kernpool.data.array_validation import is_missing, refuse_foreign
from kernpool.data.column_options import OPTIONS, PooledColumn, parameters_of
from kernpool.data.columns import (
    Column,
    Columns,
    Kind,
    Level,
    MixedTable,
    all_text,
    as_table,
    is_column,
    position_of,
    refuse_other_columns,
)
from kernpool.data.dates import TIME_KINDS
from kernpool.execution import abbreviate, check_choice, warn_caller

LEVELS_SHOWN = 20


def is_pair(column: Column) -> bool:
    """Return whether a column is unordered and has exactly two categories, and both occur."""
    return column.kind == "unordered" and len(levels_of(column, False)) == len(set(column.items())) == 2


def levels_of(column: Column, ordered: bool) -> tuple[Level, ...]:
    """Return the categories of a column: those declared with the column, otherwise those that occur, sorted."""
    items = column.items()  # a missing cell is an error even where levels are declared
    if column.levels is not None and (column.kind == "ordered" or not ordered):
        return column.levels
    found = items if column.levels is None else column.levels
    levels = sorted(set(found), key=lambda level: (isinstance(level, str), level))
    if ordered and isinstance(levels[-1], str):
        raise ValueError(
            f"{column.label} is to be ordered and holds text such as {levels[-1]!r}, whose order is not declared; "
            "make it an ordered pandas category or a polars Enum, or numbers"
        )
    return tuple(levels)


def coordinates_of(column: Column, levels: tuple[Level, ...]) -> tuple[float, ...]:
    """Return a coordinate for each category of an ordered column: its value, or its position in the order."""
    if not any(isinstance(level, str) for level in levels):
        values = np.array(levels, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{column.label} has infinite levels, which have no distance; give finite numbers")
        steps = np.diff(values)
        if np.all(steps > 0) or np.all(steps < 0):
            return tuple(values.tolist())
    return tuple(float(rank) for rank in range(len(levels)))


def codes_of(column: Column, levels: tuple[Level, ...], unseen: str) -> list[int]:
    """Return the category code of each cell of a column; a category unseen at fit gets code -1 or raises ValueError."""
    number = {level: i for i, level in enumerate(levels)}
    items = column.items()
    codes = [number.get(item, -1) for item in items]
    if unseen == "raise" and -1 in codes:
        row = codes.index(-1)
        known = ", ".join(map(repr, levels[:LEVELS_SHOWN])) + (", ..." if len(levels) > LEVELS_SHOWN else "")
        raise ValueError(
            f"{column.label} has the level {items[row]!r} in row {row} (counted from 0), which it did not have when it "
            f"was fitted; known levels are {known}. To pool such rows as unlike every level, use unseen='unlike', "
            "in a stack that of local="
        )
    return codes


NUMBERS = ("numeric", "binary", *TIME_KINDS)
CATEGORICAL: tuple[Kind, ...] = ("unordered", "ordered")
# Arguments of `Encoding.fit` that are parameters of estimators, and checks of them that need no table.
COLUMN_CHECKS = {option.option: option.check for option in OPTIONS}
COLUMN_OPTIONS = (*CATEGORICAL, *COLUMN_CHECKS)
Cuts = tuple[tuple[int, float, float], ...]  # column that comes round, its period, and where it is cut open


@dataclass(frozen=True)
class Encoding:
    """Encoding of table columns as numbers and category codes, fixed when a model is fitted.

    Parameters
    ----------
    labels : tuple or None
        Labels of the columns, strings or others; None if they had none.
    kinds : tuple of str
        What each column is: "numeric", "unordered", "ordered", "binary", "date", "date with a time zone" or "duration".
        Binary ones have two unordered categories, which are read as the numbers 0 and 1; dates are read as days since
        1970-01-01 UTC, durations as days.
    levels : tuple of tuple, default=()
        The categories of each categorical column; the code of a category is its index here.
    places : tuple of tuple of float, or None, default=()
        For each categorical column the coordinates of its categories on a line, increasing or decreasing, if it is
        ordered.
    pairs : tuple of tuple, default=()
        The two categories of each binary column.
    options : tuple of PooledColumn, default=()
        Numeric columns that are pooled otherwise than as they are, such as points on circles and globes.
    """

    labels: tuple[Any, ...] | None
    kinds: tuple[Kind, ...]
    levels: tuple[tuple[Level, ...], ...] = ()
    places: tuple[tuple[float, ...] | None, ...] = ()
    pairs: tuple[tuple[Level, ...], ...] = ()
    options: tuple[PooledColumn, ...] = ()

    @classmethod
    def fit(cls, X: Any, *, binary: bool = False, **given: Any) -> Encoding:
        """Return the `Encoding` of training rows: the kind of each column, and the categories of categorical ones.

        Parameters
        ----------
        X : Columns, frame or array_like of shape (n, columns)
            The training rows.
        binary : bool, default=False
            Read unordered columns of two categories, unless they are named, as 0 and 1: a plane has a slope in them.
        **given
            Options of columns by name: `unordered` and `ordered` are names or positions of columns that are
            categorical, whatever their types in the table; `kernpool.data.column_options` has the others.

        Returns
        -------
        Encoding
            With all the categories that a pandas category or a polars Enum declares, whether or not they occur: their
            number is part of some kernels. Otherwise the categories are those that occur, sorted.

        Raises
        ------
        TypeError
            If a name or a position is neither.
        ValueError
            If there is no such column, a column is named twice, has a missing cell, or holds text that is to be
            ordered without a declared order; if dates are too close together for days in float64 (31 microseconds on
            average, for dates of today); and as in `Columns.of`.

        Notes
        -----
        Levels that are neither text nor numbers, such as the intervals of ``pandas.cut``, are known by their text.

        Examples
        --------
        >>> encoding = Encoding.fit([["b", 2001, 1.5], ["a", 2011, 2.5]], unordered=[0], ordered=[1])
        >>> encoding.levels, encoding.places
        ((('a', 'b'), (2001, 2011)), (None, (2001.0, 2011.0)))
        >>> encoding.encode([["a", 2001, 7.5]])
        (array([[7.5]]), array([[0, 0]]))
        """
        table = Columns.of(X)
        asked: dict[int, Kind] = {}
        for kind in CATEGORICAL:
            named = () if given.get(kind) is None else given[kind]
            if isinstance(named, str) or not all(map(is_column, named)):
                expected = "None or a collection of names or positions"
                raise ValueError(f"{kind} must be {expected} of columns, got {abbreviate(named)}")
            for column in named:
                position = position_of(kind, column, len(table.columns), table.names)
                if position in asked:
                    raise ValueError(f"{table.columns[position].label} is named twice in unordered= and ordered=")
                asked[position] = kind
        if table.numbers is not None and not asked:
            encoding = cls(None, ("numeric",) * table.table.shape[1])
        else:
            encoding = cls._of_columns(table, asked, binary=binary and len(table.columns) > 1)
        wanted = [option for option in OPTIONS if given.get(option.option) is not None]
        return encoding._with_options(wanted, given) if wanted else encoding

    @classmethod
    def _of_columns(cls, table: Columns, asked: Mapping[int, Kind], *, binary: bool) -> Encoding:
        """Return the encoding of columns, some of which are asked to be categorical."""
        table.refuse_labels()
        kinds: tuple[Kind, ...] = tuple(
            "binary" if binary and i not in asked and is_pair(column) else asked.get(i, column.kind)
            for i, column in enumerate(table.columns)
        )
        for column, kind in zip(table.columns, kinds, strict=True):
            if column.times is not None and kind in TIME_KINDS:
                column.times.check_steps(column.label)
        pairs = tuple(levels_of(table.columns[i], False) for i, kind in enumerate(kinds) if kind == "binary")
        categorical = [(column, kind) for column, kind in zip(table.columns, kinds, strict=True) if kind not in NUMBERS]
        levels = tuple(levels_of(column, kind == "ordered") for column, kind in categorical)
        places = tuple(
            coordinates_of(column, some) if kind == "ordered" else None
            for (column, kind), some in zip(categorical, levels, strict=True)
        )
        return cls(table.labels, kinds, levels, places, pairs)

    def _with_options(self, wanted: Sequence[type[PooledColumn]], given: Mapping[str, Any]) -> Encoding:
        """Return the encoding with numeric columns that are pooled otherwise, as options say."""

        def place(option: str, column: Any) -> int:
            position = position_of(option, column, len(self.kinds), self.names)
            if self.kinds[position] == "binary" or position not in self.numeric:
                raise ValueError(
                    f"{option} names column {column!r}, which holds categories and no numbers; leave it out"
                )
            return self.numeric.index(position)

        options = [one for option in wanted for one in option.read(given[option.option], partial(place, option.option))]
        found, columns = replace(self, options=tuple(options)), [column for one in options for column in one.columns]
        for number, column in enumerate(columns):
            if column in columns[:number]:
                label = self.column_labels[self.numeric[column]]
                raise ValueError(f"column {label!r} is named twice in {found.options_in_words}; name it once")
        return found

    @classmethod
    def of_numbers(cls, labels: Sequence[Any] | None, columns: int) -> Encoding:
        """Return the `Encoding` of a table with numeric columns only.

        Examples
        --------
        >>> Encoding.of_numbers(None, 2).encode([[1, 2.5]])[0]
        array([[1. , 2.5]])
        """
        kinds: list[Kind] = ["numeric"] * columns
        return cls(None if labels is None else tuple(labels), tuple(kinds))

    def without(self, columns: Collection[int]) -> Encoding:
        """Return the encoding of a table without the columns at these positions, which no option names."""
        kept = [i for i in range(len(self.kinds)) if i not in columns]
        numbers = [a for a, i in enumerate(self.numeric) if i in kept]
        levels = [a for a, i in enumerate(self.categorical) if i in kept]
        binary = [i for i, kind in enumerate(self.kinds) if kind == "binary"]
        return Encoding(
            None if self.labels is None else tuple(self.labels[i] for i in kept),
            tuple(self.kinds[i] for i in kept),
            tuple(self.levels[a] for a in levels),
            tuple(self.places[a] for a in levels),
            tuple(pair for i, pair in zip(binary, self.pairs, strict=True) if i in kept),
            tuple(replace(one, columns=tuple(map(numbers.index, one.columns))) for one in self.options),
        )

    @property
    def column_labels(self) -> Sequence[Any]:
        """Labels of the columns, or their positions if they have none."""
        return self.labels or range(len(self.kinds))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Labels of the columns, if they are strings."""
        return self.labels if self.labels is not None and all_text(self.labels) else None

    @cached_property
    def is_plain(self) -> bool:
        """Whether all columns are numeric, so that an array of numbers can replace the table."""
        return set(self.kinds) == {"numeric"}

    @property
    def dates(self) -> tuple[int, ...]:
        """Indices of the columns of dates and durations, which are read as days."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind in TIME_KINDS)

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """Indices of the columns that are encoded as numbers: numeric, binary, date and duration columns."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind in NUMBERS)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Indices of the columns that are encoded as category codes: unordered and ordered columns."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind not in NUMBERS)

    @property
    def table_levels(self) -> tuple[int | Array, ...]:
        """Number of categories of each unordered column, and coordinates of the categories of each ordered column.

        There is one entry per categorical column: the argument of `CategoricalKernel.table`.
        """
        return tuple(
            len(levels) if places is None else np.array(places)
            for levels, places in zip(self.levels, self.places, strict=True)
        )

    def numeric_labels(self) -> list[Any] | None:
        """Return the names of the numeric columns; an empty name where there are none, None without names."""
        names = self.names
        return None if names is None else [names[i] for i in self.numeric] or [""]

    def numeric_kinds(self) -> list[Kind]:
        """Return the kinds of the numeric columns."""
        return [self.kinds[i] for i in self.numeric] or ["numeric"]

    def encode(self, X: Any, unseen: str = "raise") -> tuple[AnyArray, Integers]:
        """Convert a table to two arrays: one of numbers, of one column at least, and one of category codes.

        Examples
        --------
        >>> encoding = Encoding.fit([["b"], ["a"]], unordered=[0])
        >>> encoding.encode([["c"], ["b"]], unseen="unlike")[1].tolist()
        [[-1], [1]]
        """
        table = X if isinstance(X, Columns) else Columns(as_table(X, len(self.kinds)))
        plain = table.numbers if self.is_plain else None
        columns = len(table.columns) if plain is None else plain.shape[1]
        if plain is None or self.labels is not None or columns != len(self.kinds):
            self._check_columns(table, columns)
        if plain is not None:
            numeric, code = plain, np.zeros((len(plain), 0), dtype=np.int64)
        else:
            numeric, code = self._encoded(table, unseen)
        for one in self.options:
            one.refuse_outside(numeric)
        return numeric, code

    def _encoded(self, table: Columns, unseen: str) -> tuple[AnyArray, Integers]:
        """Encode a table column by column."""
        check_choice("unseen", unseen, ("raise", "unlike"))
        code, pairs = np.empty((table.rows, len(self.levels)), np.int64), iter(self.pairs)
        numbers: list[NDArray[np.floating[Any]]] = []
        for i in self.numeric:
            if self.kinds[i] == "binary":
                codes = np.array(codes_of(table.columns[i], next(pairs), unseen), dtype=np.float64)
                numbers.append(np.where(codes < 0, 0.5, codes))
            else:
                numbers.append(table.columns[i].numbers(self.kinds[i]))
        for place, i in enumerate(self.categorical):
            code[:, place] = codes_of(table.columns[i], self.levels[place], unseen)
        single = bool(numbers) and all(column.dtype == np.float32 for column in numbers)
        numeric = np.zeros((table.rows, max(1, len(numbers))), np.float32 if single else np.float64)
        for place, column in enumerate(numbers):
            numeric[:, place] = column
        return numeric, code

    def _check_columns(self, table: Columns, columns: int) -> None:
        """Raise ValueError unless new rows have the columns of the fit; warn if only one of both has names."""
        labels = table.labels
        if labels != self.labels:
            attribute = "column_labels_" if self.labels is not None and self.names is None else "feature_names_in_"
            refuse_other_columns(labels, self.labels, f"model.{attribute}")
            if isinstance(table.table, MixedTable):
                pass
            elif labels is None and self.names is not None:
                warn_caller("X does not have valid feature names, and the model was fitted with some; pass a frame")
            elif labels is not None and all_text(labels) and self.names is None:
                warn_caller("X has feature names, and the model was fitted without; pass X.to_numpy(), or fit a frame")
        if columns != len(self.kinds):
            raise ValueError(  # in the words that scikit-learn's tests of estimators look for
                f"X has {columns} features, but kernpool is expecting {len(self.kinds)} features as input; pass the "
                "columns of the fit, and one row of a frame as X.iloc[[0]]"
            )

    @property
    def options_in_words(self) -> str:
        """Names of the parameters by which columns are pooled otherwise than as they are."""
        return parameters_of(self.options)

    @property
    def undrawn(self) -> str:
        """Names of those of these parameters whose columns the explorer does not draw; empty if there are none."""
        return parameters_of(one for one in self.options if not one.is_drawn)

    @cached_property
    def parts(self) -> tuple[PooledColumn, ...]:
        """What is pooled for the numeric columns, each with one bandwidth, in the order of the first columns."""
        first = {min(one.columns): one for one in self.options}
        others = {column for one in self.options for column in one.columns} - first.keys()
        columns = range(max(1, len(self.numeric)))
        return tuple(first.get(a, PooledColumn((a,))) for a in columns if a not in others)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of pooled columns of each bandwidth; empty if all columns are as they are."""
        return tuple(part.size for part in self.parts) if self.options else ()

    @property
    def bandwidth_of(self) -> Index:
        """Number of the bandwidth of each numeric column of the table."""
        number = np.arange(max(1, len(self.numeric)))
        for i, part in enumerate(self.parts if self.options else ()):
            number[list(part.columns)] = i
        return number

    def distinct(self, bandwidth: Any) -> Any:
        """Return the parameter `bandwidth`; one number of each part if there is one for each column of the table."""
        if not self.options or isinstance(bandwidth, str):
            return bandwidth
        if np.ndim(bandwidth) != 1 or len(bandwidth) != len(self.bandwidth_of):
            return bandwidth  # a number, or an error to be told of
        numbers = np.asarray(bandwidth, dtype=np.float64)
        for one in self.options:
            shared = numbers[list(one.columns)]
            if not np.all(shared == shared[0]):
                raise ValueError(
                    f"bandwidth must be one number{one.unit} for both columns of {one.option}=, twice, got "
                    f"{shared.tolist()}"
                )
        return numbers[[part.columns[0] for part in self.parts]]

    def pooled(self, X: AnyArray) -> AnyArray:
        """Return the pooled columns of rows of numbers; the same array if all columns are as they are."""
        if not self.options:
            return X
        return np.concatenate([part.place(X) for part in self.parts], axis=1, dtype=np.float64)

    def cuts(self, X: AnyArray) -> Cuts:
        """Return where each column that comes round is farthest from all rows X."""
        turns = [one.turn for one in self.options if one.turn is not None]
        return tuple((column, period, _middle_of_gap(X[:, column], period)) for column, period in turns)

    def unrolled(self, X: AnyArray, cuts: Cuts) -> AnyArray:
        """Return the columns of rows, with those that come round cut open: within a period."""
        if not cuts:
            return X
        rows = np.array(X, dtype=np.float64)
        for column, period, cut in cuts:
            rows[:, column] = cut + np.mod(rows[:, column] - cut, period)
        return rows

    def in_units(self, bandwidth: Array, X: AnyArray) -> Array:
        """Return one bandwidth for each column of the table, in its units, where rows X are."""
        bandwidth = bandwidth.copy()
        for one in self.options:
            bandwidth[list(one.columns)] = one.in_units(float(bandwidth[one.columns[0]]), X)
        return bandwidth

    def to_table(self, X: AnyArray, slopes: Array) -> Array:
        """Return slopes by pooled columns, of shape (m, ., c), as those by columns of the table, of shape (m, d, c)."""
        if not self.options:
            return slopes
        found, start = np.empty((len(X), X.shape[1], slopes.shape[2])), 0
        for part in self.parts:
            along = part.derivatives(X).transpose(0, 2, 1)
            found[:, list(part.columns)] = along @ slopes[:, start : start + part.size]
            start += part.size
        return found


def _middle_of_gap(column: AnyArray, period: float) -> float:
    """Return the middle of the widest arc without values on a circle, so many periods on that the median stays."""
    numbers = column.astype(np.float64)
    place = np.unique(np.mod(numbers, period))
    gaps = np.diff(place, append=place[0] + period)
    widest = int(np.argmax(gaps))
    cut, median = place[widest] + 0.5 * gaps[widest], np.quantile(numbers, 0.5, method="inverted_cdf")
    return float(cut + period * np.floor((median - cut) / period))


def label_codes(given: Any, rows: int, name: str) -> Integers:
    """Return for each row the integer code of its label: 0, 1, ... in the sorted order of the labels."""
    refuse_foreign(name, given)
    labels = np.asarray(given)
    if labels.shape != (rows,):
        raise ValueError(f"{name} must have one label for each of the {rows} rows, got shape {labels.shape}")
    listed = isinstance(given, list | tuple)  # of text and NaN NumPy makes text alone
    if listed or labels.dtype.kind not in "biuSU":
        missing = labels != labels  # NaN and NaT
        if listed or labels.dtype.kind == "O":
            missing = np.array([is_missing(label) for label in (given if listed else labels)], dtype=bool)
        if missing.any():
            raise ValueError(
                f"{name} has no label in {missing.sum()} rows (the first is row {np.argmax(missing)}, counted from 0); "
                "leave these rows out, or give each a label of its own"
            )
    try:
        code = np.unique(labels, return_inverse=True)[1]
    except TypeError:
        raise TypeError(
            f"{name} has labels of several types, which cannot be put in order; use numbers or strings alone"
        ) from None
    return np.asarray(code, dtype=np.int64)
