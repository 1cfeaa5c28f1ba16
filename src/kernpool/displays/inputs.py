"""Training samples of an estimator as numbers, and the estimator along one of their columns."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import Array, Flags, Integers
from kernpool.core import EmptyWindowWarning, weighted_median
from kernpool.data import TIME_KINDS, Encoding, MixedTable, Times, refuse_foreign, refuse_other_labels, series_as_frame
from kernpool.displays.drawing import as_numbers, check_length, evenly, first_name, index_of, method_of
from kernpool.estimators.model import holder_of
from kernpool.execution import as_count

Rows = Flags
PER_BANDWIDTH, FEWEST, MOST = 8, 200, 4000  # points of a grid
MOST_NAMED = 6  # columns whose typical cells have room above a picture
MOST_CURVES = 10  # in one picture, as there are colors


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """Training samples of a fitted estimator, inputs as numbers, and the way back to what the estimator takes."""

    estimator: Any
    output: Any  # as given, or as the estimator holds it
    weight: Array  # shape (n,): frequencies
    values: Array  # shape (n, d): numbers, dates in days, categories as indices into `levels`
    names: tuple[str, ...]  # by which columns are chosen; empty if they have none
    kinds: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]  # None for numbers
    table: Callable[[Array], Any]  # converts rows of `values` to what the estimator takes

    @classmethod
    def of(cls, estimator: Any, X: Any = None, y: Any = None) -> TrainingSamples:
        """Return training samples: those given, or those that the estimator holds if both are None."""
        refuse_foreign("X", X)
        kind, weight, holder = type(estimator).__name__, None, holder_of(estimator)
        encoding: Any = getattr(holder, "encoding_", None)
        if (X is None) != (y is None):
            raise ValueError(
                f"X and y go together, got only {'X' if y is None else 'y'}; give both, or leave both out to draw the "
                f"rows that {kind} holds"
            )
        if X is None:
            check_is_fitted(estimator)
            if not hasattr(holder, "key_"):
                raise ValueError(f"this {kind} does not hold its rows; pass X and y, the training rows")
            y, weight = holder.value_, holder.key_weight_
            columns = _decoded(encoding, holder.key_, holder.key_code_)
        else:
            table = series_as_frame(X)
            columns = _columns_of(table) if encoding is None else _decoded(encoding, *encoding.encode(table))
        n = len(columns[0])
        refuse_other_labels(X=X, y=y)
        check_length("y", y, n, "row of X")
        return cls(estimator, y, np.ones(n) if weight is None else weight, *columns)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each column is called in a picture."""
        d = self.values.shape[1]
        return self.names or (("x",) if d == 1 else tuple(f"column {i}" for i in range(d)))

    def grid(self, column: int, resolution: int | None = None, rows: Rows | None = None) -> Array:
        """Return increasing points over a numeric column, from its least value in some rows to its largest.

        By default there are eight per bandwidth, at least 200 and at most 4000.
        """
        cells = self.values[:, column] if rows is None else self.values[rows, column]
        low, high = cells.min(), cells.max()
        if resolution is None:
            bandwidths = getattr(holder_of(self.estimator), "bandwidth_", None)
            # bandwidths are of columns that are read as numbers, those of two categories by local lines included
            read = [levels is None or kind == "binary" for levels, kind in zip(self.levels, self.kinds, strict=True)]
            bandwidth = high - low if bandwidths is None else bandwidths[sum(read[:column])]
            resolution = int(np.clip(PER_BANDWIDTH * (high - low) / bandwidth, FEWEST, MOST))
        return np.linspace(low, high, as_count("grid_resolution", resolution, 2))

    @property
    def typical(self) -> Array:
        """Medians of numeric columns and the most frequent categories of the others, with frequencies: shape (d,)."""
        columns = zip(self.values.T, self.levels, strict=True)
        return np.array(
            [
                weighted_median(column, self.weight)
                if levels is None
                else np.bincount(column.astype(np.intp), self.weight).argmax()
                for column, levels in columns
            ]
        )

    def alike(self, cells: Array) -> Rows:
        """Return which samples have the categories of a row; beyond them those of others say how a curve goes on."""
        held = [i for i, levels in enumerate(self.levels) if levels is not None]
        return np.asarray((self.values[:, held] == cells[held]).all(axis=1))

    def varied(self, rows: Rows, column: int) -> Rows:
        """Return these rows, or all where one column does not vary among them."""
        return rows if np.any(np.diff(self.values[rows, column])) else self.weight > 0

    def note(self, *drawn: int) -> str:
        """Return what a picture over some of the columns, or over each, says of the others; nothing if none is left."""
        held = [i for i in range(len(self.labels)) if i not in drawn] if len(self.labels) > 1 else []
        if len(held) > MOST_NAMED:
            return f"other columns at their {'medians and most frequent categories' if any(self.levels) else 'medians'}"
        typical = self.typical
        # no line ends between a column and its value
        named = ", ".join(f"{self.labels[i]} {self.text(i, typical[i])}".replace(" ", "\xa0") for i in held)
        return textwrap.fill(f"other columns at {named}", 80).replace("\xa0", " ") if held else ""

    def text(self, column: int, cell: float, digits: int = 6) -> str:
        """Return the text of a cell of a column: a category, a day, or a number with at most so many digits."""
        levels = self.levels[column]
        if levels is not None:
            return str(levels[int(cell)])
        is_date = self.kinds[column].startswith("date")
        return str(np.datetime64(round(cell), "D")) if is_date else f"{cell:.{digits}g}"

    def index(self, feature: int | str | None, name: str = "feature") -> int:
        """Return the index of a column given by number or name; None is the only one."""
        return index_of(feature, name, self.values.shape[1], "column of X", self.names)

    def drawn(self, column: int, at_most: int | None, rows: Rows | None = None) -> tuple[Array, Array]:
        """Return one column and the output of some samples, evenly chosen among all or among some rows."""
        among = np.arange(len(self.values)) if rows is None else np.flatnonzero(rows)
        kept = among[evenly(len(among), at_most)]
        return self.values[kept, column], as_numbers("y", self.output).ravel()[kept]

    def numeric_index(self, feature: int | str | None, name: str = "feature", *, pairs: bool = False) -> int:
        """Return the index of a column as `index` does; raise ValueError if it holds categories."""
        # with `pairs`, two categories that the estimator reads as 0 and 1 are numbers
        column = self.index(feature, name)
        if self.levels[column] is not None and not (pairs and self.kinds[column] == "binary"):
            raise ValueError(
                f"column {self.labels[column]!r} holds categories, and curves and surfaces are drawn over numbers; "
                "choose another one, or draw a curve for each category: "
                f"KernelCurveDisplay.from_estimator(model, by={feature!r})"
            )
        return column


