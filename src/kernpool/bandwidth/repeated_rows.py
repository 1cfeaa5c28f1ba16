"""Detection of duplicated training rows, which make leave-one-out errors too small.

A table that was joined or exported twice has rows that are equal in every column and in y. Leave-one-out predicts
each from its own copy: errors are too small, bandwidths found by them collapse, and intervals calibrated by them
cover too little. Rounded data have equal rows by chance, which is no mistake; `count_copies` says how the two are
distinguished.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import AnyArray, Array, Index
from kernpool.bandwidth.rules_of_thumb import RULES
from kernpool.bandwidth.search.setup import TrainingRows
from kernpool.core import Exclusion
from kernpool.execution import warn_caller

Hashes = NDArray[np.uint64]

# Of the rows. 200 rows of sin(x), the first k of them twice: with k = 10 and 20 bandwidths were as without copies, with
# 40 half as wide, with 60 a seventh, and 90 percent intervals covered 87; with 100 a thousandth, and they covered 75.
MANY = 0.1
# Criteria that parts of a row deceive. With weights between .5 and 1.5 these found a hundredth of the bandwidth without
# weights ("gcv" sometimes), and others one within 8 percent: there only weights from two on are copies.
DECEIVED_BY_PARTS = ("loo", "regularised", "gcv")
DISTINCT = 20  # rows, and values of y, at least
VALUES = 10  # of a numeric column, at least; a table of fewer is one of levels
TIMES = 10.0  # a distinct row comes on average less often; where it comes more often, values are few
OWN_OUTPUT, OWN_INPUT = 0.5, 0.9  # of the distinct rows have another y, or other inputs, than all others
# Where outputs are labels: more copies than pairs that would be equal if columns were independent. Two columns of iris,
# rounded to a tenth, have 23 to 47 copies among 150 rows, 2 to 4 times as many.
CHANCE = 10.0
SEEN = 1 << 16  # rows that are looked at where there are more, all copies of a row or none

TOO_SMALL = (
    "leave-one-out predicts each from its own copies, so that bandwidths, errors and intervals come out far too small"
)

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class RepeatedRowsWarning(UserWarning):
    """Warning that many training rows are exact copies, which biases leave-one-out errors and bandwidths.

    Issued at fit, with their number and the remedies. A bandwidth search treats weights as frequencies, so weights
    above one are copies. With 150 rows and weights between .9 and 1.1 the bandwidth was a hundredth, or less, of that
    with equal weights; with weights divided by the largest one it differed by a tenth.

    See Also
    --------
    kernpool.NadarayaWatsonRegressor.fit : `groups` holds all copies of a row out together.
    """


def warn_of_copies(rows: TrainingRows, *, takes_groups: bool = True, bandwidth: Any = None) -> None:
    """Warn if many training rows are exact copies of others, or if frequency weights above one act as copies.

    Parameters
    ----------
    rows : TrainingRows
        Training rows. Rows of weight zero are ignored.
    takes_groups : bool, default=True
        Whether the fit has ``groups=``, which is the other remedy then.
    bandwidth : object, optional
        As the caller gave it. A search subtracts a weight of 1 from the row that is predicted and keeps the rest, so
        with a weight of 1.1 a tenth of the row predicts itself, which is enough for a tiny bandwidth: then weights
        above one cause the warning, too.
    """
    if not np.all(rows.weight > 0):
        rows = rows.take(np.flatnonzero(rows.weight > 0))
    copies, n, weight = count_copies(rows), len(rows.X), rows.weight
    searched = isinstance(bandwidth, str) and bandwidth not in RULES
    groups = ", or give groups= with one label for each distinct row, which holds its copies out together"
    if copies:
        more = "" if rows.exclusion is None else " in another group"
        warn_caller(
            f"{copies:g} of {n} rows repeat another row{more}, with the same inputs and the same y: {TOO_SMALL}; drop "
            f"duplicates first (DataFrame.drop_duplicates of pandas){groups * takes_groups}",
            RepeatedRowsWarning,
        )
    elif searched and rows.exclusion is None:
        times = np.ceil(weight) if bandwidth in DECEIVED_BY_PARTS else np.maximum(np.floor(weight), 1.0)
        if np.any(times > 1.0) and count_copies(rows, times):
            warn_caller(
                f"{np.count_nonzero(weight > 1)} of {n} rows have a sample_weight above 1, which is read as equal "
                f"rows: {TOO_SMALL}; divide sample_weight by its largest value{groups * takes_groups}",
                RepeatedRowsWarning,
            )


def count_copies(rows: TrainingRows, weight: Array | None = None) -> float:
    """Count the rows that are exact copies of others; return zero if they are few or can be equal by chance.

    Parameters
    ----------
    rows : TrainingRows
        Training rows; copies that are held out together do no harm, and are not counted.
    weight : ndarray of shape (n,), optional
        Frequencies: a weight of 3 is a row and two copies. One each by default, whatever the weights of the rows.

    Returns
    -------
    float
        Rows less distinct rows. Zero if they are less than a tenth, or can be equal by chance: there are fewer than
        20 distinct rows, or less than a tenth of all; or neither the outputs nor the inputs are of a continuous kind,
        such as half of the distinct rows having outputs of their own; or columns rounded as these are would have a
        tenth of so many equal rows if they were independent.

    Notes
    -----
    Rows are compared by a hash of 64 bits. O(n log n) time, and O(n) beyond 65 536 rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> X, y = np.r_[x, x[:25]][:, None], np.sin(9.0 * np.r_[x, x[:25]])
    >>> [count_copies(TrainingRows.from_arrays(*table)) for table in ((X, y), (np.round(X), np.round(y)))]
    [25.0, 0.0]
    """
    X, code, table = rows.X, rows.code, rows.value
    hashes = _hash([*X.T, *code.T, *table.T])
    every = kept = np.arange(len(hashes))
    if len(hashes) > SEEN:  # all copies of a row or none of them
        kept = np.flatnonzero(hashes < np.uint64(SEEN / len(hashes) * 2.0**64))
    total, copies, first = _count_distinct(hashes, weight, rows.exclusion, kept)
    if copies < MANY * total or len(first) < max(DISTINCT, total / TIMES):
        return 0.0
    outputs = len(np.unique(_hash([*table[first].T])))
    if outputs < max(DISTINCT, OWN_OUTPUT * len(first)):
        inputs = len(np.unique(_hash([*X[first].T, *code[first].T])))
        values = max(len(np.unique(column)) for column in X[first].T)
        if inputs < OWN_INPUT * len(first) or values < VALUES:
            return 0.0
        if copies < CHANCE * _equal_by_chance([*X[first].T, *code[first].T], _hash([*table[first].T])):
            return 0.0
    return copies if len(kept) == len(every) else _count_distinct(hashes, weight, rows.exclusion, every)[1]


def _equal_by_chance(columns: list[AnyArray], label: Hashes) -> float:
    """Return the expected number of pairs of equal rows if columns were independent given the label."""
    return sum(
        math.comb(int(some.sum()), 2) * math.prod(_fraction_of_ties(column[some]) for column in columns)
        for some in (label == one for one in np.unique(label))
    )


def _fraction_of_ties(column: AnyArray) -> float:
    times = np.unique(column, return_counts=True)[1].astype(np.float64)
    return float(np.sum(times * (times - 1.0))) / max(1.0, len(column) * (len(column) - 1.0))


def _hash(columns: list[AnyArray]) -> Hashes:
    """Return a 64-bit hash of each row; those of two different rows are equal with probability 2**-64."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        exact = column.dtype == np.uint64
        bits = column if exact else (column.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        found = (found ^ bits) * _ODD
        found ^= found >> _HALF
    return found


def _count_distinct(
    rows: Hashes, weight: Array | None, exclusion: Exclusion | None, kept: Index
) -> tuple[float, float, Index]:
    """Return the number of rows at the indices `kept`, the number of copies among them, and one index per distinct row.

    A row counts by its weight. Equal rows that are held out together count as a single one, whatever their weights.
    """
    if exclusion is not None:
        kept, weight = kept[np.unique(_hash([rows[kept], exclusion.code[kept]]), return_index=True)[1]], None
    _, first, which = np.unique(rows[kept], return_index=True, return_inverse=True)
    times = np.bincount(which, None if weight is None else weight[kept])
    return float(times.sum()), float(np.maximum(times - 1.0, 0.0).sum()), kept[first]
