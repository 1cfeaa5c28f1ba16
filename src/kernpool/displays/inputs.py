"""Training inputs of an estimator as numbers, and the estimator along one of their columns."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.core.robust_weights import weighted_median
from kernpool.core.state import EmptyWindowWarning
from kernpool.data import TIME_KINDS, Encoding, MixedTable, Times, refuse_foreign, series_as_frame
from kernpool.displays.drawing import evenly, method_of, outputs_of

Array = NDArray[np.float64]
PER_BANDWIDTH, FEWEST, MOST = 8, 200, 4000  # points of a grid
MOST_NAMED = 6  # columns whose typical cells have room above a picture


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """Training inputs of a fitted estimator as numbers, and the way back to what the estimator takes."""

    values: Array  # shape (n, d): numbers, dates in days, categories as indices into `levels`
    names: tuple[str, ...]  # by which columns are chosen; empty if they have none
    kinds: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]  # None for numbers
    table: Callable[[Array], Any]  # converts rows of `values` to what the estimator takes
    weight: Array  # shape (n,): frequencies

    @classmethod
    def of(cls, estimator: Any, X: Any = None) -> TrainingInputs:
        """Return training inputs: those given, otherwise those that the estimator holds."""
        refuse_foreign("X", X)
        if X is None:
            check_is_fitted(estimator)
            if not hasattr(estimator, "key_"):
                kind = type(estimator).__name__
                raise ValueError(f"this {kind} does not hold its rows; pass X and y, the training rows")
        encoding, frame = getattr(estimator, "encoding_", None), series_as_frame(X)
        if encoding is None:
            return cls._plain(frame)
        numeric, code = (estimator.key_, estimator.key_code_) if X is None else encoding.encode(frame)
        weight = estimator.key_weight_ if X is None else None
        return cls._encoded(encoding, numeric, code, np.ones(len(numeric)) if weight is None else weight)

    @classmethod
    def _plain(cls, X: Any) -> TrainingInputs:
        """Return the inputs of an estimator of another library: numbers, with the names that a frame has."""
        names = list(getattr(X, "columns", []))
        if not all(isinstance(name, str) for name in names):  # scikit-learn ignores other names too
            names, X = [], np.asarray(X)
        values = np.asarray(X, dtype=np.float64)
        if values.ndim not in (1, 2):
            raise ValueError(f"X must have shape (n,) or (n, columns), got {values.shape}")
        values = values.reshape(len(values), -1)

        def table(query: Array) -> Any:
            return type(X)(dict(zip(names, query.T, strict=True))) if names else query

        n, d = values.shape
        return cls(values, tuple(names), ("numeric",) * d, (None,) * d, table, np.ones(n))

    @classmethod
    def _encoded(cls, encoding: Encoding, numeric: Array, code: NDArray[np.int64], weight: Array) -> TrainingInputs:
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

        return cls(values, names, encoding.kinds, levels, table, weight)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each column is called in a picture."""
        d = self.values.shape[1]
        return self.names or (("x",) if d == 1 else tuple(f"column {i}" for i in range(d)))

    def grid(self, estimator: Any, column: int, resolution: int | None = None) -> Array:
        """Return increasing points over a numeric column, from its least value to its largest.

        By default there are eight per bandwidth, at least 200 and at most 4000.
        """
        low, high = self.values[:, column].min(), self.values[:, column].max()
        if resolution is None:
            bandwidths = getattr(estimator, "bandwidth_", None)
            # bandwidths are of columns that are read as numbers, those of two categories by local lines included
            read = [levels is None or kind == "binary" for levels, kind in zip(self.levels, self.kinds, strict=True)]
            bandwidth = high - low if bandwidths is None else bandwidths[sum(read[:column])]
            resolution = int(np.clip(PER_BANDWIDTH * (high - low) / bandwidth, FEWEST, MOST))
        if resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {resolution}")
        return np.linspace(low, high, resolution)

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

    def note(self, *drawn: int) -> str:
        """Return what a picture over some of the columns, those with these indices, says of the others.

        Nothing for a single column.
        """
        if len(self.labels) == 1:
            return ""
        if len(self.labels) > MOST_NAMED:
            return f"other columns at their {'medians and most frequent categories' if any(self.levels) else 'medians'}"
        cells = enumerate(zip(self.labels, self.kinds, self.levels, self.typical, strict=True))
        named = (f"{label} {_text(*cell)}" for i, (label, *cell) in cells if i not in drawn)
        return textwrap.fill(f"other columns at {', '.join(named)}", 80)

    def at_typical(self, columns: Sequence[int], cells: Sequence[Array]) -> Any:
        """Return a table for the estimator with given cells in some columns and typical ones in the others."""
        query = np.tile(self.typical, (len(cells[0]), 1))
        for column, some in zip(columns, cells, strict=True):
            query[:, column] = some
        return self.table(query)

    def index(self, feature: int | str | None, name: str = "feature") -> int:
        """Return the index of a column given by number or name; None is the only one."""
        return column_index(feature, list(self.names), self.values.shape[1], name=name)

    def numeric_index(self, feature: int | str | None, name: str = "feature", *, pairs: bool = False) -> int:
        """Return the index of a column as `index` does; raise ValueError if it holds categories."""
        # with `pairs`, two categories that the estimator reads as 0 and 1 are numbers
        column = self.index(feature, name)
        if self.levels[column] is not None and not (pairs and self.kinds[column] == "binary"):
            raise ValueError(
                f"column {self.labels[column]!r} holds categories, and a curve is drawn over numbers; choose another "
                "one, or draw all columns with PartialDisplay"
            )
        return column


