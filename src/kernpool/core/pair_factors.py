"""Weight factors of query-key pairs: the kernels of categorical columns.

With the factor ``T_a`` of the categories of a query and a key in the categorical column a, the weight of a pair is

    w_ij = K((q_i - k_j) / h) * product over a of T_a(category of q_i, category of k_j)

Keys with the same categories in every column form a *cell*: within it the factors depend on the query alone.
`Categories` holds the kernel of each categorical column of the training rows, and the range of its smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from kernpool._arrays import Array, Codes, Index
from kernpool.data import Encoding
from kernpool.kernels import CategoricalKernel, kernel_of_family

Some = slice | Index


@dataclass(frozen=True)
class Factors:
    """Category codes of queries and keys, and per categorical column a table of kernel weights of category pairs.

    Parameters
    ----------
    query_code : ndarray of int64, shape (m, k)
        Category codes of the queries in each categorical column. The code -1 is an unknown category: its factor is that
        of the first and the last category, which for every kernel of `kernpool.kernels.categorical` is the smallest,
        given that the categories of ordered columns are in order.
    key_code : ndarray of int64, shape (n, k)
        Category codes of the keys.
    tables : tuple of k ndarrays of shape (levels, levels)
        Factors of pairs of categories, `CategoricalKernel.table` of each column.
    slopes : tuple of k ndarrays of shape (levels, levels)
        Their derivatives by the smoothing of the column, `CategoricalKernel.table_slope`.
    """

    query_code: Codes
    key_code: Codes
    tables: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def cells(self, key_weight: Array | None) -> list[tuple[Codes, Some]]:
        """Return each combination of categories that occurs, in sorted order of codes, and the keys that have it.

        Keys of zero weight are left out.
        """
        kept = np.arange(len(self.key_code)) if key_weight is None else np.flatnonzero(key_weight > 0)
        cell = np.zeros(len(kept), dtype=np.int64)
        for table, level in zip(self.tables, self.key_code[kept].T, strict=True):
            cell = np.unique(cell * len(table) + level, return_inverse=True)[1]  # numbered anew, so that none overflows
        if not kept.size:
            return []
        if not cell.any():
            return [(self.key_code[kept[0]], slice(None))]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(cell.max() + 2)).tolist()
        parts = [kept[order[start:stop]] for start, stop in pairwise(starts)]
        return [(self.key_code[keys[0]], keys) for keys in parts]

    def block(self, queries: Some, keys: Some = slice(None)) -> Factors:
        """Return the category codes of a subset of the queries and of the keys, with the same tables."""
        return replace(self, query_code=self.query_code[queries], key_code=self.key_code[keys])

    def logarithms(self) -> list[Array]:
        """Return the log categorical-kernel weights of all pairs, one (m, n) array per categorical column."""
        return [table[query[:, None], key] for table, query, key in self._columns(self.log_tables)]

    def pair_slopes(self) -> list[Array]:
        """Differentiate the categorical-kernel weights of all pairs by the smoothing, one (m, n) array per column."""
        return [slope[query[:, None], key] for slope, query, key in self._columns(self.padded_slopes)]

    def to_cell(self, levels: Codes) -> Array:
        """Return the log categorical-kernel weight of each query for the keys of a cell, per categorical column.

        The shape is (m, k).
        """
        return np.stack(
            [t[q, level] for t, q, level in zip(self.log_tables, self.query_code.T, levels, strict=True)], 1
        )

    def stacked_tables(self) -> Array:
        """Stack the kernel tables of all categorical columns, padded by zeros, with a last row for unknown categories.

        The shape is (k, levels + 1, levels).
        """
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
        """Logarithms of the kernel tables, each with a last row for unknown categories (code -1)."""
        with np.errstate(divide="ignore"):
            return [np.log(_with_unknown_row(table)) for table in self.tables]

    @cached_property
    def padded_slopes(self) -> list[Array]:
        """Derivatives of the kernel tables by the smoothing, each with a last row for unknown categories (code -1)."""
        return [_with_unknown_row(slope) for slope in self.slopes]


def _with_unknown_row(table: Array) -> Array:
    """Append a row for unknown categories (code -1) to a table: the entry for the first and the last category."""
    # An unknown category is as unlike each category as these two are.
    return np.vstack([table, np.full((1, len(table)), table[0, -1])])


@dataclass(frozen=True)
class Categories:
    """Kernel and levels of each categorical column of a table.

    Parameters
    ----------
    kernels : tuple of CategoricalKernel
        One per column.
    levels : tuple of int or ndarray
        Argument of the kernel: the number of categories, or their coordinates if they are ordered.

    Examples
    --------
    >>> from kernpool.kernels import get_categorical_kernel
    >>> Categories((get_categorical_kernel("aitchison_aitken"),), (3,)).largest.round(3)
    array([0.667])
    """

    kernels: tuple[CategoricalKernel, ...] = ()
    levels: tuple[int | Array, ...] = ()

    @classmethod
    def of(cls, encoding: Encoding, family: str) -> Categories:
        """Return the kernels, all of one family, and the levels of the categorical columns of a table."""
        kinds = (encoding.kinds[i] for i in encoding.categorical)
        kernels = (kernel_of_family(family, ordered=kind == "ordered") for kind in kinds)
        return cls(tuple(kernels), encoding.table_levels)

    def take(self, columns: list[int] | Index) -> Categories:
        """Return the categorical columns with these indices, in this order."""
        return Categories(tuple(self.kernels[i] for i in columns), tuple(self.levels[i] for i in columns))

    @cached_property
    def largest(self) -> Array:
        """Upper bounds of the smoothing of each categorical column, of shape (k,); the lower bounds are zero."""
        counts = [levels if isinstance(levels, int) else len(levels) for levels in self.levels]
        ends = [kernel.largest(c) if c > 1 else 0.0 for kernel, c in zip(self.kernels, counts, strict=True)]
        return np.array(ends, dtype=np.float64)

    def relevance(self, smoothing: Array) -> Array:
        """Return ``1 - smoothing / its upper bound`` per categorical column; 0 if all categories weigh the same."""
        share = 1.0 - np.divide(smoothing, self.largest, where=self.largest > 0, out=np.ones(len(self.kernels)))
        alike = [kernel.is_irrelevant(levels, lam) for kernel, levels, lam in self._with(smoothing)]
        return np.where(alike, 0.0, share)

    def factors(self, query_code: Codes, key_code: Codes, smoothing: Array) -> Factors:
        """Build `Factors` from category codes of queries, (m, k), and keys, (n, k), at the given smoothings."""
        each = self._with(smoothing)
        tables = tuple(kernel.table(levels, lam) for kernel, levels, lam in each)
        return Factors(
            query_code, key_code, tables, tuple(kernel.table_slope(levels, lam) for kernel, levels, lam in each)
        )

    def _with(self, smoothing: Array) -> list[tuple[CategoricalKernel, int | Array, float]]:
        return list(zip(self.kernels, self.levels, smoothing.tolist(), strict=True))


NO_CATEGORIES = Categories()
