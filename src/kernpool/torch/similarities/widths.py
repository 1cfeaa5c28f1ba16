"""Bandwidths and sizes as callers give them to a similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from kernpool.data.checks import refuse_foreign
from kernpool.execution.messages import abbreviate, check_choice
from kernpool.torch.masks import check_tensors

Form = Literal["shared", "per_feature", "linear"]


def read_bandwidth(
    bandwidth: float | Sequence[float], form: str, size: int | None, output_size: int | None
) -> tuple[float | list[float], int | None, int | None]:
    """Read the bandwidth that a similarity starts with.

    Parameters
    ----------
    bandwidth : float or sequence of float
        One number, or one per feature unless the form is "shared".
    form : {"shared", "per_feature", "linear"}
        What the bandwidths are for.
    size, output_size : int or None
        Number of features, and of rows of the linear map.

    Returns
    -------
    bandwidth : float or list of float
        A number if shared, a list if not.
    size, output_size : int or None
        Worked out from the bandwidths where they were not given; None where they are not needed.

    Raises
    ------
    ValueError
        If a bandwidth is not positive and finite, a size below one, the form unknown, or they disagree.
    TypeError
        If a bandwidth is no number, or masked.

    Examples
    --------
    >>> read_bandwidth(0.5, "linear", 2, None)
    ([0.5, 0.5], 2, 2)
    """
    check_choice("form", form, get_args(Form))
    for name, number in (("size", size), ("output_size", output_size)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    if not isinstance(bandwidth, Tensor):
        refuse_foreign("bandwidth", bandwidth)
    try:
        bandwidths = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"bandwidth must be a positive number, or one per feature, got {abbreviate(bandwidth)}"
        ) from None
    if bandwidths.ndim > 1 or bandwidths.size == 0 or (bandwidths.ndim == 1 and form == "shared"):
        raise ValueError(
            f"bandwidth must be one number, or with form='per_feature' or 'linear' one per feature, "
            f"got {abbreviate(bandwidth)} "
            f"with form={form!r}"
        )
    if not np.all(np.isfinite(bandwidths) & (bandwidths > 0)):
        raise ValueError(f"bandwidth must be positive and finite, got {abbreviate(bandwidth)}")
    if output_size is not None and form != "linear":
        raise ValueError(f"output_size={output_size} belongs to form='linear', got form={form!r}")
    if form == "shared":
        return float(bandwidths), size, None
    features = size if bandwidths.ndim == 0 else len(bandwidths)
    if features is None:
        raise ValueError(f"form={form!r} needs size=, the number of features, or a bandwidth for each of them")
    if size is not None and features != size:
        raise ValueError(f"bandwidth has {features} entries for size={size}; give one number, or one per feature")
    if output_size is not None and output_size > features:
        # More rows could not measure another distance, and rows of zeros would never learn.
        raise ValueError(f"output_size must be at most the number of features, {features}, got {output_size}")
    rows = (output_size or features) if form == "linear" else None
    return [float(h) for h in np.broadcast_to(bandwidths, features)], features, rows


def check_sizes(query: Tensor, key: Tensor, query_size: int | None = None, key_size: int | None = None) -> None:
    """Refuse queries and keys of other sizes than a similarity takes.

    Parameters
    ----------
    query, key : Tensor
        Of shape (..., rows, size).
    query_size, key_size : int or None
        The sizes that are expected; None is that of the queries.

    Raises
    ------
    ValueError
        If a last dimension differs.
    TypeError
        If one of them is no tensor, nested or sparse.
    """
    check_tensors(query=query, key=key)
    query_size = query.shape[-1] if query_size is None else query_size
    key_size = query_size if key_size is None else key_size
    if query.shape[-1] != query_size or key.shape[-1] != key_size:
        raise ValueError(
            f"expected queries of size {query_size} and keys of size {key_size} in the last dimension, "
            f"got shapes {tuple(query.shape)} and {tuple(key.shape)}"
        )