def _text(kind: str, levels: tuple[Any, ...] | None, cell: float) -> str:
    """Return the text of a cell: a category, a day, or a number of four digits."""
    if levels is not None:
        return str(levels[int(cell)])
    return str(np.datetime64(round(cell), "D")) if kind.startswith("date") else f"{cell:.4g}"


def training_rows(estimator: Any, X: Any, y: Any) -> tuple[TrainingInputs, Any]:
    """Return training inputs and outputs: those given, or those stored in the estimator if both are None."""
    if (X is None) != (y is None):
        raise ValueError(
            f"X and y go together, got only {'X' if y is None else 'y'}; give both, or leave both out to draw the rows "
            f"that {type(estimator).__name__} holds"
        )
    inputs = TrainingInputs.of(estimator, X)
    return inputs, estimator.value_ if y is None else y


def target_name(estimator: Any, y: Any, target: str | None) -> str:
    """Return what to call the outputs: the given name, that of the Series y, that of the fit, or "y"."""
    names = (target, getattr(y, "name", None), getattr(estimator, "target_name_", None))
    return next((name for name in names if isinstance(name, str)), "y")


@dataclass(frozen=True, eq=False)
class Section:
    """A fitted model along one numeric column, with the others at medians and most frequent categories."""

    estimator: Any
    inputs: TrainingInputs
    column: int
    x: Array  # shape (g,): increasing points over the column
    x_train: Array  # of some training rows, evenly chosen
    y_train: Array
    target: str

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature: int | str | None,
        resolution: int | None,
        subsample: int | None,
        target: str | None,
    ) -> Section:
        """Create a `Section` over a column of the given rows, or of those that the estimator holds."""
        inputs, y = training_rows(estimator, X, y)
        column, target = inputs.numeric_index(feature), target_name(estimator, y, target)
        x = inputs.grid(estimator, column, resolution)
        output = outputs_of(y, len(inputs.values)).ravel()
        kept = evenly(len(inputs.values), subsample)
        return cls(estimator, inputs, column, x, inputs.values[kept, column], output[kept], target)

    @cached_property
    def query(self) -> Any:
        """All columns at the points, as the estimator takes them."""
        return self.inputs.at_typical([self.column], [self.x])

    @property
    def label(self) -> str:
        """What the column is called."""
        return self.inputs.labels[self.column]

    @property
    def kind(self) -> str:
        """What the column holds, as in `kernpool.data.columns.Column`."""
        return self.inputs.kinds[self.column]

    def ask(self, method: str, remedy: str, /, *arguments: Any, **options: Any) -> Any:
        """Return what a method of the estimator answers at the points."""
        with warnings.catch_warnings():
            # The caller did not choose the points; where windows are empty, the picture has gaps.
            warnings.simplefilter("ignore", EmptyWindowWarning)
            return method_of(self.estimator, method, remedy)(self.query, *arguments, **options)


def column_index(feature: int | str | None, names: list[str], d: int, *, name: str = "feature") -> int:
    """Return the index of an input column that is given by number or name."""
    if feature is None:
        if d == 1:
            return 0
        raise ValueError(
            f"X has {d} columns, so {name}= must say which one to draw over; PartialDisplay draws over each"
        )
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{name} {feature!r} is not a column of X; columns: {names or 'none have names'}")
        return names.index(feature)
    if not 0 <= feature < d:
        raise ValueError(f"{name} must lie in [0, {d - 1}], got {feature}")
    return feature
