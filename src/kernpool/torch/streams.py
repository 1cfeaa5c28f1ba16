"""Ways to pool without the weights in memory: the engine's operator, torch's own attention, blocks of queries."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from kernpool.torch.operator import pool_pairs

BLOCK_ELEMENTS = 1 << 21  # of an (L, S) table of a block of queries, 8 MiB in float32


def pool_by_engine(
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
    """Pool by the compiled loops of the engine, forward and backward.

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
    tensors = [_as_sequences(tensor, batch) for tensor in (query, key, value)]
    which = None
    if mask is not None:  # as small as it came, and which of its tables is that of a sequence
        tables = mask.shape[:-2].numel()
        which = torch.arange(tables).reshape(mask.shape[:-2]).expand(batch).reshape(-1)
        mask = mask.reshape(tables, *mask.shape[-2:]).expand(tables, mask.shape[-2], keys)
    if counts is not None:
        counts = counts.expand(*batch, rows).reshape(-1, rows)
    inverse = inverse_bandwidth.expand(query.shape[-1])
    pooled: Tensor = pool_pairs(*tensors, inverse, counts, mask, which, kernel, exclude_self, degree)[0]
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


def pool_by_dot_product(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    """Pool by torch's own attention, which streams keys where queries, keys and values have equally many columns.

    Parameters
    ----------
    query, key, value : Tensor of shape (..., L, E), (..., S, E), (..., S, C)
        Leading dimensions broadcast.
    mask : Tensor, optional
        As for `scaled_dot_product_attention`.
    is_causal : bool
        As there.
    scale : float
        On the dot product.

    Returns
    -------
    Tensor of shape (..., L, C)
        Zero where no key counts.
    """
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


def pool_in_blocks(pool_rows: Callable[[slice], Tensor], rows: int, keys: int, batch: int) -> Tensor:
    """Pool some queries at a time, whose weights are computed again for the gradient.

    Parameters
    ----------
    pool_rows : callable
        From a slice of queries to their pooled values, shape (..., L', C).
    rows, keys, batch : int
        Numbers of queries, keys and sequences.

    Returns
    -------
    Tensor of shape (..., L, C)
        All of them.
    """
    size = max(1, BLOCK_ELEMENTS // max(1, keys * batch))
    blocks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    return torch.cat([checkpoint(pool_rows, block, use_reentrant=False) for block in blocks], dim=-2)
