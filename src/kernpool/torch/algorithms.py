"""Pooling of torch tensors: the dense reference, and three algorithms that do not store all weights at once.

`pool_densely` computes all logits, a masked softmax and a matrix product; it is the reference implementation that
tests compare the others with. `pool_by_engine` uses the compiled operator, `pool_by_attention` torch's own
``scaled_dot_product_attention``, and `pool_in_blocks` blocks of queries whose weights are recomputed for the
gradient.
"""

import math
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import dropout, pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from kernpool.torch.cpu_operator import Sequences, pool_pairs
from kernpool.torch.dispatch import Request
from kernpool.torch.masks import softmax_and_empty, without_infinity
from kernpool.torch.similarities import BilinearSimilarity, DotProductSimilarity, KernelSimilarity


def pool_densely(request: Request) -> tuple[Tensor, Tensor]:
    """Pool values with all weights in memory; return the pooled values and the weights."""
    if request.includes_every_row and not request.dropout_p:
        found = _pool_ordinary(request)
        if found is not None:
            return found
    pooled, weights, empty = _pool_with_care(_without_infinity(request), slice(None))
    return pooled, weights.masked_fill(empty, 0.0)


def _without_infinity(request: Request) -> Request:
    return request._replace(query=without_infinity(request.query), key=without_infinity(request.key))


