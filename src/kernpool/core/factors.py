r"""Categorical columns: factors that multiply onto the kernel weight of the numeric ones.

.. math:: w_{ij} = K\big((q_i - k_j)/h\big) \prod_a T_a(\text{level of } q_i, \text{level of } k_j)

Keys that have the same levels in every categorical column are a *cell*: within it the factors depend on the query
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Some = slice | NDArray[np.intp]


class Cell(NamedTuple):
    """Keys of the same levels.

    Parameters
    ----------
    levels : ndarray of int64, shape (k,)
        Their level number in each categorical column.
    keys : slice or ndarray of int
        Which they are.
    """

    levels: Codes
    keys: Some


@dataclass(frozen=True)
class Factors:
    """The categorical columns of queries and keys, and the factors of pairs of their levels.

    Parameters
    ----------
    query_code : ndarray of int64, shape (m, k)
        Level numbers of the queries in each categorical column. A level of -1 is unlike every other: its factor is that
        of the first and the last level, which for every kernel of `kernpool.kernels.categorical` is the smallest, given
        that the levels of ordered columns are in order.
    key_code : ndarray of int64, shape (n, k)
        Level numbers of the keys.
    tables : tuple of k ndarrays of shape (levels, levels)
        Factors of pairs of levels, `CategoricalKernel.table` of each column.
    slopes : tuple of k ndarrays of shape (levels, levels)
        Their derivatives by the smoothing of the column, `CategoricalKernel.table_slope`.

    Raises
    ------
    ValueError
        If shapes do not fit together, or level numbers are out of range.
    """

    query_code: Codes
    key_code: Codes
    tables: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def __post_init__(self) -> None:
        k = len(self.tables)
        if len(self.slopes) != k:
            raise ValueError(f"slopes must be one per table, got {len(self.slopes)} for {k} tables")
        for name, code in (("query_code", self.query_code), ("key_code", self.key_code)):
            if code.ndim != 2 or code.shape[1] != k or code.dtype.kind != "i":
                raise ValueError(
                    f"{name} must be integers of shape (rows, tables), got shape {code.shape} of {code.dtype} for "
                    f"{k} tables"
                )
        for a, (table, slope) in enumerate(zip(self.tables, self.slopes, strict=True)):
            if table.ndim != 2 or table.shape[0] != table.shape[1] or slope.shape != table.shape:
                raise ValueError(
                    f"tables[{a}] and slopes[{a}] must be square and of one shape, got {table.shape} and {slope.shape}"
                )
            for name, code, lowest in (("query_code", self.query_code, -1), ("key_code", self.key_code, 0)):
                low, high = (code[:, a].min(), code[:, a].max()) if len(code) else (0, 0)
                if low < lowest or high >= len(table):
                    raise ValueError(
                        f"{name}[:, {a}] must lie in [{lowest}, {len(table) - 1}], got values from {low} to {high}"
                    )

    def cells(self, key_weight: Array | None) -> list[Cell]:
        """Return the keys of positive weight by their levels, in the order of these.

        Parameters
        ----------
        key_weight : ndarray of shape (n,) or None
            Frequencies.

        Returns
        -------
        list of Cell
            One with a slice of all keys if they all have the same levels.
        """
        kept = np.arange(len(self.key_code)) if key_weight is None else np.flatnonzero(key_weight > 0)
        cell = np.zeros(len(kept), dtype=np.int64)
        for table, level in zip(self.tables, self.key_code[kept].T, strict=True):
            cell = np.unique(cell * len(table) + level, return_inverse=True)[1]  # numbered anew, so that none overflows
        if not cell.any():
            return [Cell(self.key_code[kept[0]], slice(None))]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(cell.max() + 2)).tolist()
        parts = [kept[order[start:stop]] for start, stop in pairwise(starts)]
        return [Cell(self.key_code[keys[0]], keys) for keys in parts]

    def block(self, queries: Some, keys: Some = slice(None)) -> Factors:
        """Return those of some queries and some keys."""
        return replace(self, query_code=self.query_code[queries], key_code=self.key_code[keys])

    def logarithms(self) -> list[Array]:
        """Return the logarithms of the factors of all pairs, of shape (m, n), one array per categorical column."""
        return [table[query[:, None], key] for table, query, key in self._columns(self.log_tables)]

    def pair_slopes(self) -> list[Array]:
        """Return the derivatives of the factors of all pairs by the smoothings, as `logarithms`."""
        return [slope[query[:, None], key] for slope, query, key in self._columns(self.padded_slopes)]

    def to_cell(self, levels: Codes) -> Array:
        """Return the logarithms of the factors between the queries and the keys of a cell, of shape (m, k)."""
        return np.stack(
            [t[q, level] for t, q, level in zip(self.log_tables, self.query_code.T, levels, strict=True)], 1
        )

    def stacked_tables(self) -> Array:
        """Return the tables as one array of shape (k, levels + 1, levels), with a last row for levels of -1."""
        most = max(len(table) for table in self.tables)
        stacked = np.zeros((len(self.tables), most + 1, most))
        for place, table in zip(stacked, self.tables, strict=True):
            place[: len(table), : len(table)] = table
            place[-1, : len(table)] = table[0, -1]
        return stacked

    def _columns(self, tables: list[Array]) -> list[tuple[Array, Codes, Codes]]:
        return list(zip(tables, self.query_code.T, self.key_code.T, strict=True))

    @cached_property
    def log_tables(self) -> list[Array]:
        """Logarithms of the tables, with a last row for the level -1, which is unlike every other."""
        with np.errstate(divide="ignore"):
            return [np.log(_with_unlike(table)) for table in self.tables]

    @cached_property
    def padded_slopes(self) -> list[Array]:
        """Slopes of the tables, with that row."""
        return [_with_unlike(slope) for slope in self.slopes]


def _with_unlike(table: Array) -> Array:
    """Add a last row, which the code -1 finds: every level is as unlike as the first and the last one."""
    return np.vstack([table, np.full((1, len(table)), table[0, -1])])
