"""What the layers are given: tensors that fit together, in a precision that squares do not overflow."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernpool.data.checks import refuse_foreign


def check_tensors(**tensors: Tensor) -> None:
    """Refuse what is no tensor, and tensors whose rows are not all there in one table.

    Parameters
    ----------
    **tensors : Tensor
        By the names that messages call them.

    Raises
    ------
    TypeError
        If one is no tensor, nested or sparse.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}; use torch.as_tensor({name})")
        if tensor.is_nested:
            raise TypeError(
                f"{name} must be a tensor with one shape for all sequences, got a nested tensor; pad it with "
                f"torch.nested.to_padded_tensor({name}, 0.0), and pass the lengths of the sequences as valid_lens"
            )
        if tensor.layout is not torch.strided:
            raise TypeError(f"{name} must be a dense tensor, got the layout {tensor.layout}; use {name}.to_dense()")


def as_tensor(name: str, given: Any, device: torch.device | None = None) -> Tensor:
    """Return a tensor of what a caller passed as lengths or a mask, where lists and arrays will do.

    Parameters
    ----------
    name : str
        What messages call it.
    given : array_like or Tensor
        What came.
    device : torch.device, optional
        Where the tensor is to be.

    Raises
    ------
    TypeError
        If it is a masked array, whose masked entries have no value; or a nested or sparse tensor.
    """
    if isinstance(given, np.ma.MaskedArray):
        refuse_foreign(name, given)
    tensor = torch.as_tensor(given, device=device)
    check_tensors(**{name: tensor})
    return tensor


def check_inputs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> torch.Size:
    """Check what `attention_pool` is given, and return the shape (..., L, S) of its logits.

    Parameters
    ----------
    query, key, value : Tensor
        Of shapes (..., L, Eq), (..., S, Ek), (..., S, Ev), with leading dimensions that broadcast.
    attn_mask : Tensor or None
        Of any shape; only its type and its device are looked at.

    Returns
    -------
    torch.Size
        Leading dimensions of queries and keys, broadcast, then L and S.

    Raises
    ------
    ValueError
        If shapes do not fit, or devices differ.
    TypeError
        If something is no dense tensor, holds integers, or the types of query, key and value differ.
    """
    named = {"query": query, "key": key, "value": value}
    _check_types(named, attn_mask)
    if min(tensor.dim() for tensor in named.values()) < 2:
        raise ValueError(
            "query, key and value must have shape (..., rows, columns), got "
            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}; a single column is x[:, None]"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key has {key.shape[-2]} rows and value has {value.shape[-2]}; each key needs its value")
    try:
        torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in named.values()))
    except RuntimeError:
        raise ValueError(
            "leading dimensions of query, key and value must broadcast, got shapes "
            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        ) from None
    return torch.Size([*torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2]])


def _check_types(named: dict[str, Tensor], attn_mask: Tensor | None) -> None:
    tensors = named if attn_mask is None else named | {"attn_mask": attn_mask}
    check_tensors(**tensors)
    for name, tensor in named.items():
        if not tensor.is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {tensor.dtype}; use {name}.float()")
    if attn_mask is not None and attn_mask.dtype != torch.bool and not attn_mask.is_floating_point():
        raise TypeError(
            f"attn_mask must be boolean (True takes part) or floating point (added to the logits), got "
            f"{attn_mask.dtype}; use attn_mask.bool()"
        )
    if len({tensor.device for tensor in tensors.values()}) > 1:
        found = ", ".join(f"{name} on {tensor.device}" for name, tensor in tensors.items())
        raise ValueError(f"all tensors must be on one device, got {found}; move them with .to(device)")
    if len({tensor.dtype for tensor in named.values()}) > 1:
        # Automatic mixed precision hands over what it made half next to what it left alone, and casts in the products.
        device = named["query"].device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            return
        found = ", ".join(f"{name} in {tensor.dtype}" for name, tensor in named.items())
        raise TypeError(f"query, key and value must have one dtype, got {found}; convert them with .to(dtype)")


def check_mask_shape(attn_mask: Tensor, shape: torch.Size) -> None:
    """Refuse a mask that does not broadcast to the logits.

    Parameters
    ----------
    attn_mask : Tensor
        Its leading dimensions may be more than those of the logits, its last two are those of the logits, or one.
    shape : torch.Size
        Shape (..., L, S) of the logits.

    Raises
    ------
    ValueError
        If it does not broadcast. A mask of several rows for a single query does not: it would make up queries.
    """
    try:
        fits = torch.broadcast_shapes(attn_mask.shape, shape)[-2:] == shape[-2:]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"attn_mask of shape {tuple(attn_mask.shape)} does not broadcast to {tuple(shape)}")


def check_dropout(probability: float) -> None:
    """Refuse what is no probability.

    Parameters
    ----------
    probability : float
        What the caller passed as dropout.

    Raises
    ------
    ValueError
        If it is not between 0 and 1.
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"dropout must be a probability between 0 and 1, got {probability}")


def without_infinity(rows: Tensor) -> Tensor:
    """Return queries or keys with NaN for infinity, which would count as far away, or as unlike, without a word.

    Parameters
    ----------
    rows : Tensor of shape (..., rows, columns)
        On any device; nothing waits for it.

    Returns
    -------
    Tensor
        What takes part spreads from here, and padding is left out later.
    """
    return rows.masked_fill(torch.isinf(rows), torch.nan)


def at_least_single(tensor: Tensor) -> Tensor:
    """Return half precision as single, since its squares overflow at 256 bandwidths; anything else as it is.

    Parameters
    ----------
    tensor : Tensor
        Of any floating-point type.

    Returns
    -------
    Tensor
        Float32 or float64.
    """
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Switch automatic mixed precision off for a product that needs its digits.

    Parameters
    ----------
    device : torch.device
        Where the product runs. The device "meta" knows no mixed precision.

    Returns
    -------
    context manager
        For a ``with`` statement.
    """
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
