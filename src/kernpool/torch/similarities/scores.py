"""Scores of attention: dot product, bilinear, additive; for queries and keys that need not live in one space."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kernpool.execution.messages import explain_calls
from kernpool.torch.similarities.widths import check_sizes


@explain_calls
class DotProductSimilarity(nn.Module):
    """Scaled dot product: ``s(q, k) = q @ k / sqrt(E)``. It learns nothing itself.

    Examples
    --------
    >>> import torch
    >>> DotProductSimilarity()(torch.ones(1, 4), torch.ones(2, 4)).tolist()
    [[2.0, 2.0]]
    """

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return the points whose product it is."""
        check_sizes(query, key)
        return query, key

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, E) and keys (..., S, E)."""
        query, key = self.points(query, key)
        return query @ key.transpose(-2, -1) / math.sqrt(max(query.shape[-1], 1))


@explain_calls
class AdditiveSimilarity(nn.Module):
    """Additive score: ``s(q, k) = v @ tanh(W_q q + W_k k)``, for queries and keys of different sizes.

    Parameters
    ----------
    query_size, key_size, hidden_size : int
        Sizes of queries, keys, and of the hidden layer.
    device, dtype
        As for any module.

    References
    ----------
    .. [1] D. Bahdanau, K. Cho and Y. Bengio, "Neural machine translation by jointly learning to align and translate",
       arXiv:1409.0473, appendix A.1.2.

    Notes
    -----
    Memory is O(L S hidden_size).

    Examples
    --------
    >>> import torch
    >>> AdditiveSimilarity(20, 2, 8)(torch.randn(2, 1, 20), torch.ones(2, 10, 2)).shape
    torch.Size([2, 1, 10])
    """

    def __init__(
        self,
        query_size: int,
        key_size: int,
        hidden_size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.query_size, self.key_size = query_size, key_size
        self.query_map = nn.Linear(query_size, hidden_size, bias=False, device=device, dtype=dtype)
        self.key_map = nn.Linear(key_size, hidden_size, bias=False, device=device, dtype=dtype)
        self.score = nn.Linear(hidden_size, 1, bias=False, device=device, dtype=dtype)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, query_size) and keys (..., S, key_size)."""
        check_sizes(query, key, self.query_size, self.key_size)
        hidden = torch.tanh(self.query_map(query).unsqueeze(-2) + self.key_map(key).unsqueeze(-3))
        logits: Tensor = self.score(hidden).squeeze(-1)
        return logits


@explain_calls
class BilinearSimilarity(nn.Module):
    """Bilinear score: ``s(q, k) = q @ W k``, for queries and keys of different sizes.

    Parameters
    ----------
    query_size, key_size : int
        Sizes of queries and keys.
    device, dtype
        As for any module.

    References
    ----------
    .. [1] M.-T. Luong, H. Pham and C. D. Manning, "Effective approaches to attention-based neural machine translation",
       arXiv:1508.04025, equation 8 ("general").

    Examples
    --------
    >>> import torch
    >>> BilinearSimilarity(3, 2)(torch.randn(5, 3), torch.randn(4, 2)).shape
    torch.Size([5, 4])
    """

    def __init__(
        self,
        query_size: int,
        key_size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.query_size, self.key_size = query_size, key_size
        self.key_map = nn.Linear(key_size, query_size, bias=False, device=device, dtype=dtype)

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return the points whose product it is: queries, and mapped keys."""
        check_sizes(query, key, self.query_size, self.key_size)
        return query, self.key_map(key)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, query_size) and keys (..., S, key_size)."""
        query, key = self.points(query, key)
        return query @ key.transpose(-2, -1)
