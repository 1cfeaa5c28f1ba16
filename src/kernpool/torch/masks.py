"""Input checks, masks and masked softmax for attention pooling.

Checked tensors have shapes that fit together, and half precision becomes single, since its squares overflow at 256
bandwidths. `masked_softmax` is the softmax over the valid keys only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernpool.data.array_validation import refuse_foreign


def check_tensors(**tensors: Tensor) -> None:
    """Raise TypeError unless all arguments are dense tensors."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            found = f"{type(tensor).__name__}; use torch.as_tensor({name})"
        elif tensor.is_nested:
            found = (
                f"a nested tensor; pad it with torch.nested.to_padded_tensor({name}, 0.0), and pass the lengths of the "
                "sequences as valid_lens"
            )
        elif tensor.layout is not torch.strided:
            found = f"the layout {tensor.layout}; use {name}.to_dense()"
        else:
            continue
        raise TypeError(f"{name} must be a dense tensor, got {found}")


def as_tensor(name: str, given: Any, device: torch.device | None = None) -> Tensor:
    """Convert lengths or a mask, which may be lists or arrays, to a tensor."""
    if isinstance(given, np.ma.MaskedArray):
        refuse_foreign(name, given)
    tensor = torch.as_tensor(given, device=device)
    check_tensors(**{name: tensor})
    return tensor


def check_inputs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> torch.Size:
    """Validate the inputs of `attention_pool` and return the shape (..., L, S) of its logits."""
    if attn_mask is None and _fit_at_once(query, key, value):
        return torch.Size((*query.shape[:-1], key.shape[-2]))
    _check_types({"query": query, "key": key, "value": value}, attn_mask)
    fits = min(query.dim(), key.dim(), value.dim()) > 1 and key.shape[-2] == value.shape[-2]
    try:
        broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            "query, key and value must have shapes (..., L, Eq), (..., S, Ek) and (..., S, Ev), whose leading "
            f"dimensions broadcast, got {shapes_of(query, key, value)}; a single column is x[:, None]"
        )
    return torch.Size([*broadcast(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2]])


def shapes_of(*tensors: Tensor) -> str:
    """Return the shapes of tensors as text."""
    return ", ".join(str(tuple(tensor.shape)) for tensor in tensors)


def broadcast(*shapes: torch.Size) -> torch.Size:
    """Return the shape that shapes broadcast to; equal ones at once, since torch takes 10 microseconds for that."""
    if all(shape == shapes[0] for shape in shapes[1:]):
        return shapes[0]
    joint: torch.Size = torch.broadcast_shapes(*shapes)
    return joint


