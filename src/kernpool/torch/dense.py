"""The plain way to pool: all logits, a masked softmax, a matrix product. The twin that everything faster is held to."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import dropout

from kernpool.torch.masks import masked_softmax
from kernpool.torch.request import Request


def pool_densely(request: Request, queries: slice = slice(None)) -> tuple[Tensor, Tensor]:
    """Pool, with all weights in memory.

    Parameters
    ----------
    request : Request
        Of any similarity, on any device.
    queries : slice, optional
        Pool for some of the queries alone.

    Returns
    -------
    pooled : Tensor of shape (..., L', Ev)
    weights : Tensor of shape (..., L', S)
        Before dropout.
    """
    participants, query = request.participants.among(queries), request.query[..., queries, :]
    key, value = request.key, request.value
    mask = participants.mask(queries)
    if mask is not None:
        query, key, value = without_padding(query, key, value, mask)
    logits = request.similarity(query, key)
    if participants.attn_mask is not None and participants.adds_to_logits:
        logits = logits + participants.attn_mask.masked_fill(torch.isneginf(participants.attn_mask), 0.0)
    weights = masked_softmax(logits, mask).to(value.dtype)
    return (dropout(weights, request.dropout_p) if request.dropout_p else weights) @ value, weights


def without_padding(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Put zeros where no pair takes part: NaN times a weight of zero is still NaN.

    What takes part for no query is padding and may hold anything. So may a query that no key takes part for: its output
    is zero, yet a NaN would get into the gradient of the width.

    Parameters
    ----------
    query, key, value : Tensor of shape (..., L, Eq), (..., S, Ek), (..., S, Ev)
        Never changed.
    mask : Tensor of bool, shape (..., L, S)
        Who takes part.

    Returns
    -------
    query, key, value : Tensor
        The same but for padding.
    """
    unseen = ~mask.any(dim=-2).unsqueeze(-1)
    return _blank(query, ~mask.any(dim=-1).unsqueeze(-1)), _blank(key, unseen), _blank(value, unseen)


def _blank(tensor: Tensor, padding: Tensor) -> Tensor:
    return torch.where(padding, torch.zeros((), dtype=tensor.dtype, device=tensor.device), tensor)