Columns = tuple[Array, tuple[str, ...], tuple[str, ...], tuple[tuple[Any, ...] | None, ...], Callable[[Array], Any]]


def _columns_of(X: Any) -> Columns:
    """Return the columns of an estimator of another library: numbers, with the names that a frame has."""
    names = list(getattr(X, "columns", []))
    if not all(isinstance(name, str) for name in names):  # scikit-learn ignores other names too
        names, X = [], np.asarray(X)
    values = np.asarray(X, dtype=np.float64)
    values = values.reshape(len(values), -1)

    def table(query: Array) -> Any:
        return type(X)(dict(zip(names, query.T, strict=True))) if names else query

    d = values.shape[1]
    return values, tuple(names), ("numeric",) * d, (None,) * d, table


def _decoded(encoding: Encoding, numeric: Array, code: Integers) -> Columns:
    """Return the columns of an estimator of this library, in the order of its table."""
    names = tuple(encoding.names or ())
    values = np.empty((len(numeric), len(encoding.kinds)))
    values[:, encoding.categorical] = code
    values[:, encoding.numeric] = numeric[:, : len(encoding.numeric)]  # without numbers, keys are a column of zeros
    categories, pairs = iter(encoding.levels), iter(encoding.pairs)
    levels = tuple(
        None if kind in ("numeric", *TIME_KINDS) else next(pairs if kind == "binary" else categories)
        for kind in encoding.kinds
    )

    def table(query: Array) -> MixedTable:
        columns: dict[str, Any] = {}
        for i, (kind, some) in enumerate(zip(encoding.kinds, levels, strict=True)):
            cells: Any = query[:, i]
            if some is not None:
                cells = [some[int(cell)] for cell in cells]
            elif kind in TIME_KINDS:
                cells = Times(kind, cells)
            columns[names[i] if names else str(i)] = cells
        return MixedTable(columns)

    return values, names, encoding.kinds, levels, table


