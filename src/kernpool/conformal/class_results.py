"""What a set of classes is: a table that prints well, and what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.inference.printing import ROWS, columns_of_text, listed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class PredictionSet:
    """Which classes the next row may have, at m places.

    Parameters
    ----------
    member : ndarray of bool, shape (m, k)
        Which classes are in the set of each place.
    classes : ndarray of shape (k,)
        Labels of the columns.
    threshold : ndarray of shape (k,)
        Largest score that is in the set, the same for all classes unless `by_class`; infinite where there are too few
        rows. NaN for ``"full"``, which has p-values.
    level : float
        Probability with which the set is to hold the class of a new row.
    method : {"lac", "aps", "raps", "full"}
        How it was found.
    guarantee : str
        What holds of that probability, in one sentence.
    n_calibration : float
        How many rows said how large sets have to be, in unit rows: a row of weight 3 is three.
    by_class : bool
        Whether the level is of each class by itself.
    p_value : ndarray of shape (m, k), or None
        For ``"full"``: a class is in the set if it is larger than 1 - level.
    penalty, free_ranks : float and int, or None
        For ``"raps"``: what was added to the score for each rank beyond those that are free.

    Examples
    --------
    >>> member = np.array([[True, False], [True, True], [False, False]])
    >>> found = PredictionSet(
    ...     member, np.array(["no", "yes"]), np.array([0.4, 0.4]), 0.9, "lac", "Holds it.", 99.0, False
    ... )
    >>> found.labels, found.size
    ([['no'], ['no', 'yes'], []], array([1, 2, 0]))
    >>> print(found)
    places     3
    level      0.9
    method     lac, calibrated by 99 rows
    threshold  0.4
    sizes      0: 1, 1: 1, 2: 1
    guarantee  Holds it.
    <BLANKLINE>
      place  size  classes
      0      1     no
      1      2     no, yes
      2      0     none
    """

    member: NDArray[np.bool_]
    classes: NDArray[Any]
    threshold: Array
    level: float
    method: str
    guarantee: str
    n_calibration: float
    by_class: bool
    p_value: Array | None = None
    penalty: float | None = None
    free_ranks: int | None = None

    @property
    def size(self) -> NDArray[np.int64]:
        """How many classes are in each set, of shape (m,)."""
        return np.asarray(self.member.sum(axis=1), dtype=np.int64)

    @property
    def labels(self) -> list[list[Any]]:
        """The classes in each set, as a list of lists."""
        return [self.classes[row].tolist() for row in self.member]

    def __str__(self) -> str:
        shown = min(len(self.member), ROWS)
        sizes, counts = np.unique(self.size, return_counts=True)
        rows = [
            [str(i), str(int(self.member[i].sum())), ", ".join(map(str, self.classes[self.member[i]])) or "none"]
            for i in range(shown)
        ]
        added = "" if self.penalty is None else f", penalty {self.penalty:g} beyond rank {self.free_ranks}"
        threshold = listed(self.threshold if self.by_class else self.threshold[:1])
        lines = [
            f"places     {len(self.member)}" + ", the first below" * (len(self.member) > shown),
            f"level      {self.level:g}" + ", of each class" * self.by_class,
            f"method     {self.method}{added}, calibrated by {self.n_calibration:g} rows",
            *([] if self.p_value is not None else [f"threshold  {threshold}"]),
            "sizes      " + ", ".join(f"{size}: {count}" for size, count in zip(sizes, counts, strict=True)),
            f"guarantee  {self.guarantee}",
        ]
        table = columns_of_text(["place", "size", "classes"], rows)
        return "\n".join([*lines, "", *table, *["  ..."] * (len(self.member) > shown)])
