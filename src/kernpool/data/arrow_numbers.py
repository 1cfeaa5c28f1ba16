"""Columns of Arrow as arrays of numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_real(kind: Any) -> bool:
    """Return whether an Arrow type is of real numbers: integers, floating point, decimals or booleans."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def arrow_numbers(cells: Any) -> NDArray[Any]:
    """Convert an Arrow column of real numbers to an array: decimals to floats, integers unchanged if complete."""
    from pyarrow import types

    if types.is_decimal(cells.type):
        cells = cells.cast("string").cast("float64")  # as text, since Arrow's own conversion rounds twice
    return np.asarray(cells.to_numpy() if hasattr(cells, "chunks") else cells.to_numpy(zero_copy_only=False))
