"""Attention pooling as a layer and as a function: similarity, masked softmax, weighted mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from kernpool.torch.inputs import check_dropout, check_inputs, check_mask_shape
from kernpool.torch.masking import masked_softmax, valid_length_mask

Similarity = Callable[[Tensor, Tensor], Tensor]


@overload
def attention_pool(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    *,
    similarity: Similarity,
    valid_lens: Tensor | None = ...,
    is_causal: bool = ...,
    exclude_self: bool = ...,
    dropout_p: float = ...,
    return_weights: Literal[False] = ...,
) -> Tensor: ...
@overload
def attention_pool(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    *,
    similarity: Similarity,
    valid_lens: Tensor | None = ...,
    is_causal: bool = ...,
    exclude_self: bool = ...,
    dropout_p: float = ...,
    return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def attention_pool(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    similarity: Similarity,
    valid_lens: Tensor | None = None,
    is_causal: bool = False,
    exclude_self: bool = False,
    dropout_p: float = 0.0,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Pool values by the similarity of their keys to each query, differentiably.

    .. math:: \hat y_i = \sum_j \operatorname{softmax}_j(s(q_i, k_j))\, v_j

    Parameters
    ----------
    query : Tensor of shape (..., L, Eq)
        Queries; leading dimensions broadcast.
    key : Tensor of shape (..., S, Ek)
        Keys; whether Ek may differ from Eq is up to the similarity.
    value : Tensor of shape (..., S, Ev)
        Values.
    attn_mask : Tensor, optional
        Broadcasts to (..., L, S). Boolean: True takes part. Floating point: added to the logits.
    similarity : callable
        ``(query, key) -> logits`` of shape (..., L, S), such as `GaussianSimilarity`.
    valid_lens : Tensor of int, optional
        Keys at and beyond this index are padding: one length per sequence, shape (...), or per query, shape (..., L).
    is_causal : bool, default=False
        Let query i see keys 0 to i only, as in torch's ``scaled_dot_product_attention``; masks combine: what takes part
        has to take part in each.
    exclude_self : bool, default=False
        Leave key i out for query i (leave-one-out), by index and not by distance. Without it a learned width collapses
        to zero in training, since every training pair explains itself best. With `is_causal`, what remains are the
        strictly earlier keys.
    dropout_p : float, default=0.0
        Probability with which a weight is set to zero and the others are scaled by ``1 / (1 - p)``. It applies whenever
        it is not zero; `AttentionPooling` passes it in training only.
    return_weights : bool, default=False
        Return the weights too, as they are before dropout.

    Returns
    -------
    Tensor of shape (..., L, Ev), or a tuple of it and the weights of shape (..., L, S)
        A query for which no key takes part, or none within the support of the kernel, gets zero, with zero gradient;
        so do all queries if there are no keys.

    Raises
    ------
    ValueError
        If shapes do not fit, devices differ, a valid length is not between 0 and S, or `dropout_p` is no probability.
    TypeError
        If `attn_mask` holds integers, which would be added to the logits, or query, key and value are not of one
        floating-point type. Under automatic mixed precision their types may differ.

    Notes
    -----
    Time and memory are O(L S E): this is the plain dense layer. Inputs are never changed. Keys and values that take
    part for no query may hold NaN, and so may queries that no key takes part for; a value that takes part for one query
    and is NaN spreads to all queries that see it in the same product.

    Examples
    --------
    >>> import torch
    >>> from kernpool.torch import GaussianSimilarity
    >>> query, key, value = torch.zeros(1, 1), torch.tensor([[0.0], [1.0]]), torch.tensor([[10.0], [20.0]])
    >>> attention_pool(query, key, value, similarity=GaussianSimilarity()).item()
    13.7754
    """
    shape = check_inputs(query, key, value, attn_mask)
    check_dropout(dropout_p)
    mask = _combined_mask(attn_mask, valid_lens, is_causal, exclude_self, shape, query.device)
    if mask is not None:
        # What takes part for no query is padding and may hold anything; NaN times a weight of zero is still NaN. So may
        # a query that no key takes part for: its output is zero, yet a NaN would get into the gradient of the width.
        padding = ~mask.any(dim=-2).unsqueeze(-1)
        query = _blank(query, ~mask.any(dim=-1).unsqueeze(-1))
        key, value = _blank(key, padding), _blank(value, padding)
    logits = similarity(query, key)
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        logits = logits + attn_mask.masked_fill(torch.isneginf(attn_mask), 0.0)
    weights = masked_softmax(logits, mask).to(value.dtype)
    pooled = (dropout(weights, dropout_p) if dropout_p else weights) @ value
    return (pooled, weights) if return_weights else pooled