def _pool_with_care(request: Request, queries: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Pool values for some of the queries, where padding may be anything and rows may be empty."""
    request = request.among(queries)
    query, key, value = request.query, request.key, request.value
    mask = request.mask(queries)
    if mask is not None:
        query, key, value = without_padding(query, key, value, mask)
    logits = request.similarity(query, key)
    if request.attn_mask is not None and request.adds_to_logits:
        logits = logits + request.attn_mask.masked_fill(torch.isneginf(request.attn_mask), 0.0)
    weights, empty = softmax_and_empty(logits, mask)
    weights = weights.to(value.dtype)
    if request.dropout_p:
        pooled = dropout(weights, request.dropout_p) @ value
    else:
        center = _center(value)
        pooled = weights @ (value - center)
        pooled = pooled + center.to(pooled.dtype)  # autocast multiplies in a lower precision
    return pooled.masked_fill(empty, 0.0), weights, empty


def _pool_ordinary(request: Request) -> tuple[Tensor, Tensor] | None:
    """Pool on the processor as if all numbers were finite and each query had a key; None if that is not so."""
    # looking at the result instead of preparing for all takes half of the time for 40 queries and keys
    query, key, value = request.query, request.key, request.value
    if not query.is_cpu or torch.compiler.is_compiling():
        return None
    logits, mask = request.similarity(query, key), request.mask()
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    weights, center = torch.softmax(logits, dim=-1), value.detach().mean(-2, keepdim=True)
    if weights.dtype != value.dtype:
        weights = weights.to(value.dtype)
    pooled = weights @ (value - center)
    if pooled.dtype != value.dtype:  # autocast multiplies in a lower precision
        center = center.to(pooled.dtype)
    pooled = pooled + center
    return (pooled, weights) if _are_finite(pooled, key, query) else None


def _are_finite(*tensors: Tensor) -> bool:
    """Return whether the sums of tensors are finite, as they are only if all entries are."""
    try:
        return all(math.isfinite(tensor.detach().sum().item()) for tensor in tensors)
    except RuntimeError:  # of torch.func.vmap and others, which have no numbers to look at
        return False


def _center(value: Tensor) -> Tensor:
    """Return the column means of values, outside the autograd graph; zero if centered values would not be finite."""
    # near 10 000 in float32, slopes over 500 keys are off by 1.4 % without centering and 1e-5 with it, for 30 us
    value = value.detach()
    center = value.mean(dim=-2, keepdim=True)
    finite = torch.isfinite(center) & torch.isfinite(value - center).all(dim=-2, keepdim=True)
    return torch.where(finite, center, 0.0)


def without_padding(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values with zeros in the rows that belong to no pair that the mask allows."""
    # zero times NaN is NaN: keys that no query uses may hold anything, and so may queries that use no key
    unseen = ~mask.any(dim=-2).unsqueeze(-1)
    return _blank(query, ~mask.any(dim=-1).unsqueeze(-1)), _blank(key, unseen), _blank(value, unseen)


def _blank(tensor: Tensor, padding: Tensor) -> Tensor:
    return torch.where(padding, torch.zeros((), dtype=tensor.dtype, device=tensor.device), tensor)


# Of the largest table of a block of queries. The C library maps tables of more than 32 MiB one by one, and cuts smaller
# ones out of a heap in which the nodes of the autograd graph lie: glibc before 2.38 does not use the gaps between these
# again, and 1500 queries of 100 000 keys in tables of 8 MiB took 1.2 GiB.
BLOCK_BYTES = 33 << 20


def pool_by_engine(request: Request) -> Tensor:
    """Pool values with the compiled loops of `kernpool.pool`, in the forward and the backward pass."""
    similarity = cast(KernelSimilarity, request.similarity)
    points = [request.query, request.key]
    if similarity.form == "linear":  # in the gradient of the map, zero times an infinite row of padding is NaN
        wrong = [~torch.isfinite(rows).all(dim=-1, keepdim=True) for rows in points]
        mapped = similarity.points(*(_blank(rows, where) for rows, where in zip(points, wrong, strict=True)))
        query, key = (rows.masked_fill(where, torch.nan) for rows, where in zip(mapped, wrong, strict=True))
    else:
        query, key = similarity.points(*points)
    pooled = pool_sequences(
        query,
        key,
        request.value,
        similarity.inverse_bandwidth,
        request.attn_mask,
        request.counts(),
        kernel=similarity.kernel_name,
        exclude_self=request.exclude_self,
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
    """Pool values with the compiled operator, after broadcasting leading dimensions to a batch of sequences."""
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
    """Broadcast the leading dimensions of a tensor to the shape of the batch, and flatten them into one."""
    shape = shape or tuple(tensor.shape[-2:])
    return tensor.expand(*batch, *shape).reshape(batch.numel(), *shape)


def _nothing(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Tensor:
    """Return zeros, the result of pooling empty tensors, connected to the autograd graph."""
    # so that gradients are zero and not None
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    none = sum(tensor.reshape(-1)[:0].sum() for tensor in (query, key, value, *others))
    return value.new_zeros(*batch, query.shape[-2], value.shape[-1]) + torch.as_tensor(none).to(value.dtype)


def pool_by_attention(request: Request) -> Tensor:
    """Pool values with torch's ``scaled_dot_product_attention``."""
    # zero columns give queries, keys and values equal widths
    query, key, value = request.query, request.key, request.value
    similarity = cast(DotProductSimilarity | BilinearSimilarity, request.similarity)
    mask, is_causal = request.attn_mask, request.is_causal
    allowed = None if mask is None else request.mask()
    if mask is not None and allowed is not None:  # torch wants all conditions in one mask
        query, key, value = without_padding(query, key, value, allowed)
        mask = mask.masked_fill(~allowed, -torch.inf) if request.adds_to_logits else allowed
        is_causal = False
    query, key = similarity.points(query, key)
    scale = 1.0 if isinstance(similarity, BilinearSimilarity) else similarity.factor(query.shape[-1])
    leading = [tensor.shape[:-2] for tensor in (query, key, value)] + ([] if mask is None else [mask.shape[:-2]])
    batch = torch.broadcast_shapes(*leading)
    columns, rows = value.shape[-1], query.shape[-2]
    if not (rows and key.shape[-2] and columns and all(batch)):
        return _nothing(query, key, value)
    if is_causal:  # keys that no query sees may hold anything
        key, value = key[..., :rows, :], value[..., :rows, :]
    more = max(columns, query.shape[-1])
    # Columns of zeros change neither products nor sums, and equal widths are what torch streams. None would be a copy.
    tensors = [
        _as_sequences(pad(tensor, (0, more - width)) if (width := tensor.shape[-1]) < more else tensor, batch)[:, None]
        for tensor in (query, key, value)
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
    """Pool values for one block of queries at a time, recomputing its weights in the backward pass."""
    request = _without_infinity(request)

    def pool_some(queries: slice) -> Tensor:
        return _pool_with_care(request, queries)[0]

    rows, keys_at_once = request.query.shape[-2], request.key.shape[-2] * request.batch.numel()
    bytes_of_row = keys_at_once * request.columns_of_differences * max(4, request.query.element_size())
    size = math.ceil(BLOCK_BYTES / max(1, bytes_of_row))
    blocks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    return torch.cat([checkpoint(pool_some, block, use_reentrant=False) for block in blocks], dim=-2)
