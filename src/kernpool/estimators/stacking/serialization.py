"""Contents of model files of stacked estimators: the local member as it saves itself, kernel and metric of the ridge.

Everything else follows from these without a search: loading solves the kernel ridge once, and finds the same weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kernpool.data.model_format import Record, check_array
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.stacking.kernel_ridge import Array, Codes, KernelRidge, RidgeKernel, fit_kernel_ridge
from kernpool.estimators.stacking.stack import FittedStack

TRANSFORM, LANDMARKS = "transform_", "landmarks_"
KERNELS = ("laplace", "gaussian")
Local = TypeVar("Local", bound=KernelSmoother)


def stack_record(stack: FittedStack, parameters: dict[str, object]) -> Record:
    """Convert a fitted stack to a `Record` of JSON and arrays."""
    local, ridge = stack.local._to_record(), stack.ridge
    arrays = dict(local.arrays) | {TRANSFORM: ridge.transform}
    if ridge.landmark_rows is not None:
        arrays[LANDMARKS] = ridge.landmark_rows
    header = {
        "parameters": parameters,
        "local": {"estimator": type(stack.local).__name__, **local.header},
        "length": ridge.kernel.length,
    }
    return Record(header, arrays)


def restored_stack(record: Record, kinds: tuple[type[Local], ...], parameters: set[str]) -> FittedStack:
    """Rebuild a stack from an untrusted record; raise ValueError or ModelFileError if a part of it is invalid.

    Parameters
    ----------
    record : Record
        As read.
    kinds : tuple of type
        Classes that the local member may be of.
    parameters : set of str
        Names of the parameters of the model.
    """
    header, arrays = record.header, dict(record.arrays)
    if set(header) != {"parameters", "local", "length"} or set(header["parameters"]) != parameters:
        raise ValueError("it does not have the entries of a stacked model")
    found, length = dict(header["local"]), header["length"]
    name = found.pop("estimator", None)
    kind = next((kind for kind in kinds if kind.__name__ == name), None)
    if kind is None or "chunks" in found:
        raise ValueError("its local member is no estimator of rows in memory")
    if type(length) is not float or not 0.0 < length < np.inf:
        raise ValueError("length must be a positive number")
    transform, landmarks = arrays.pop(TRANSFORM), arrays.pop(LANDMARKS, None)
    local = kind._from_record(replace(record, header=found, arrays=arrays))
    kernel = RidgeKernel(header["parameters"]["kernel"], length)

    def fit(columns: Array, value: Array, weight: Array, group: Codes | None) -> KernelRidge:
        check_array(TRANSFORM, transform, "f", (columns.shape[1], *transform.shape[1:2]))
        if not np.all(np.isfinite(transform)):
            raise ValueError(f"{TRANSFORM} is not finite")
        _check_landmarks(landmarks, len(columns))
        return fit_kernel_ridge([kernel], columns, value, weight, group, transform=transform, landmarks=landmarks)

    return FittedStack.of(local, fit)


def _check_landmarks(landmarks: NDArray[np.intp] | None, rows: int) -> None:
    if landmarks is None:
        return
    check_array(LANDMARKS, landmarks, "i", (len(landmarks),))
    if not (landmarks.min() >= 0 and landmarks.max() < rows and len(np.unique(landmarks)) == len(landmarks)):
        raise ValueError(f"{LANDMARKS} does not hold numbers of different rows")
