"""Widths and sizes as callers give them to a similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from torch import Tensor

Form = Literal["shared", "per_feature", "linear"]


def read_widths(
    width: float | Sequence[float], form: str, size: int | None, output_size: int | None
) -> tuple[float | list[float], int | None, int | None]:
    """Read the widths that a similarity starts with.

    Parameters
    ----------
    width : float or sequence of float
        One number, or one per feature unless the form is "shared".
    form : {"shared", "per_feature", "linear"}
        What the widths are for.
    size, output_size : int or None
        Number of features, and of rows of the linear map.

    Returns
    -------
    width : float or list of float
        A number if shared, a list if not.
    size, output_size : int or None
        Worked out from the widths where they were not given; None where they are not needed.

    Raises
    ------
    ValueError
        If a width is not positive and finite, a size below one, the form unknown, or they disagree.
    TypeError
        If a width is no number.

    Examples
    --------
    >>> read_widths(0.5, "linear", 2, None)
    ([0.5, 0.5], 2, 2)
    """
    if form not in get_args(Form):
        raise ValueError(f"form must be 'shared', 'per_feature' or 'linear', got {form!r}")
    for name, number in (("size", size), ("output_size", output_size)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    try:
        widths = np.asarray(width, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"width must be a positive number, or one per feature, got {width!r}") from None
    if widths.ndim > 1 or widths.size == 0 or (widths.ndim == 1 and form == "shared"):
        raise ValueError(
            f"width must be one number, or with form='per_feature' or 'linear' one per feature, got {width!r} "
            f"with form={form!r}"
        )
    if not np.all(np.isfinite(widths) & (widths > 0)):
        raise ValueError(f"width must be positive and finite, got {width}")
    if output_size is not None and form != "linear":
        raise ValueError(f"output_size={output_size} belongs to form='linear', got form={form!r}")
    if form == "shared":
        return float(widths), size, None
    features = size if widths.ndim == 0 else len(widths)
    if features is None:
        raise ValueError(f"form={form!r} needs size=, the number of features, or a width for each of them")
    if size is not None and features != size:
        raise ValueError(f"width has {features} entries for size={size}; give one number, or one per feature")
    if output_size is not None and output_size > features:
        # More rows could not measure another distance, and rows of zeros would never learn.
        raise ValueError(f"output_size must be at most the number of features, {features}, got {output_size}")
    rows = (output_size or features) if form == "linear" else None
    return [float(h) for h in np.broadcast_to(widths, features)], features, rows


def check_sizes(query: Tensor, key: Tensor, query_size: int, key_size: int) -> None:
    """Refuse queries and keys of other sizes than a similarity takes.

    Parameters
    ----------
    query, key : Tensor
        Of shape (..., rows, size).
    query_size, key_size : int
        The sizes that are expected.

    Raises
    ------
    ValueError
        If a last dimension differs.
    """
    if query.shape[-1] != query_size or key.shape[-1] != key_size:
        raise ValueError(
            f"expected queries of size {query_size} and keys of size {key_size} in the last dimension, "
            f"got shapes {tuple(query.shape)} and {tuple(key.shape)}"
        )
