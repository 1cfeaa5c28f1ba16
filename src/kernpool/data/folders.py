"""Arrays in folders: `.npy` files whose type, shape and SHA-256 a header records. No pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.files import ModelFileError, sha256

REMEDY = "copy the whole folder again or fit the model again"


def write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    """Write an array, and return what a header should record of it."""
    if array.dtype.kind == "O":
        array = array.astype(str)
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(path)}


def read_array(path: Path, record: Any) -> NDArray[Any]:
    """Read an array, and be sure that it is what was recorded, before anything in it is interpreted or allocated."""
    if not _is_record(record):
        raise ModelFileError(f"{path.parent / 'model.json'} was edited: it does not describe {path.name}; {REMEDY}")
    if not path.is_file():
        raise ModelFileError(f"{path} is missing; {REMEDY}")
    if sha256(path) != record["sha256"]:
        raise ModelFileError(f"{path} was edited, truncated or damaged: it is not what model.json recorded; {REMEDY}")
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # reads the header alone, allocates nothing
        described = [mapped.dtype.str, list(mapped.shape)]  # which an archive of arrays has not
    except Exception as error:  # a damaged header can make NumPy raise nearly anything
        raise ModelFileError(f"{path} is no .npy file of numbers: {error}; {REMEDY}") from None
    if described != [record["dtype"], record["shape"]]:
        raise ModelFileError(f"{path} does not have the type and shape that model.json recorded; {REMEDY}")
    return np.array(mapped)


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and set(record) == {"dtype", "shape", "sha256"}
        and isinstance(record["dtype"], str)
        and isinstance(record["shape"], list)
        and all(type(length) is int for length in record["shape"])
        and isinstance(record["sha256"], str)
    )
