"""Ways to pool without the weights in memory: the engine's operator, torch's own attention, blocks of queries."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from kernpool.torch.dense import pool_densely, without_padding
from kernpool.torch.operator import pool_pairs
from kernpool.torch.request import Request
from kernpool.torch.sequences import Sequences
from kernpool.torch.similarities import BilinearSimilarity, DotProductSimilarity, KernelSimilarity

BLOCK_ELEMENTS = 1 << 21  # of an (L, S) table of a block of queries, 8 MiB in float32


def pool_by_engine(request: Request) -> Tensor:
    """Pool by the compiled loops of the engine, forward and backward.

    Parameters
    ----------
    request : Request
        With a `KernelSimilarity`, on the processor.

    Returns
    -------
    Tensor of shape (..., L, C)
        Zero where no key counts.
    """
    similarity, participants = cast(KernelSimilarity, request.similarity), request.participants
    query, key = similarity.points(request.query, request.key)
    pooled = pool_sequences(
        query,
        key,
        request.value,
        similarity.inverse_bandwidth,
        participants.attn_mask,
        participants.counts(),
        kernel=similarity.kernel_name,
        exclude_self=participants.exclude_self,
        degree=request.degree,
    )
    device = query.device.type
    if torch.is_autocast_enabled(device):  # as the matrix product of the dense layer would be
        return pooled.to(torch.get_autocast_dtype(device))
    return pooled


def pool_sequences(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    inverse_bandwidth: Tensor,
    mask: Tensor | None,
    counts: Tensor | None,
    *,
    kernel: str,
    exclude_self: bool = False,
    degree: int = 0,
) -> Tensor:
    """Broadcast tensors to sequences, and pool them by the operator.

    Parameters
    ----------
    query, key, value : Tensor of shape (..., L, E), (..., S, E), (..., S, C)
        On the processor; leading dimensions broadcast.
    inverse_bandwidth : Tensor of shape () or (E,)
        Factors of the columns.
    mask : Tensor of bool, optional
        Broadcasts to (..., L, S).
    counts : Tensor of int, optional
        How many of the first keys a query sees; broadcasts to (..., L).
    kernel : str
        Name of a kernel.
    exclude_self, degree
        As in `attention_pool`.

    Returns
    -------
    Tensor of shape (..., L, C)
        Zero where no key counts.
    """
    leading = [tensor.shape[:-2] for tensor in (query, key, value)] + ([] if mask is None else [mask.shape[:-2]])
    batch = torch.broadcast_shapes(*leading)
    rows, keys = query.shape[-2], key.shape[-2]
    if not (rows and keys and value.shape[-1] and all(batch)):
        return _nothing(query, key, value, inverse_bandwidth)
    if not query.shape[-1]:  # one column in which all are alike
        query, key = pad(query, (0, 1)), pad(key, (0, 1))
    which = None
    if mask is not None:  # as small as it came, and which of its tables is that of a sequence
        tables = mask.shape[:-2].numel()
        which = torch.arange(tables).reshape(mask.shape[:-2]).expand(batch).reshape(-1)
        mask = mask.reshape(tables, *mask.shape[-2:]).expand(tables, mask.shape[-2], keys)
    if counts is not None:
        counts = counts.expand(*batch, rows).reshape(-1, rows)
    sequences = Sequences(
        _as_sequences(query, batch),
        _as_sequences(key, batch),
        _as_sequences(value, batch),
        inverse_bandwidth.expand(query.shape[-1]),
        counts,
        mask,
        which,
        kernel,
        exclude_self,
        degree,
    )
    pooled: Tensor = pool_pairs(*sequences)[0]
    return pooled.reshape(*batch, rows, value.shape[-1])


def _as_sequences(tensor: Tensor, batch: torch.Size, *shape: int) -> Tensor:
    """Broadcast the leading dimensions, and make one of them."""
    shape = shape or tuple(tensor.shape[-2:])
    return tensor.expand(*batch, *shape).reshape(batch.numel(), *shape)


def _nothing(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Tensor:
    """Return zeros that are part of the graph: gradients are zeros and not missing."""
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    none = sum(tensor.reshape(-1)[:0].sum() for tensor in (query, key, value, *others))
    return value.new_zeros(*batch, query.shape[-2], value.shape[-1]) + torch.as_tensor(none).to(value.dtype)


def pool_by_attention(request: Request) -> Tensor:
    """Pool by torch's own attention, which streams keys where queries, keys and values have equally many columns.

    Parameters
    ----------
    request : Request
        With a `DotProductSimilarity` or a `BilinearSimilarity`, and neither lengths nor leave-one-out.

    Returns
    -------
    Tensor of shape (..., L, C)
        Zero where no key counts.
    """
    query, key, value, participants = request.query, request.key, request.value, request.participants
    similarity = cast(DotProductSimilarity | BilinearSimilarity, request.similarity)
    mask, is_causal = participants.attn_mask, participants.is_causal
    allowed = None if mask is None else participants.mask()
    if mask is not None and allowed is not None:  # torch wants all conditions in one mask
        query, key, value = without_padding(query, key, value, allowed)
        mask = mask.masked_fill(~allowed, -torch.inf) if participants.adds_to_logits else allowed
        is_causal = False
    query, key = similarity.points(query, key)
    scale = 1.0 if isinstance(similarity, BilinearSimilarity) else 1.0 / math.sqrt(max(query.shape[-1], 1))
    leading = [tensor.shape[:-2] for tensor in (query, key, value)] + ([] if mask is None else [mask.shape[:-2]])
    batch = torch.broadcast_shapes(*leading)
    columns, rows = value.shape[-1], query.shape[-2]
    if not (rows and key.shape[-2] and columns and all(batch)):
        return _nothing(query, key, value)
    if is_causal:  # keys that nobody sees may hold anything
        key, value = key[..., :rows, :], value[..., :rows, :]
    more = max(columns, query.shape[-1])
    # Columns of zeros change neither products nor sums, and equal widths are what torch streams.
    tensors = [
        _as_sequences(pad(tensor, (0, more - tensor.shape[-1])), batch)[:, None] for tensor in (query, key, value)
    ]
    if mask is not None:
        mask = _as_sequences(mask if mask.dtype == torch.bool else mask.to(query.dtype), batch, rows, key.shape[-2])
        mask = mask[:, None]
    wide_query, wide_key, wide_value = tensors
    pooled = scaled_dot_product_attention(
        wide_query, wide_key, wide_value, attn_mask=mask, is_causal=is_causal, scale=scale
    )
    # On the way through torch's loops a NaN among the keys is lost.
    wrong = ~(torch.isfinite(query).all(-1, keepdim=True) & torch.isfinite(key).all(-1).all(-1)[..., None, None])
    return pooled.reshape(*batch, rows, more)[..., :columns].masked_fill(wrong, torch.nan)


def pool_in_blocks(request: Request) -> Tensor:
    """Pool some queries at a time, whose weights are computed again for the gradient.

    Parameters
    ----------
    request : Request
        Of any similarity, on any device.

    Returns
    -------
    Tensor of shape (..., L, C)
        Zero where no key counts.
    """

    def pool_some(queries: slice) -> Tensor:
        return pool_densely(request, queries)[0]

    rows, keys_at_once = request.query.shape[-2], request.key.shape[-2] * request.participants.batch.numel()
    size = max(1, BLOCK_ELEMENTS // max(1, keys_at_once))
    blocks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    return torch.cat([checkpoint(pool_some, block, use_reentrant=False) for block in blocks], dim=-2)