def target_name(estimator: Any, y: Any, target: str | None) -> str:
    """Return what to call the outputs: the given name, that of the Series y, that of the fit, or "y"."""
    return first_name(target, y, getattr(holder_of(estimator), "target_name_", None), "y")


@dataclass(frozen=True, eq=False)
class Section:
    """Where a picture over one column asks a fitted model, with the other columns at typical cells or those of rows."""

    samples: TrainingSamples
    columns: Sequence[int]  # one, or two of a surface
    x: Array  # shape (g,): points over the column, increasing, or codes of categories; (g, 2) of a surface
    query: Any  # rows at the points, as the estimator takes them
    rows: Rows | None = None  # samples to draw: those with the categories of the query
    value: str = ""  # of the column by which there is a section each
    note: str = ""  # how the other columns are held

    @classmethod
    def of(cls, samples: TrainingSamples, columns: Sequence[int], x: Array, others: Array | None = None) -> Section:
        """Create a `Section` with the other columns as in each of these rows in turn, at every point."""
        # by default medians and most frequent categories
        others = samples.typical[None] if others is None else others
        query = np.tile(others, (len(x), 1))
        query[:, columns] = np.repeat(x.reshape(len(x), -1), len(others), axis=0)
        return cls(samples, columns, x, samples.table(query))

    @classmethod
    def over(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        feature: int | str | None,
        resolution: int | None,
        by: int | str | None = None,
    ) -> list[Section]:
        """Create a `Section` over a numeric column, by default the only one, or one per value of `by`."""
        samples = TrainingSamples.of(estimator, X, y)
        numeric = [i for i, levels in enumerate(samples.levels) if levels is None]
        index = None if by is None else samples.index(by, "by")
        others = [i for i in numeric if i != index]
        column = others[0] if feature is None and len(others) == 1 else samples.numeric_index(feature)
        index, typical = column if index is None else index, samples.typical
        values = [None] if by is None else np.unique(samples.values[samples.weight > 0, index])
        if (index == column) != (by is None) or len(values) > MOST_CURVES:
            raise ValueError(
                f"by must name another column than the drawn one, of at most {MOST_CURVES} values; {by!r} has "
                f"{len(values)}; group its values, as pandas.cut does, or draw all columns with PartialDisplay"
            )
        note, sections = samples.note(column, index), []
        drawn = np.zeros(len(samples.values), dtype=bool)
        for value in values:
            rows, name = np.ones(len(samples.values), dtype=bool), ""
            if value is not None:
                rows = samples.values[:, index] == value
                name = samples.text(index, value, 15)  # values may differ in late digits alone
                typical[index] = value
            alike = rows & samples.alike(typical)
            drawn |= alike
            reach = samples.varied(alike, column) if value is None else alike if alike.any() else rows
            section = cls.of(samples, [column], samples.grid(column, resolution, reach), typical[None])
            sections.append(replace(section, rows=alike, value=name))
        if by is not None:
            note = f"by {samples.labels[index]}" + f", {note}" * bool(note)
        if not drawn.all():
            note += "\nonly samples of these categories are drawn"
        return [replace(section, note=note) for section in sections]

    @property
    def column(self) -> int:
        """Index of the column."""
        return self.columns[0]

    @property
    def label(self) -> str:
        """What the column is called."""
        return self.samples.labels[self.column]

    @property
    def kind(self) -> str:
        """What the column holds, as in `kernpool.data.columns.Column`."""
        return self.samples.kinds[self.column]

    def ask(self, method: str, remedy: str = "", /, **options: Any) -> Any:
        """Return what a method of the estimator answers at the points."""
        with warnings.catch_warnings():
            # The caller did not choose the points; where windows are empty, the picture has gaps.
            warnings.simplefilter("ignore", EmptyWindowWarning)
            return method_of(self.samples.estimator, method, remedy)(self.query, **options)
