"""Attention pooling as a torch layer and as a function: similarity, masked softmax, weighted mean."""

from __future__ import annotations

from typing import Literal, overload

from torch import Tensor, nn

from kernpool.execution.error_messages import explain_calls
from kernpool.torch.algorithms import pool_by_attention, pool_by_engine, pool_densely, pool_in_blocks
from kernpool.torch.dispatch import Request, Similarity, check_algorithm, plan


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
    degree: int = ...,
    algorithm: str = ...,
    return_weights: Literal[False] = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    key_padding_mask: Tensor | None = ...,
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
    degree: int = ...,
    algorithm: str = ...,
    return_weights: bool,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    key_padding_mask: Tensor | None = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...
@explain_calls
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
    degree: int = 0,
    algorithm: str = "auto",
    return_weights: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    key_padding_mask: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Pool values, weighted by the similarity of their keys to each query (differentiable).

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
        Broadcasts to (..., L, S). Boolean: True is included. Floating point: added to the logits.
    similarity : callable
        ``(query, key) -> logits`` of shape (..., L, S), such as `GaussianSimilarity`.
    valid_lens : Tensor of int, optional
        Keys at and beyond this index are padding: one length per sequence, shape (...), or per query, shape (..., L).
        Dimensions of size 1 broadcast: for all heads of (B, H, L, E) alike, lengths of shape (B,) are
        ``valid_lens[:, None]``.
    is_causal : bool, default=False
        Let query i see keys 0 to i only, as in torch's ``scaled_dot_product_attention``; masks combine: a key is used
        if all of them allow it.
    exclude_self : bool, default=False
        Leave key i out for query i (leave-one-out), by index and not by distance. Without it a learned width collapses
        to zero in training, since every training pair explains itself best. With `is_causal`, what remains are the
        strictly earlier keys.
    dropout_p : float, default=0.0
        Probability with which a weight is set to zero and the others are scaled by ``1 / (1 - p)``. It applies whenever
        it is not zero; `AttentionPooling` passes it in training only.
    degree : {0, 1}, default=0
        0 is the weighted mean, local constant; 1 the value at the query of the plane that fits the values best with the
        weights, local linear: without the bias of a mean where keys are on one side only.
    algorithm : {"auto", "dense", "fused", "blocks"}, default="auto"
        ``"auto"`` streams the keys where it can and pools densely where that is faster, for small problems. ``"dense"``
        makes all weights, and is what second derivatives, forward mode and ``torch.func`` need: with ``"auto"`` whether
        they work depends on the size. ``"fused"`` insists on the engine, or for scores on torch's own attention, and
        says why where neither can. ``"blocks"`` goes over blocks of queries, whose weights are made again for the
        gradient: any similarity, device and mask, and dropout, in memory of L + S. Weights that are asked for are made
        densely in any case.
    return_weights : bool, default=False
        Return the weights too, as they are before dropout.
    scale : float, optional
        Factor of the dot products of `DotProductSimilarity`, instead of ``1 / sqrt(Eq)``, as in torch's
        ``scaled_dot_product_attention``. Other similarities refuse it: they have a bandwidth.
    enable_gqa : bool, default=False
        Repeat the heads of keys and values, dimension -3, for queries of more heads, as in torch (grouped queries).
    key_padding_mask : Tensor of shape (B, S), optional
        Padding, as in torch's ``MultiheadAttention``: True is *ignored*, the opposite of `attn_mask`, where True is
        included; floating point is added to the logits. For all heads alike.

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
        If `attn_mask` holds integers, which would be added to the logits, a tensor is nested or sparse, or query, key
        and value are not of one floating-point type. Under automatic mixed precision their types may differ.

    See Also
    --------
    kernpool.torch.choose_route : Which way it pools, and why.

    Notes
    -----
    Memory is O((L + S) E), forward and backward, unless the weights are asked for, or dropped out, or few: similarities
    of distances run on the compiled loops of `kernpool.pool`, with a gradient of their own, on the processor; dot
    products, and Gaussians whose keys spread over few bandwidths, on torch's ``scaled_dot_product_attention``; all
    others, other devices, and masks that add to logits, in blocks of queries whose weights are computed again for the
    gradient. Time is O(L S E), and for one column and compact kernels less. To see how far points spread, a Gaussian
    call reads two numbers from the device; while ``torch.compile`` or ``torch.export`` traces, it does not, and takes
    differences, densely in an exported program unless the engine is asked for.

    Inputs are never changed. Keys and values that take part for no query, by all conditions together, may hold NaN, and
    so may queries that no key takes part for. A NaN that does take part, or an infinite query or key, makes NaN at
    least of the queries that see it, at most of the sequence, whichever way pools.

    Where the layers and `kernpool.pool` differ on purpose:

    ===================== ============================ ==============================
    what                  `kernpool.pool`              `kernpool.torch`
    ===================== ============================ ==============================
    infinite or NaN rows  ValueError                   NaN
    empty window          NaN and a warning (`empty=`) zero, with a gradient of zero
    no queries            ValueError                   no rows
    no keys               ValueError                   zeros
    no columns            ValueError                   the mean: all keys are alike
    ===================== ============================ ==============================

    Examples
    --------
    >>> import torch
    >>> from kernpool.torch import GaussianSimilarity
    >>> query, key, value = torch.zeros(1, 1), torch.tensor([[0.0], [1.0]]), torch.tensor([[10.0], [20.0]])
    >>> attention_pool(query, key, value, similarity=GaussianSimilarity()).item()
    13.7754
    """
    return _pool(
        Request.check(
            query,
            key,
            value,
            attn_mask,
            similarity=similarity,
            valid_lens=valid_lens,
            is_causal=is_causal,
            exclude_self=exclude_self,
            dropout_p=dropout_p,
            degree=degree,
            algorithm=algorithm,
            return_weights=return_weights,
            scale=scale,
            enable_gqa=enable_gqa,
            key_padding_mask=key_padding_mask,
        )
    )


def _pool(request: Request) -> Tensor | tuple[Tensor, Tensor]:
    """Pool by the route of a checked call; layers call it without the wrapper around the public function."""
    (way, _), request = plan(request)
    if way == "engine":
        return pool_by_engine(request)
    if way == "attention":
        return pool_by_attention(request)
    if way == "blocks":
        return pool_in_blocks(request)
    pooled, weights = pool_densely(request)
    return (pooled, weights) if request.return_weights else pooled


@explain_calls
class AttentionPooling(nn.Module):
    r"""Attention pooling layer with a replaceable, learnable similarity.

    .. math:: \hat y_i = \sum_j \operatorname{softmax}_j(s(q_i, k_j))\, v_j

    Parameters
    ----------
    similarity : nn.Module
        ``(query, key) -> logits``: `GaussianSimilarity` makes it Nadaraya-Watson regression with a learned bandwidth,
        `DotProductSimilarity`, `AdditiveSimilarity` and `BilinearSimilarity` the attention of the textbooks.
    dropout : float, default=0.0
        Probability with which a weight is set to zero in training; none of it in evaluation.
    degree, algorithm
        As in `attention_pool`.

    Raises
    ------
    ValueError
        If `dropout` is not between 0 and 1, or things do not go together, see `attention_pool`.

    See Also
    --------
    attention_pool : The same as a function.
    kernpool.pool : The same numbers without gradients, for any number of keys.

    Notes
    -----
    Where the layers and `kernpool.pool` differ on purpose:

    ===================== ============================ ==============================
    what                  `kernpool.pool`              `kernpool.torch`
    ===================== ============================ ==============================
    infinite or NaN rows  ValueError                   NaN
    empty window          NaN and a warning (`empty=`) zero, with a gradient of zero
    no queries            ValueError                   no rows
    no keys               ValueError                   zeros
    no columns            ValueError                   the mean: all keys are alike
    ===================== ============================ ==============================

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

    def __init__(
        self, similarity: nn.Module, dropout: float = 0.0, *, degree: int = 0, algorithm: str = "auto"
    ) -> None:
        super().__init__()
        check_algorithm(algorithm, degree, similarity, dropout, return_weights=False)
        self.similarity, self.dropout, self.degree, self.algorithm = similarity, dropout, degree, algorithm

    def extra_repr(self) -> str:
        """Return the settings that differ from their defaults, for ``repr``."""
        shown = {"dropout": 0.0, "degree": 0, "algorithm": "auto"}
        return ", ".join(f"{name}={value!r}" for name in shown if (value := getattr(self, name)) != shown[name])

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
        enable_gqa: bool = False,
        key_padding_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Pool values, weighted by the similarity of their keys to each query, as `attention_pool` does.

        Parameters
        ----------
        query, key, value : Tensor of shape (..., L, Eq), (..., S, Ek) and (..., S, Ev)
            Leading dimensions broadcast.
        attn_mask : Tensor, optional
            Broadcasts to (..., L, S). Boolean: True is included. Floating point: added to the logits.
        valid_lens : Tensor of int, optional
            Numbers of keys that are not padding: one per sequence, shape (...), or per query, shape (..., L), where
            dimensions of size 1 broadcast.
        is_causal : bool, default=False
            Let query i see keys 0 to i only.
        exclude_self : bool, default=False
            Leave key i out for query i: what training a width on its own keys needs.
        return_weights : bool, default=False
            Return the weights too, as they are before dropout.
        enable_gqa, key_padding_mask
            As in `attention_pool`: heads of keys and values are repeated; True is padding, which is ignored.

        Returns
        -------
        Tensor of shape (..., L, Ev), or a tuple of it and the weights of shape (..., L, S)
            Zeros for a query for which no key takes part.
        """
        request = Request.check(
            query,
            key,
            value,
            attn_mask,
            similarity=self.similarity,
            valid_lens=valid_lens,
            is_causal=is_causal,
            exclude_self=exclude_self,
            dropout_p=self.dropout if self.training else 0.0,
            degree=self.degree,
            algorithm=self.algorithm,
            return_weights=return_weights,
            enable_gqa=enable_gqa,
            key_padding_mask=key_padding_mask,
        )
        return _pool(request)
