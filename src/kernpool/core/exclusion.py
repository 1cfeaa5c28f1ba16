"""Rows that are left out together: those of a cluster, or those next to each other in an order such as time.

`Exclusion` says so of the rows of a fit; `ExcludedPairs` of the queries and keys of a pooling problem; `Units` by what
rows are counted and drawn: one by one, or by whole clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from kernpool._arrays import Array, Codes, Flags, Index
from kernpool.data import label_codes

Some = slice | Index | Flags

FEWEST_CLUSTERS = 5


class Units(NamedTuple):
    """Units by which rows are counted, drawn and held out: single rows, each by its frequency, or whole clusters.

    Parameters
    ----------
    code : ndarray of int64, shape (n,), or None
        Number of the unit of each row; None if rows are units themselves.
    name : str
        What a unit is.
    """

    code: Codes | None
    name: Literal["row", "cluster"]

    @property
    def plural(self) -> str:
        """What several units are."""
        return f"{self.name}s"

    def take(self, rows: Some) -> Units:
        """Return the units of the rows with these indices."""
        return self if self.code is None else Units(self.code[rows], self.name)

    def number(self, rows: float) -> float:
        """Return the number of units of so many rows."""
        return float(rows) if self.code is None else float(len(np.unique(self.code)))

    def draws(self, rows: int) -> int:
        """Return the number of draws for so many rows: one for each, or one for each cluster."""
        return rows if self.code is None else int(self.code.max()) + 1

    def weight(self, frequency: Array) -> Array:
        """Return the weight of each row in units: its frequency, or its fraction of that of its cluster."""
        if self.code is None:
            return frequency
        return frequency / np.bincount(self.code, frequency)[self.code]

    def refuse_few(self, weight: Array, least: int = FEWEST_CLUSTERS) -> None:
        """Raise ValueError if rows come in clusters and fewer than so many of them have positive weight."""
        count = least if self.code is None else len(np.unique(self.code[weight > 0]))
        if count < least:
            raise ValueError(
                f"groups has {count} cluster{'s' if count != 1 else ''} of positive weight, and what varies between "
                f"clusters needs at least {least}; use finer groups, or more clusters, or, only if rows are "
                "independent of each other, groups of one row each"
            )


SINGLE_ROWS = Units(None, "row")


@dataclass(frozen=True, eq=False)
class Exclusion:
    """Rows that are left out together with a row: those of its cluster, or those within a gap in an order.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
        Number of the cluster of each row; with a gap, place of each row in the order: 0, 1, ..., and rows of equal time
        share one.
    gap : int, default=0
        Rows that are at most so many places away are left out together with a row; zero for clusters.

    Examples
    --------
    >>> order = Exclusion(np.array([2, 0, 1, 3]), gap=1)
    >>> [part.ravel() for part in order.others(np.ones(4), np.array([[1.0], [2.0], [4.0], [8.0]]))]
    [array([1., 2., 1., 2.]), array([2., 9., 8., 6.])]
    """

    code: Codes
    gap: int = 0

    @classmethod
    def of_groups(cls, groups: Any, rows: int) -> Exclusion:
        """Return the exclusion of rows with these labels of their clusters."""
        return cls(label_codes(groups, rows, "groups"))

    def among(self, weight: Array) -> Exclusion:
        """Return the exclusion in which rows of weight zero are no places: they have that of the next row.

        Examples
        --------
        >>> Exclusion(np.array([1, 0, 3, 2]), gap=1).among(np.array([0.0, 1.0, 1.0, 1.0])).code
        array([1, 0, 2, 1])
        """
        if not self.gap or weight.all():
            return self
        counted = np.unique(self.code[weight > 0])
        return Exclusion(np.minimum(np.searchsorted(counted, self.code), len(counted) - 1), self.gap)

    @property
    def units(self) -> Units:
        """Units by which the rows are counted and drawn: clusters, or single rows where these are in an order."""
        return SINGLE_ROWS if self.gap else Units(self.code, "cluster")

    @property
    def option(self) -> str:
        """The argument by which it was asked for."""
        return f"gap={self.gap}" if self.gap else "groups"

    @property
    def error_in_words(self) -> str:
        """The name of the squared error of rows that are left out so."""
        if self.gap:
            return f"leave-one-out mean squared error, with {self.gap} places on either side"
        return f"leave-cluster-out mean squared error ({len(np.unique(self.code))} clusters)"

    def refuse_alone(self) -> None:
        """Raise ValueError if nothing is left to predict some row from.

        Examples
        --------
        >>> Exclusion(np.arange(9), gap=3).refuse_alone()
        >>> Exclusion(np.arange(9), gap=4).refuse_alone()
        Traceback (most recent call last):
        ValueError: gap=4 leaves no rows to predict 1 of 9 rows from; give at most 3
        """
        low, high = self.code.min(initial=0), self.code.max(initial=0)
        furthest = np.maximum(self.code - low, high - self.code)
        alone = int(np.count_nonzero(furthest <= self.gap))
        if alone and self.gap:
            most = int(furthest.min()) - 1
            raise ValueError(
                f"gap={self.gap} leaves no rows to predict {alone} of {len(furthest)} rows from; "
                + (f"give at most {most}" if most > 0 else "the rows have too few places in their order for a gap")
            )
        if alone:
            raise ValueError(
                "groups has a single group, so that no rows are left to predict it from; give at least two, or none"
            )

    def take(self, rows: Some) -> Exclusion:
        """Return the exclusion of the rows with these indices; clusters and places keep their numbers."""
        return Exclusion(self.code[rows], self.gap)

    def pairs(self, query_code: Codes) -> ExcludedPairs:
        """Return the pairs of a query, by its number, and a row that are excluded."""
        return ExcludedPairs(query_code, self.code, self.gap)

    def others(self, weight: Array, number: Array) -> tuple[Array, Array]:
        """Return for each row the weight, and the sum of weight times number, of all rows that stay.

        Those before it and those after it are added up, in O(n log n) time; nothing is subtracted.
        """
        row = np.argsort(self.code, kind="stable")
        code, sums = self.code[row], np.column_stack([weight, weight[:, None] * number])[row]
        nothing = np.zeros((1, sums.shape[1]))
        before = np.vstack([nothing, np.cumsum(sums, axis=0)])[np.searchsorted(code, self.code - self.gap)]
        after = np.vstack([np.cumsum(sums[::-1], axis=0)[::-1], nothing])
        both = before + after[np.searchsorted(code, self.code + self.gap, side="right")]
        return both[:, 0], both[:, 1:]


def sums_of_others(weight: Array, number: Array, exclusion: Exclusion | None = None) -> tuple[Array, Array]:
    """Return for each row the weight, and the sum of weight times number, of the rows that predict it left out.

    Without an exclusion one unit of the row's own frequency is left out.

    Examples
    --------
    >>> weight, number = np.array([1.0, 3.0, 1.0]), np.array([[1.0], [2.0], [4.0]])
    >>> [others.ravel() for others in sums_of_others(weight, number)]
    [array([4., 4., 4.]), array([10.,  9.,  7.])]
    >>> [others.ravel() for others in sums_of_others(weight, number, Exclusion(np.array([0, 1, 0])))]
    [array([3., 2., 3.]), array([6., 5., 6.])]
    """
    if exclusion is not None:
        return exclusion.others(weight, number)
    others, sums = Exclusion(np.arange(len(weight))).others(weight, number)
    left = np.maximum(weight - 1.0, 0.0)  # of the row itself
    return others + left, sums + left[:, None] * number


@dataclass(frozen=True)
class ExcludedPairs:
    """Numbers of queries and keys, such as of their clusters: keys of the query's own number are excluded.

    Parameters
    ----------
    query_code : ndarray of int64, shape (m,)
        Number of each query, -1 for a query for which all keys are included.
    key_code : ndarray of int64, shape (n,)
        Number of each key, not negative.
    gap : int, default=0
        Keys are excluded whose number differs from that of the query by at most so much.

    Examples
    --------
    >>> code = np.array([0, 0, 1])
    >>> ExcludedPairs(code, code).takes_part()
    array([[False, False,  True],
           [False, False,  True],
           [ True,  True, False]])
    """

    query_code: Codes
    key_code: Codes
    gap: int = 0

    def block(self, queries: Some, keys: Some = slice(None)) -> ExcludedPairs:
        """Return the pairs of a subset of the queries and of the keys."""
        return ExcludedPairs(self.query_code[queries], self.key_code[keys], self.gap)

    def takes_part(self) -> Flags:
        """Return an (m, n) mask that is True where query and key are more than the gap apart."""
        query = self.query_code[:, None]
        if not self.gap:
            return np.asarray(query != self.key_code)
        return np.asarray((np.abs(query - self.key_code) > self.gap) | (query < 0))
