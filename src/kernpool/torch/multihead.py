"""Multi-head pooling: torch's ``MultiheadAttention`` with any similarity, under the same parameter names."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from kernpool.execution.error_messages import explain_calls
from kernpool.torch.dispatch import check_algorithm
from kernpool.torch.masks import check_tensors
from kernpool.torch.pooling import attention_pool
from kernpool.torch.similarities import DotProductSimilarity


@explain_calls
class MultiheadPooling(nn.MultiheadAttention):
    r"""Multi-head attention whose weights are those of any similarity.

    .. math:: \operatorname{head}_h = \operatorname{pool}(q W^Q_h, k W^K_h, v W^V_h), \qquad
              \text{out} = [\operatorname{head}_1, \dots, \operatorname{head}_H]\, W^O

    Parameters
    ----------
    embed_dim : int
        Columns of queries and of the result.
    num_heads : int
        Number of heads, which divides `embed_dim`; each has ``embed_dim / num_heads`` columns.
    dropout : float, default=0.0
        Probability with which a weight is set to zero in training.
    bias : bool, default=True
        Whether the four projections have one.
    kdim, vdim : int, optional
        Columns of keys and values; None is `embed_dim`.
    batch_first : bool, default=False
        Whether tensors are (batch, rows, columns) rather than (rows, batch, columns); False is torch's default.
    similarity : nn.Module, optional
        ``(query, key) -> logits`` of projected queries and keys, shared by all heads, such as `GaussianSimilarity`.
        None is `DotProductSimilarity`, and the layer is torch's.
    algorithm : {"auto", "dense", "fused", "blocks"}, default="auto"
        As in `attention_pool`.
    device, dtype
        As for any module; the similarity has its own.

    Attributes
    ----------
    in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj
        As in torch: one matrix of three projections, or three where `kdim` or `vdim` differ from `embed_dim`.

    Raises
    ------
    ValueError
        If `num_heads` does not divide `embed_dim`, or `dropout` is no probability.

    See Also
    --------
    AttentionPooling : Without projections.

    Notes
    -----
    Parameters have the names, shapes and initial values of torch's ``MultiheadAttention``: a trained one is loaded with
    ``load_state_dict``, and with dot products the numbers are the same. Parameters of the similarity are named
    ``similarity.``; where there are some, ``load_state_dict(state, strict=False)`` loads the others. There are no
    ``add_bias_kv`` and ``add_zero_attn``.

    Masks follow torch's module: **True is ignored**, the opposite of `attention_pool`. A query all of whose keys are
    ignored gets the bias of the last projection, where torch gives NaN. ``is_causal=True`` needs no mask. Time and
    memory are those of `attention_pool`, of all heads; weights that are asked for take O(L S) each.

    With a Gaussian, keys of large norm draw no attention from afar: each head sees a bounded neighbourhood of its
    projections. A width of their size, ``(embed_dim / num_heads) ** 0.5``, is a start.

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", arXiv:1706.03762, section 3.2.2.

    Examples
    --------
    >>> import torch
    >>> from kernpool.torch import GaussianSimilarity
    >>> trained = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> layer = MultiheadPooling(8, 2, batch_first=True)
    >>> layer.load_state_dict(trained.state_dict())
    <All keys matched successfully>
    >>> x = torch.randn(3, 5, 8)
    >>> torch.allclose(layer(x, x, x)[0], trained(x, x, x)[0], atol=1e-6)
    True
    >>> smooth = MultiheadPooling(8, 2, batch_first=True, similarity=GaussianSimilarity(bandwidth=2.0))
    >>> smooth(x, x, x, need_weights=False)[0].shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        similarity: nn.Module | None = None,
        algorithm: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}")
        similarity = DotProductSimilarity() if similarity is None else similarity
        check_algorithm(algorithm, 0, similarity, dropout, return_weights=False)
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            kdim=kdim,
            vdim=vdim,
            batch_first=batch_first,
            device=device,
            dtype=dtype,
        )
        # torch.nn.TransformerEncoderLayer has a shortcut for its own attention in evaluation; this turns it off.
        self._qkv_same_embed_dim = False
        self.algorithm, self.similarity = algorithm, similarity

    def reset_parameters(self) -> None:
        """Reset the projections as torch does: uniform after Glorot, biases zero; the similarity stays as it is."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)

    _reset_parameters = reset_parameters  # as torch calls it

    def extra_repr(self) -> str:
        """Return the sizes, for ``repr``."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        exclude_self: bool = False,
        valid_lens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Project, pool each head, and project the heads together; arguments are those of torch's module.

        Parameters
        ----------
        query, key, value : Tensor of shape (B, L, embed_dim), (B, S, kdim), (B, S, vdim)
            With ``batch_first=True``; else rows come first. Without a batch (L, embed_dim) and so on.
        key_padding_mask : Tensor of shape (B, S), optional
            Boolean, **True is ignored**; or floating point, added to the logits.
        need_weights : bool, default=True
            Return the weights too, which takes all of them in memory; False is faster.
        attn_mask : Tensor of shape (L, S) or (B * num_heads, L, S), optional
            Boolean, **True is ignored**; or floating point, added to the logits.
        average_attn_weights : bool, default=True
            Average the weights over heads.
        is_causal : bool, default=False
            Let query i see keys 0 to i only, in addition to the masks.
        exclude_self : bool, default=False
            Leave key i out for query i (leave-one-out).
        valid_lens : Tensor of int, shape (B,) or (B, L), optional
            Numbers of keys that are not padding, per sequence or per query.

        Returns
        -------
        Tensor of the shape of `query`, and the weights, (B, L, S), (B, num_heads, L, S), or None
            Weights are before dropout, where torch's are after it.
        """
        check_tensors(query=query, key=key, value=value)
        single = query.dim() == 2
        if single:
            query, key, value = (tensor.unsqueeze(0) for tensor in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
        query, key, value = self._heads(query, key, value)
        found = attention_pool(
            query,
            key,
            value,
            self._included(attn_mask),
            similarity=self.similarity,
            valid_lens=None if valid_lens is None else valid_lens.unsqueeze(1),  # for all heads
            is_causal=is_causal,
            exclude_self=exclude_self,
            dropout_p=self.dropout if self.training else 0.0,
            algorithm=self.algorithm,
            return_weights=need_weights,
            key_padding_mask=key_padding_mask,
        )
        pooled, weights = found if isinstance(found, tuple) else (found, None)
        out = self.out_proj(pooled.transpose(-3, -2).flatten(-2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if single:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _heads(self, *tensors: Tensor) -> Iterator[Tensor]:
        """Yield projected tensors of shape (B, num_heads, rows, embed_dim / num_heads)."""
        separate = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        weights = separate if self.in_proj_weight is None else self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        for tensor, weight, bias in zip(tensors, weights, biases, strict=True):
            yield linear(tensor, weight, bias).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def _included(self, attn_mask: Tensor | None) -> Tensor | None:
        """Return torch's mask as that of `attention_pool`, where True is included."""
        if attn_mask is None:
            return None
        check_tensors(attn_mask=attn_mask)
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.unflatten(0, (-1, self.num_heads))
        return ~attn_mask if attn_mask.dtype == torch.bool else attn_mask
