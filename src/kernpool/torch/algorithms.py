"""Pooling of torch tensors: the dense reference, and three algorithms that do not store all weights at once.

`pool_densely` computes all logits, by differences or by products (`dispatch.plan` decides), a masked softmax and a
matrix product; it is the reference implementation that tests compare the others with. `pool_by_engine` uses the
compiled operator, `pool_by_attention` torch's own ``scaled_dot_product_attention``, and `pool_in_blocks` blocks of
queries whose weights are recomputed for the gradient.
"""

import math
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import dropout, pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from kernpool.torch.cpu_operator import Sequences, pool_pairs, refuse
from kernpool.torch.dispatch import Request
from kernpool.torch.masks import softmax_and_empty, without_autocast, without_infinity
from kernpool.torch.similarities import DotProductSimilarity, KernelSimilarity, Products


def pool_densely(request: Request) -> tuple[Tensor, Tensor]:
    """Pool values with all weights in memory; return the pooled values and the weights."""
    found = _pool_ordinary(request)
    if found is not None:
        return found
    pooled, weights, empty = _pool_with_care(request, slice(None))
    return pooled, weights.masked_fill(empty, 0.0)


def _pool_with_care(request: Request, queries: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Pool values for some of the queries, where numbers may be infinite and rows empty."""
    request = request.among(queries)
    mask = request.mask(queries)
    request, _ = request.without_padding(mask)
    value, bias = request.value, request.bias
    logits = request.similarity(without_infinity(request.query), without_infinity(request.key))
    if bias is not None:
        logits = logits + bias.masked_fill(torch.isneginf(bias), 0.0)
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
    mask, are_points = request.mask(), isinstance(request.similarity, Products)
    if not (mask is None or are_points or isinstance(request.similarity, KernelSimilarity)):
        return None  # rows may be empty, and a similarity of one's own counts its calls
    if not are_points:  # in points padding is zero already
        request, _ = request.without_padding(mask)
    query, key, value = request[:3]
    if request.dropout_p or not ((are_points and query.is_cpu) or _are_finite(query, key)):
        return None
    logits = request.similarity(query, key)
    if request.bias is not None:
        logits = logits + request.bias
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    weights, center = torch.softmax(logits, dim=-1).to(value.dtype), value.detach().mean(-2, keepdim=True)
    pooled = (weights @ (value - center)).add_(center)
    return (pooled, weights) if _are_finite(pooled) else None


def _are_finite(*tensors: Tensor) -> bool:
    """Return whether the sums of tensors are finite, as they are only if all entries are; False on other devices."""
    if torch.compiler.is_compiling():
        return False
    try:
        return all(tensor.is_cpu and math.isfinite(tensor.detach().sum().item()) for tensor in tensors)
    except RuntimeError:  # of torch.func.vmap and others, which have no numbers to look at
        return False


def _center(value: Tensor) -> Tensor:
    """Return the column means of values, outside the autograd graph; zero if centred values would not be finite."""
    # near 10 000 in float32, slopes over 500 keys are off by 1.4 % without centering and 1e-5 with it, for 30 us
    value = value.detach()
    center = value.mean(-2, keepdim=True)
    return torch.where(torch.isfinite(value - center).all(-2, keepdim=True), center, 0.0)


# Of the largest table of a block of queries. The C library maps tables of more than 32 MiB one by one, and cuts smaller
# ones out of a heap in which the nodes of the autograd graph lie: glibc before 2.38 does not use the gaps between these
# again, and 1500 queries of 100 000 keys in tables of 8 MiB took 1.2 GiB.
BLOCK_BYTES = 33 << 20


def pool_by_engine(request: Request) -> Tensor:
    """Pool values with the compiled loops of `kernpool.pool`, in the forward and the backward pass."""
    similarity = cast(KernelSimilarity, request.similarity)
    # In the gradient of widths, zero times infinity is NaN.
    request, _ = request.without_padding()
    query, key = similarity.points(request.query, request.key)
    value, mask, counts = request.value, request.attn_mask, request.counts()
    batch, (rows, keys) = _batch_of(query, key, value, mask), request.shape[-2:]
    if 0 in (rows, keys, value.shape[-1], *batch):
        return _as_autocast(_nothing(batch, query, key, value))
    if not query.shape[-1]:  # one column in which all are alike
        query, key = pad(query, (0, 1)), pad(key, (0, 1))
    which = None
    if mask is not None:  # as small as it came, and which of its tables is that of a sequence
        tables = mask.shape[:-2].numel()
        which = torch.arange(tables).reshape(mask.shape[:-2]).expand(batch).reshape(-1)
        mask = mask.reshape(tables, *mask.shape[-2:]).expand(tables, mask.shape[-2], keys)
    if counts is not None:
        counts = counts.expand(*batch, rows, 1).reshape(-1, rows)
    sequences = Sequences(
        _as_sequences(query, batch),
        _as_sequences(key, batch),
        _as_sequences(value, batch),
        counts,
        mask,
        which,
        similarity.kernel_name,
        request.exclude_self,
        request.degree,
    )
    pooled: Tensor = pool_pairs(*sequences)[0]
    return _as_autocast(pooled.reshape(*batch, rows, value.shape[-1]))


def _as_autocast(pooled: Tensor) -> Tensor:
    """Return results in the type that a matrix product of the dense layer would give them."""
    device = pooled.device.type
    return pooled.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else pooled


def _batch_of(*tensors: Tensor | None) -> torch.Size:
    """Return the leading dimensions that tensors broadcast to."""
    batch: torch.Size = torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors if tensor is not None))
    return batch


def _as_sequences(tensor: Tensor, batch: torch.Size) -> Tensor:
    """Broadcast the leading dimensions of a tensor to the shape of the batch, and flatten them into one."""
    return tensor.expand(*batch, -1, -1).reshape(-1, *tensor.shape[-2:])


def _nothing(batch: torch.Size, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return zeros, the result of pooling empty tensors, connected to the autograd graph."""
    # so that gradients are zero and not None
    zeros = value.new_zeros(*batch, query.shape[-2], value.shape[-1])
    return sum((tensor.flatten()[:0].sum() for tensor in (query, key, value)), zeros)


def pool_by_attention(request: Request) -> Tensor:
    """Pool values with torch's ``scaled_dot_product_attention``."""
    if not isinstance(request.similarity, Products):
        return _attend(request)
    center = _center(request.value)
    request = request._replace(value=(request.value - center).to(request.query.dtype))
    for tensor in request[:3]:
        if tensor.requires_grad:
            tensor.register_hook(_once)
    with without_autocast(center.device):
        pooled = _attend(request)
    return _as_autocast((pooled + center).to(center.dtype))


def _attend(request: Request) -> Tensor:
    """Pool values by dot products, in the precision that they have."""
    mask, is_causal = request.bias, request.is_causal
    allowed = None if request.attn_mask is request.lengths is None else request.mask()
    request, _ = request.without_padding(allowed)
    if allowed is not None:  # torch wants all conditions in one mask
        mask = allowed if mask is None else mask.masked_fill(~allowed, -torch.inf)
        is_causal = False
    # zero columns give queries, keys and values equal widths
    query, key, value = request[:3]
    similarity = cast(DotProductSimilarity | Products, request.similarity)
    query, key = similarity.points(query, key)
    scale = 1.0 if isinstance(similarity, Products) else similarity.factor(query.shape[-1])
    batch = _batch_of(query, key, value, mask)
    columns, (rows, keys) = value.shape[-1], request.shape[-2:]
    if 0 in (rows, keys, columns, *batch):
        return _nothing(batch, query, key, value)
    more = max(columns, query.shape[-1])
    # Columns of zeros change neither products nor sums, and equal widths are what torch streams. None would be a copy.
    tensors = [
        _as_sequences(pad(tensor, (0, more - width)) if (width := tensor.shape[-1]) < more else tensor, batch)[:, None]
        for tensor in (query, key, value)
    ]
    if mask is not None:
        mask = mask if mask.dtype == torch.bool else mask.to(query.dtype)
        mask = _as_sequences(mask.expand(*batch, rows, keys), batch)[:, None]
    wide_query, wide_key, wide_value = tensors
    pooled = scaled_dot_product_attention(
        wide_query, wide_key, wide_value, attn_mask=mask, is_causal=is_causal, scale=scale
    )
    pooled = pooled.reshape(*batch, rows, more)[..., :columns]
    # On the way through torch's loops a NaN among the keys is lost.
    if _are_finite(query, key):
        return pooled
    wrong = ~(torch.isfinite(query).all(-1, keepdim=True) & torch.isfinite(key).all(-1).all(-1)[..., None, None])
    return pooled.masked_fill(wrong, torch.nan)


def _once(gradient: Tensor) -> None:
    """Refuse second derivatives, which torch's attention does not have, with the remedy."""
    if gradient.requires_grad:
        gradient.register_hook(refuse)


def pool_in_blocks(request: Request) -> Tensor:
    """Pool values for one block of queries at a time, recomputing its weights in the backward pass."""
    rows, keys_at_once = request.shape[-2], request.shape[-1] * request.batch.numel()
    bytes_of_row = keys_at_once * max(4, request.query.element_size())
    size = math.ceil(BLOCK_BYTES / max(1, bytes_of_row))
    blocks = [slice(start, start + size) for start in range(0, rows, size)]
    return torch.cat([checkpoint(_pool_with_care, request, block, use_reentrant=False)[0] for block in blocks], dim=-2)
