"""Keys and values that have been read once, for as many queries as may come.

`Problem.from_arrays` reads what it is given. Whoever asks for one set of keys again and again, as a fitted model does,
reads them here, and then pays for the queries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.reading import Rows, center_of_values, dtype_of, in_unit, read_rows, subtract
from kernpool.data import checks

Array = NDArray[np.float64]
Made = TypeVar("Made")


class Prepared:
    """What algorithms have made of keys, such as a tree over them, kept for the next queries.

    An entry is used only for the very arrays that it was made of, and equal numbers beside them: a problem that differs
    in anything that counts makes its own. Two threads may make the same entry; either will do.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def get(self, name: Hashable, of: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Return what was made of these arrays and numbers, or make it.

        Parameters
        ----------
        name : hashable
            What it is.
        of : tuple
            All that it depends on: large arrays are compared by identity, small ones and numbers by value.
        make : callable
            Makes it.

        Returns
        -------
        object
            Not to be changed.

        Examples
        --------
        >>> prepared, key = Prepared(), np.zeros(100)
        >>> first = prepared.get("order", (key, 0.5), lambda: np.argsort(key))
        >>> prepared.get("order", (key, 0.5), lambda: np.argsort(key)) is first
        True
        >>> prepared.get("order", (key, 2.0), lambda: np.argsort(key)) is first
        False
        """
        known = self._made.get(name)
        if known is not None and len(known[0]) == len(of) and all(map(_is_same, known[0], of)):
            made: Made = known[1]
            return made
        made = make()
        self._made[name] = (of, made)
        return made

    def __getstate__(self) -> dict[str, Any]:  # what was made is made again where it is needed
        return {"_made": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> Prepared:
        return Prepared()


FEW = 1 << 12  # numbers that are compared by value: bandwidths, units


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        small = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and max(a.size, b.size) <= FEW
        return small and np.array_equal(a, b)
    return bool(type(a) is type(b) and a == b)


@dataclass(frozen=True)
class Keys:
    """Keys, values and weights, read and checked.

    Parameters
    ----------
    rows : Rows
        The keys.
    value : ndarray of shape (n, c)
        Values less `center`.
    center : ndarray of shape (c,)
        A median of the values that take part.
    weight : ndarray of shape (n,) or None
        Frequencies in units of `unit`.
    unit : float
        A power of two.
    dtypes : tuple
        Of the values and of the weights, as they came.
    prepared : Prepared
        What algorithms have made of them.
    """

    rows: Rows
    value: Array
    center: Array
    weight: Array | None
    unit: float
    dtypes: tuple[np.dtype[Any] | None, ...]
    prepared: Prepared = field(default_factory=Prepared, repr=False, compare=False)

    @classmethod
    def read(
        cls,
        key: ArrayLike | Rows,
        value: ArrayLike | Rows,
        key_weight: ArrayLike | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> Keys:
        """Read arrays without batch dimensions.

        Parameters
        ----------
        key, value, key_weight : array_like
            As in `pool`.
        mask : ndarray of bool, shape (m, n), or None
            Which keys take part for which query, if that is known already: values of keys that take part for none do
            not count for the center.

        Returns
        -------
        Keys
            To make problems of.

        Raises
        ------
        TypeError, ValueError
            As in `pool`.

        Examples
        --------
        >>> keys = Keys.read([0.0, 1.0, 5.0], [10.0, 11.0, 12.0])
        >>> keys.center, keys.value.ravel()
        (array([11.]), array([-1.,  0.,  1.]))
        """
        rows, values = read_rows("key", key), read_rows("value", value)
        n, table = len(rows.array), values.array
        if n != len(table):
            raise ValueError(f"key has {n} rows and value has {len(table)}; each key needs its value")
        weight, unit = (None, 1.0) if key_weight is None else in_unit(checks.as_key_weight(key_weight, (n,)))
        center = center_of_values(table, weight, mask)
        dtypes = (values.dtype, *([] if key_weight is None else [dtype_of(key_weight)]))
        return cls(rows, subtract(table, center), center, weight, unit, dtypes)
