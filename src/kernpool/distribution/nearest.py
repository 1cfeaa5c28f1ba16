"""Rows that count for queries which are far from all rows, or have empty windows: few, which are held together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.data.chunks.base import Chunk
from kernpool.distribution.questions import bare_problem, joined_rows, of_positive_weight
from kernpool.pooling.chunked import Asked

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAIRS = 1 << 20  # of one table
# Keys whose logits are farther below the largest count for nothing: beside it they are below 2**-115.
MARGIN, ROUNDING = 80.0, 64 * float(np.finfo(np.float64).eps)
MOST_NEAREST = 1 << 22  # keys that are held for queries that no unit of weights suits


class Nearest(NamedTuple):
    """Rows that count for some query.

    Parameters
    ----------
    largest : ndarray of shape (m,)
        Largest logit of each query.
    query : ndarray of int, shape (pairs,)
        The query of each pair of a query and a row that counts for it.
    logit : ndarray of shape (pairs,)
        Of each pair.
    row : ndarray of int, shape (pairs,)
        Which of the rows.
    rows : Chunk
        The rows.
    """

    largest: Array
    query: Index
    logit: Array
    row: Index
    rows: Chunk

    def kept(self) -> Nearest:
        """Return the same without what does not count, or refuse to hold so much."""
        keep = self.logit >= self.largest[self.query] - (MARGIN + ROUNDING * np.abs(self.largest[self.query]))
        row, place = np.unique(self.row[keep], return_inverse=True)
        if len(row) > MOST_NEAREST:
            raise ValueError(
                f"{len(self.largest)} queries are far from all rows, or have empty windows, and more than "
                f"{MOST_NEAREST} rows are as near to them as any; leave such queries out, use empty='nan', or give "
                "arrays in place of chunks"
            )
        weight = None if self.rows.weight is None else self.rows.weight[row]
        rows = Chunk(self.rows.key[row], self.rows.value[row], weight)
        return Nearest(self.largest, self.query[keep], self.logit[keep], place.ravel(), rows)


@dataclass(frozen=True, eq=False)
class WhichNearest:
    """Ask for the rows that count for queries far from all rows: `Nearest`.

    Parameters
    ----------
    asked : Asked
        The queries.
    """

    asked: Asked

    def of(self, chunk: Chunk) -> Nearest:
        """Ask a chunk."""
        chunk = of_positive_weight(chunk)
        m, n = len(self.asked), len(chunk.key)
        chunk = chunk._replace(weight=np.ones(n) if chunk.weight is None else chunk.weight)
        nothing = np.empty(0, dtype=np.intp)
        found = [Nearest(np.full(m, -np.inf), nothing, np.empty(0), nothing, chunk)]
        problem = bare_problem(self.asked, chunk, np.arange(n)) if n else None
        at_once = max(1, PAIRS // max(1, n))
        for start in range(0, m if problem is not None else 0, at_once):
            assert problem is not None
            block = problem.block(slice(start, start + at_once))
            logit = block.similarity.logits(block.query, block.key)
            largest = np.full(m, -np.inf)
            largest[start : start + at_once] = logit.max(axis=1)
            bound = logit.max(axis=1) - (MARGIN + ROUNDING * np.abs(logit.max(axis=1)))
            query, row = np.nonzero(logit >= bound[:, None])
            found.append(Nearest(largest, query + start, logit[query, row], row, chunk))
        query, logit, row = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("query", "logit", "row")
        )
        return Nearest(reduce(np.maximum, [one.largest for one in found]), query, logit, row, chunk).kept()

    def joined(self, one: Nearest, other: Nearest) -> Nearest:
        """Return the answer of the rows of both."""
        rows = joined_rows([one.rows, other.rows])
        return Nearest(
            np.maximum(one.largest, other.largest),
            np.concatenate([one.query, other.query]),
            np.concatenate([one.logit, other.logit]),
            np.concatenate([one.row, other.row + len(one.rows.key)]),
            rows,
        ).kept()
