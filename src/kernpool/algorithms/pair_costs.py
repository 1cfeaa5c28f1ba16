"""What a pair costs on this class of processor: tables that `benchmarks/constants.py` has measured and written.

Loops of AVX-512 and of AVX2 differ by up to two, not by the same factor everywhere, so each class has its tables. They
say nanoseconds on one thread, for numbers of columns between which costs are straight lines.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from kernpool.execution.processor import vector_bits

FILE = "pair_costs.json"


@cache
def _tables() -> dict[str, Any]:
    stored = json.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
    tables: dict[str, Any] = stored[str(vector_bits())]["nanoseconds"]
    return tables


def pair_cost(loops: str, kernel: str, columns: int) -> float:
    """Return the seconds of a pair.

    Parameters
    ----------
    loops : {"radial", "radial, float32", "product", "staged", "degree 1", "tree"}
        By which loops.
    kernel : str
        Its name; one that was not measured costs what the slowest does.
    columns : int
        How many.

    Returns
    -------
    float
        On one thread.

    Examples
    --------
    >>> pair_cost("radial", "gaussian", 1) < pair_cost("radial", "gaussian", 64) < pair_cost("radial", "gaussian", 640)
    True
    """
    table = _tables()[loops]
    measured: list[int] = table["columns"]
    cost: dict[str, list[float]] = table["kernels"]
    times = cost.get(kernel) or [max(each) for each in zip(*cost.values(), strict=True)]
    if columns <= measured[-1]:
        return 1e-9 * float(np.interp(columns, measured, times))
    return 1e-9 * times[-1] * columns / measured[-1]
