"""Validation of arrays that callers pass, with errors that name the argument, its value, and the remedy.

Integers that float64 would round are found before they become floats, and refused. Time stamps in nanoseconds, and
identifiers, are larger than 2**53, where float64 begins to skip integers. Pooling uses differences of keys, and those
of rounded keys are wrong. Integers that float64 holds exactly are accepted, such as 2**60.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import AnyArray, Array
from kernpool.execution import abbreviate

LARGEST_INTEGER = 1 << 53  # float64 holds all integers up to here

REMEDY = (
    "subtract an offset from all such numbers while they are integers, as in x - x[0], and then divide into the unit "
    "that you want"
)


def find_inexact(given: Any, read: AnyArray) -> tuple[tuple[int, ...], int] | None:
    """Return the index and the value of the first integer that float64 cannot represent, or None."""
    # Arrays of floats cost nothing, and 64-bit integers one pass for the largest. Lists and frames are checked number
    # by number only if one of the floats is that large.
    if read.dtype.kind in "iu":
        if (
            read.dtype.itemsize < 8
            or not read.size
            or (int(read.min()) >= -LARGEST_INTEGER and int(read.max()) <= LARGEST_INTEGER)
        ):
            return None
        return _first_inexact(read)
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        return None
    if not read.size or (read.dtype.kind == "f" and read.min() > -LARGEST_INTEGER and read.max() < LARGEST_INTEGER):
        return None  # rounding cannot have made a large integer smaller than this
    columns = _columns(given)
    if columns is None:
        return _of_objects(np.asarray(given, dtype=object))
    for i, column in enumerate(columns):
        found = find_inexact(column, np.asarray(column))
        if found is not None:
            return (*found[0], i), found[1]
    return None


def refuse_inexact(name: str, given: Any, read: AnyArray) -> None:
    """Raise ValueError if an argument holds an integer that float64 cannot represent."""
    found = find_inexact(given, read)
    if found is not None:
        raise ValueError(f"{name} holds {would_round(found[1], f'at index {found[0]}')}")


def would_round(integer: int, where: str = "") -> str:
    """Return the end of an error message: which integer float64 would round, to what, and the remedy."""
    return f"the integer {integer}{where and ' '}{where}, which float64 would round to {float(integer):.0f}: {REMEDY}"


def _first_inexact(read: AnyArray) -> tuple[tuple[int, ...], int] | None:
    floats = read.astype(np.float64)
    inside = floats < 2.0 ** (64 if read.dtype.kind == "u" else 63)  # the nearest float may be beyond all integers
    back = np.where(inside, floats, 0.0).astype(read.dtype)
    wrong = np.flatnonzero(~inside | (back != read))
    if not wrong.size:
        return None
    index = tuple(int(place) for place in np.unravel_index(wrong[0], read.shape))
    return index, int(read[index])


def _of_objects(objects: AnyArray) -> tuple[tuple[int, ...], int] | None:
    for place, item in enumerate(objects.flat):
        whole = isinstance(item, int | np.integer) or (
            isinstance(item, Decimal) and abs(item) < 1 << 64 and item == item.to_integral_value()
        )
        if whole and not -LARGEST_INTEGER <= item <= LARGEST_INTEGER and int(float(item)) != item:
            return tuple(int(i) for i in np.unravel_index(place, objects.shape)), int(item)
    return None


def _columns(given: Any) -> list[Any] | None:
    """Return the columns of a pandas or polars frame or a pyarrow table as a list; None for anything else."""
    # The columns may differ in type.
    if hasattr(given, "get_columns"):  # polars
        return list(given.get_columns())
    if hasattr(given, "iloc") and getattr(given, "ndim", 1) == 2:  # pandas
        return [given.iloc[:, i] for i in range(given.shape[1])]
    if hasattr(given, "column_names") and hasattr(given, "itercolumns"):  # pyarrow
        return list(given.itercolumns())
    return None


# Squares of more than this would overflow, and infinity minus infinity is NaN.
LARGEST = 1e150
# The finite number that stands for an infinite bandwidth. Differences between 1e-25 and 1e33 then change no bit of a
# weight, and their fourth powers, which local quadratics need, do not underflow.
INFINITE = 1e50
FLOAT64: np.dtype[Any] = np.dtype(np.float64)
NUMBERS = (int, float, np.number, np.bool_, Decimal)


def is_missing(item: Any) -> bool:
    """Return whether a cell is None, NaN, NaT or NA."""
    if item is None:
        return True
    # NaN and NaT differ from themselves, and whether NA does is neither true nor false.
    different = item != item
    return bool(different) if isinstance(different, bool | np.bool_) else True


def as_real_array(name: str, array: Any, largest: float = LARGEST) -> NDArray[np.floating[Any]]:
    """Convert an array-like to an array of finite real numbers."""
    if type(array) is np.ndarray and array.dtype is FLOAT64 and array.size:
        # Two passes that allocate nothing; NaN fails every comparison.
        low, high = np.minimum.reduce(array, axis=None), np.maximum.reduce(array, axis=None)
        if low >= -LARGEST and high <= LARGEST:
            return array  # as nearly always
    try:
        read = as_array(name, array)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers, got {type(array).__name__}: {error}"
        ) from None
    if read.dtype.kind == "O":
        read = _objects_as_floats(name, read)
    if read.dtype.kind in "mM":
        raise TypeError(dates_refused(name, f"dtype {read.dtype}"))
    if read.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {read.dtype}; encode or drop such columns first")
    refuse_inexact(name, array, read)
    if read.dtype.kind != "f" or read.dtype.itemsize > 8:
        read = read.astype(np.float64)
    read = read.astype(read.dtype.newbyteorder("="), copy=False)
    if read.ndim == 0 and not np.isfinite(read):
        raise ValueError(f"{name} is {read}; it must be finite")
    largest = largest if read.dtype == np.float64 else np.finfo(read.dtype).max
    if read.size == 0 or (-largest <= read.min() and read.max() <= largest):
        return read
    if not np.all(np.isfinite(read)):
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(read))[0])
        raise ValueError(f"{name} holds {read[place]} at index {place}; drop or fill such entries first")
    raise ValueError(f"{name} holds numbers beyond {LARGEST:g} in magnitude, whose squares overflow; rescale it first")


def refuse_foreign(name: str, array: Any) -> None:
    """Raise TypeError for containers that `np.asarray` converts wrongly: torch tensors, sparse and masked arrays.

    Every function that takes data calls this before `np.asarray`, directly or through `as_real_array`.
    """
    reason = None if type(array) is np.ndarray else _foreign(array, name.rpartition(": ")[2])
    if reason is not None:
        raise TypeError(f"{name} {reason}")


def _foreign(array: Any, short: str) -> str | None:
    """Return what a container is that `np.asarray` converts wrongly, with the remedy; None for others."""
    first, library = array, type(array).__module__
    while isinstance(first, list | tuple) and first:
        if isinstance(first[0], np.ma.MaskedArray) and any(map(np.ma.is_masked, first)):
            first = next(filter(np.ma.is_masked, first))
            break
        first = first[0]
    if any(base.__module__.partition(".")[0] == "torch" for base in type(first).__mro__):
        return (
            f"is a torch tensor, whose gradients would be lost silently: pass {short}.detach().cpu().numpy(), "
            "or use the layers of kernpool.torch"
        )
    if library.startswith("scipy.sparse"):
        return f"is a sparse matrix; kernpool needs dense arrays: pass {short}.toarray()"
    if isinstance(first, np.ma.MaskedArray) and np.ma.is_masked(first):
        return (
            "is a masked array, whose masked entries have no value; drop such rows from all arguments, as in "
            f"{short}[~numpy.ma.getmaskarray({short})], or fill them with {short}.filled(value)"
        )
    if library.partition(".")[0] == "pandas":
        types = array.dtypes if hasattr(array, "columns") else [getattr(array, "dtype", None)]
        if any(type(dtype).__name__ == "SparseDtype" for dtype in types):
            return f"has a sparse column; kernpool needs dense ones: pass {short}.sparse.to_dense()"
    return None


def as_array(name: str, array: Any) -> AnyArray:
    """Convert an array-like with `np.asarray`; raise TypeError for containers that `np.asarray` converts wrongly."""
    if type(array) is not np.ndarray:
        refuse_foreign(name, array)
        if type(array).__module__.partition(".")[0] == "polars":
            for dtype in getattr(array, "dtypes", ()):
                if dtype.is_temporal():
                    raise TypeError(dates_refused(name, f"a column of {dtype}"))
    return np.asarray(array)


def dates_refused(name: str, what: str) -> str:
    """Return the error message for dates or durations in an argument that takes only numbers."""
    short = name.rpartition(": ")[2]
    return (
        f"{name} must hold real numbers, got {what}; convert dates to days, as in "
        f"({short} - numpy.datetime64('1970-01-01')) / numpy.timedelta64(1, 'D'), and durations by "
        f"{short} / numpy.timedelta64(1, 'D')"
    )


def _objects_as_floats(name: str, read: AnyArray) -> AnyArray:
    # Object arrays of plain numbers are common (a table with one mixed column); strings must not turn into numbers.
    items = read.ravel()
    wrong = next((i for i, item in enumerate(items) if not isinstance(item, NUMBERS)), None)
    if wrong is None:
        try:
            return read.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} holds integers too large for a float; rescale it first") from None
    item, index = items[wrong], tuple(int(i) for i in np.unravel_index(wrong, read.shape))
    if is_missing(item):
        raise ValueError(f"{name} holds {item} at index {index}; drop or fill such entries first")
    if isinstance(item, date | timedelta | np.datetime64 | np.timedelta64):
        raise TypeError(dates_refused(name, f"{type(item).__name__} objects"))
    raise TypeError(
        f"{name} must hold real numbers, got an object array with {abbreviate(item):.60} "
        f"({type(item).__name__}) in it; encode or drop such columns first"
    )


def as_bandwidth(bandwidth: Any, n_columns: int | None) -> Array:
    """Validate a bandwidth, one positive number or one per column, and return it as an array.

    Examples
    --------
    >>> as_bandwidth(0.5, 2)
    array([0.5, 0.5])
    """
    if bandwidth is None or isinstance(bandwidth, str | bool):
        raise TypeError(
            f"bandwidth must be a positive number or one per column here, got {abbreviate(bandwidth)}; "
            "rules such as 'loo' and 'scott' belong to NadarayaWatsonRegressor(bandwidth=...)"
        )
    if type(bandwidth) is float and 1 / LARGEST <= bandwidth <= LARGEST:  # as nearly always
        return np.full(n_columns or 1, bandwidth)
    usual = type(bandwidth) is np.ndarray and bandwidth.dtype is FLOAT64 and bandwidth.size > 0
    usual = usual and bandwidth.min() >= 1 / LARGEST and bandwidth.max() <= LARGEST
    read = bandwidth if usual else as_real_array("bandwidth", _with_finite(bandwidth)).astype(np.float64)
    columns = max(1, read.size) if n_columns is None else n_columns
    if read.ndim > 1 or (read.ndim == 1 and read.size not in (1, columns)):
        found = "" if n_columns is None else f" for {n_columns} numeric column(s)"
        raise ValueError(f"bandwidth must be one number or one per column, got shape {read.shape}{found}")
    if not usual and np.any(read < 1 / LARGEST):
        raise ValueError(
            f"bandwidth must be positive, and at least {1 / LARGEST:g}, got {abbreviate(bandwidth)}; it is a length in "
            "the units of the keys, so rescale the columns if that is too large"
        )
    copied = np.empty(columns)  # loops are compiled once more for read-only arrays
    copied[:] = read
    return copied


def _with_finite(bandwidth: Any) -> Any:
    """Return bandwidths in which the finite number `INFINITE` (1e50) stands for infinity."""
    # Invalid entries are left for later checks.
    with suppress(TypeError, ValueError):
        infinite = np.isposinf(bandwidth)
        if np.any(infinite):
            return np.where(infinite, INFINITE, bandwidth)
    return bandwidth


def as_key_weight(key_weight: Any, shape: tuple[int, ...], name: str = "key_weight", row: str = "key") -> Array:
    """Validate the non-negative weights of the keys, and broadcast them to a given shape."""
    read = as_real_array(name, key_weight).astype(np.float64)
    try:
        weight = np.broadcast_to(read, shape)
    except ValueError:
        weight = None
    if weight is None or read.ndim == 0 or read.shape[-1] != shape[-1]:
        raise ValueError(f"{name} must have one entry per {row}, got shape {read.shape} for {row}s of shape {shape}")
    if np.any(read < 0):
        raise ValueError(f"{name} must not be negative, got {read.min()}; weights are frequencies")
    if not np.all(read.max(axis=-1) > 0):
        raise ValueError(
            f"{name} is zero for every {row}, so there is nothing to pool; give some {row} a positive weight"
        )
    return weight


COUNTED = "rows are counted from 0"


# Bytes of a file up to which pyarrow is given no threads, and text is read without it: its threads may still run when
# the process ends, which then aborts, and reading takes no longer than loading pyarrow does.
SMALL = 4 << 20


class TableError(ValueError):
    """Error for a table that cannot be read, or does not hold the data that a caller requires."""


def in_words(names: Sequence[str]) -> str:
    """Return the subject and verb of a sentence about some columns, such as "columns 'a', 'b' hold".

    Examples
    --------
    >>> in_words(["a"]), in_words(["a", "b"])
    ("column 'a' holds", "columns 'a', 'b' hold")
    """
    plural = len(names) > 1
    return f"column{'s' * plural} {', '.join(map(repr, names))} hold{'' if plural else 's'}"


def import_parquet() -> Any:
    """Import and return ``pyarrow.parquet``; if it is missing, raise ImportError that says how to install it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Parquet files need pyarrow, which is not installed; install it with: pip install "kernpool[arrow]"'
        ) from error
    return pyarrow.parquet


def is_real(kind: Any) -> bool:
    """Return whether an Arrow type is of real numbers: integers, floating point, decimals or booleans."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def arrow_numbers(cells: Any) -> AnyArray:
    """Convert an Arrow column of real numbers to an array: decimals to floats, integers unchanged if complete."""
    from pyarrow import types

    if types.is_decimal(cells.type):
        cells = cells.cast("string").cast("float64")  # as text, since Arrow's own conversion rounds twice
    return np.asarray(cells.to_numpy() if hasattr(cells, "chunks") else cells.to_numpy(zero_copy_only=False))


def unshared(array: AnyArray) -> AnyArray:
    """Return an array that the caller cannot modify: a copy, unless its memory is read-only (e.g. a memory map).

    A view that is read-only is not enough: pandas hands them out of frames that can be changed.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return array.copy() if isinstance(owner, np.ndarray) else array