def _blank(tensor: Tensor, padding: Tensor) -> Tensor:
    return torch.where(padding, torch.zeros((), dtype=tensor.dtype, device=tensor.device), tensor)


def _combined_mask(
    attn_mask: Tensor | None,
    valid_lens: Tensor | None,
    is_causal: bool,
    exclude_self: bool,
    shape: torch.Size,
    device: torch.device,
) -> Tensor | None:
    queries, keys = shape[-2:]
    parts = []
    if attn_mask is not None:
        check_mask_shape(attn_mask, shape)
        parts.append(attn_mask if attn_mask.dtype == torch.bool else ~torch.isneginf(attn_mask))
    if valid_lens is not None:
        parts.append(valid_length_mask(valid_lens, shape).to(device))
    if is_causal:
        parts.append(torch.ones(queries, keys, dtype=torch.bool, device=device).tril())
    if exclude_self:
        if queries != keys:
            raise ValueError(f"exclude_self=True takes key i for query i's own, but there are {queries} and {keys}")
        parts.append(~torch.eye(queries, dtype=torch.bool, device=device))
    if not parts:
        return None
    mask = parts[0]
    for part in parts[1:]:
        mask = mask & part
    return mask.expand(torch.broadcast_shapes(mask.shape, shape))


class AttentionPooling(nn.Module):
    r"""Attention pooling with an exchangeable, learnable similarity.

    .. math:: \hat y_i = \sum_j \operatorname{softmax}_j(s(q_i, k_j))\, v_j

    Parameters
    ----------
    similarity : nn.Module
        ``(query, key) -> logits``: `GaussianSimilarity` makes it Nadaraya-Watson regression with a learned bandwidth,
        `DotProductSimilarity`, `AdditiveSimilarity` and `BilinearSimilarity` the attention of the textbooks.
    dropout : float, default=0.0
        Probability with which a weight is set to zero in training; none of it in evaluation.

    Raises
    ------
    ValueError
        If `dropout` is not between 0 and 1.

    See Also
    --------
    attention_pool : The same as a function.
    kernpool.pool : The same numbers without gradients, for any number of keys.

    Notes
    -----
    Training a Gaussian width with ``exclude_self=True`` on the mean squared error *is* bandwidth selection by
    leave-one-out: the minimum is at ``1 / w = bandwidth_`` of ``NadarayaWatsonRegressor(bandwidth="loo")``.

    Examples
    --------
    Parametric pooling in a few lines: each training input is a query against all other pairs.

    >>> import torch
    >>> from kernpool.datasets import make_sine_power
    >>> from kernpool.torch import AttentionPooling, GaussianSimilarity
    >>> sample = make_sine_power(random_state=0)
    >>> x, y = (torch.tensor(a)[:, None] for a in sample[:2])
    >>> layer = AttentionPooling(GaussianSimilarity(1.0, parameterization="inverse_bandwidth", dtype=x.dtype))
    >>> optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    >>> losses = []
    >>> for epoch in range(5):
    ...     loss = torch.mean((layer(x, x, y, exclude_self=True) - y) ** 2)
    ...     losses.append(loss.item())
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> losses[-1] < losses[0] and layer.similarity.w.item() > 1
    True
    """

    def __init__(self, similarity: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.similarity, self.dropout = similarity, dropout

    def extra_repr(self) -> str:
        """Show the dropout, if there is any."""
        return f"dropout={self.dropout}" if self.dropout else ""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        is_causal: bool = False,
        exclude_self: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Pool; parameters and result as in `attention_pool`."""
        return attention_pool(
            query,
            key,
            value,
            attn_mask,
            similarity=self.similarity,
            valid_lens=valid_lens,
            is_causal=is_causal,
            exclude_self=exclude_self,
            dropout_p=self.dropout if self.training else 0.0,
            return_weights=return_weights,
        )