def _fit_at_once(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether three plain tensors fit without broadcasting, in 2 microseconds; if not, messages say why."""
    if not (type(query) is type(key) is type(value) is Tensor) or query.is_nested or key.is_nested or value.is_nested:
        return False
    return (
        query.dim() == key.dim() > 1
        and query.shape[:-2] == key.shape[:-2]
        and key.shape[:-1] == value.shape[:-1]
        and query.is_floating_point()
        and query.dtype == key.dtype == value.dtype
        and query.device == key.device == value.device
        and query.layout == key.layout == value.layout == torch.strided
    )


def _check_types(named: dict[str, Tensor], attn_mask: Tensor | None) -> None:
    tensors = named if attn_mask is None else named | {"attn_mask": attn_mask}
    check_tensors(**tensors)
    if attn_mask is not None:
        _check_mask_type("attn_mask", attn_mask, "takes part")
    if len({tensor.device for tensor in tensors.values()}) > 1:
        found = ", ".join(f"{name} on {tensor.device}" for name, tensor in tensors.items())
        raise ValueError(f"all tensors must be on one device, got {found}; move them with .to(device)")
    # Automatic mixed precision hands over what it made half next to what it left alone, and casts in the products.
    device = named["query"].device.type
    mixed = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    are_floating = all(tensor.is_floating_point() for tensor in named.values())
    if not are_floating or (not mixed and len({tensor.dtype for tensor in named.values()}) > 1):
        found = ", ".join(f"{name} in {tensor.dtype}" for name, tensor in named.items())
        raise TypeError(
            f"query, key and value must have one floating-point dtype, got {found}; convert them with .to(dtype)"
        )


def _check_mask_type(name: str, mask: Tensor, true: str) -> None:
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean (True {true}) or floating point (added to the logits), got {mask.dtype}; use "
            f"{name}.bool()"
        )


def check_mask_shape(attn_mask: Tensor, shape: torch.Size) -> None:
    """Raise ValueError if an attention mask does not broadcast to the logits."""
    # several mask rows for a single query do not broadcast: they would make up queries
    try:
        fits = torch.broadcast_shapes(attn_mask.shape, shape)[-2:] == shape[-2:]
    except RuntimeError:
        fits = False
    if not fits:
        per_sequence = len(shape) > 2 and tuple(attn_mask.shape) == (shape[0], shape[-1])
        hint = f"; one mask per sequence is attn_mask[:{', None' * (len(shape) - 2)}, :]" if per_sequence else ""
        raise ValueError(f"attn_mask of shape {tuple(attn_mask.shape)} does not broadcast to {tuple(shape)}{hint}")


def with_key_padding(attn_mask: Tensor | None, key_padding_mask: Tensor, shape: torch.Size) -> Tensor:
    """Combine an attention mask with torch's padding mask, where True or minus infinity leaves a key out."""
    check_tensors(key_padding_mask=key_padding_mask)
    _check_mask_type("key_padding_mask", key_padding_mask, "is ignored")
    expected = (shape[0], shape[-1]) if len(shape) > 2 else (shape[-1],)
    if tuple(key_padding_mask.shape) != expected:
        raise ValueError(
            f"key_padding_mask must have shape {expected}, one row per sequence, got {tuple(key_padding_mask.shape)}; "
            "pass masks of other shapes as attn_mask"
        )
    padding = key_padding_mask.reshape(*expected[:-1], *[1] * (len(shape) - len(expected)), expected[-1])
    if padding.is_floating_point():
        if attn_mask is None:
            return padding
        added = attn_mask if attn_mask.is_floating_point() else torch.where(attn_mask, 0.0, -torch.inf)
        return added + padding
    if attn_mask is None:
        return ~padding
    return attn_mask.masked_fill(padding, -torch.inf) if attn_mask.is_floating_point() else attn_mask & ~padding


def with_repeated_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat the heads of keys and values, dimension -3, for queries of more heads: grouped-query attention."""
    # each head of keys and values serves H / G heads of queries that follow each other
    if min(query.dim(), key.dim(), value.dim()) > 2:
        heads, shared = query.shape[-3], (key.shape[-3], value.shape[-3])
        if all(number and heads % number == 0 for number in shared):
            key, value = (tensor.repeat_interleave(heads // tensor.shape[-3], -3) for tensor in (key, value))
            return key, value
    raise ValueError(
        "enable_gqa=True needs shapes (..., heads, rows, columns), where the heads of the queries are a multiple of "
        f"the others', got {shapes_of(query, key, value)}"
    )


def without_infinity(rows: Tensor) -> Tensor:
    """Replace infinity in queries or keys by NaN, so that it is not silently treated as a distant point."""
    return rows.masked_fill(torch.isinf(rows), torch.nan)


def at_least_single(tensor: Tensor) -> Tensor:
    """Convert a half-precision tensor to float32; return other dtypes unchanged."""
    # squares in half precision overflow at 256 bandwidths
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return a context manager that disables automatic mixed precision on a device."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def valid_lengths(valid_lens: Tensor, shape: torch.Size) -> Tensor:
    """Validate `valid_lens`, the numbers of valid keys per sequence or per query, and return them as a tensor."""
    valid_lens = as_tensor("valid_lens", valid_lens)
    if valid_lens.is_floating_point() or valid_lens.is_complex() or valid_lens.dtype == torch.bool:
        remedy = "pass a boolean mask as attn_mask" if valid_lens.dtype == torch.bool else "use valid_lens.long()"
        raise ValueError(f"valid_lens must be integers, got {valid_lens.dtype}; {remedy}")
    per_query, found = tuple(shape[:-1]), tuple(valid_lens.shape)
    lengths = valid_lens if len(found) == len(per_query) else valid_lens[..., None]
    if lengths.dim() != len(per_query) or any(
        size not in (1, full) for size, full in zip(lengths.shape, per_query, strict=True)
    ):
        missing = len(per_query) - 1 - len(found)
        alike = missing > 0 and found and found == per_query[: len(found)]
        hint = f"; one length for all heads of a sequence is valid_lens[:{', None' * missing}]" if alike else ""
        raise ValueError(
            f"valid_lens must have shape {per_query[:-1]} (one length per sequence) or {per_query} (one per query), "
            f"got {found}{hint}"
        )
    # This reads the device: impossible under torch.func.vmap, and skipped in compilation and on "meta".
    if not (torch.compiler.is_compiling() or valid_lens.is_meta or valid_lens.numel() == 0):
        keys = shape[-1]
        for wrong in map(int, torch.aminmax(valid_lens)):
            if not 0 <= wrong <= keys:
                raise ValueError(f"valid_lens must be between 0 and the number of keys, {keys}, got {wrong}")
    return lengths


def masked_softmax(logits: Tensor, valid: Tensor | None = None) -> Tensor:
    r"""Compute the softmax over the last axis, restricted to valid entries.

    .. math:: \alpha_j = [j \text{ valid}]\, e^{s_j} \Big/ \sum_{l \text{ valid}} e^{s_l}

    Parameters
    ----------
    logits : Tensor of shape (..., L, S)
        Scores of S keys for L queries. Never changed.
    valid : Tensor, optional
        Which entries count: a boolean mask that broadcasts to the logits, True where valid; or integer *lengths*, one
        per sequence, shape (...), or one per query, shape (..., L), as `attention_pool` takes them. None means all.

    Returns
    -------
    Tensor of shape (..., L, S)
        Each row sums to one; a row without a valid entry, or with no logit above minus infinity, is zero, with zero
        gradient.

    Raises
    ------
    ValueError
        If `valid` fits the logits in neither way.
    TypeError
        If one of them is a nested or a sparse tensor.

    Notes
    -----
    Invalid entries become minus infinity, not a large negative number: with the widespread -1e6 a fully masked row
    attends to the padding, and in half precision it is NaN. NaN in an invalid entry does not spread.

    Examples
    --------
    >>> import torch
    >>> masked_softmax(torch.zeros(2, 1, 4), torch.tensor([2, 0])).tolist()
    [[[0.5, 0.5, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]]]
    """
    weights, empty = softmax_and_empty(logits, valid)
    return weights.masked_fill(empty, 0.0)


def softmax_and_empty(logits: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute `masked_softmax`, but with equal weights in rows without a valid entry; return these rows too."""
    # to mask what is computed from the weights takes less memory than to mask the weights
    check_tensors(logits=logits)
    if valid is not None:
        logits = logits.masked_fill(~_as_mask(as_tensor("valid", valid, logits.device), logits.shape), -torch.inf)
    if logits.shape[-1] == 0:
        return torch.softmax(logits, dim=-1), logits.new_ones((*logits.shape[:-1], 1), dtype=torch.bool)
    empty = torch.isneginf(logits.detach().amax(dim=-1, keepdim=True))
    # Such a row gets finite logits: softmax of minus infinities is NaN, and a NaN that is masked only afterwards still
    # spoils the gradient.
    return torch.softmax(logits.masked_fill(empty, 0.0), dim=-1), empty


def _as_mask(valid: Tensor, shape: torch.Size) -> Tensor:
    if valid.dtype != torch.bool:
        return torch.arange(shape[-1], device=valid.device) < valid_lengths(valid, shape)[..., None]
    try:
        return valid.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"a boolean mask must broadcast to the logits' shape {tuple(shape)}, got {tuple(valid.shape)}"
        ) from None
