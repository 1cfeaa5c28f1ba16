"""Similarities that learn: modules from queries and keys to logits, exchangeable in `AttentionPooling`."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

Parameterization = Literal["log_bandwidth", "inverse_bandwidth"]


class GaussianSimilarity(nn.Module):
    r"""Gaussian kernel with a learnable width: ``s(q, k) = -|q - k|^2 / (2 h^2)``.

    Parameters
    ----------
    width : float, default=1.0
        Bandwidth h at the start.
    parameterization : {"log_bandwidth", "inverse_bandwidth"}, default="log_bandwidth"
        What is learned: ``log h``, which keeps h positive and makes equal steps equal factors; or ``w = 1 / h`` itself,
        as in ``softmax(-((q - k) w)^2 / 2)`` of the textbooks. There only ``w^2`` matters, and ``w = 0`` is a
        stationary point, so for anything but following a textbook use the first.
    device, dtype
        As for any module.

    Attributes
    ----------
    log_bandwidth or w : nn.Parameter
        The learned number.

    Raises
    ------
    ValueError
        If the width is not positive and finite, or the parameterization unknown.

    Notes
    -----
    Distances are formed from differences. The expansion ``|q|^2 + |k|^2 - 2 q.k`` is a matrix product and faster, and
    loses digits in proportion to the square of the distance from the origin. Memory is O(L S E) here. Give float64 data
    a float64 width (``dtype=``), or the width alone limits the result to seven digits.

    Examples
    --------
    >>> import torch
    >>> similarity = GaussianSimilarity(width=2.0)
    >>> similarity(torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]])).tolist()
    [[-0.0, -0.5]]
    >>> GaussianSimilarity(0.5, parameterization="inverse_bandwidth").w.item()
    2.0
    """

    def __init__(
        self,
        width: float = 1.0,
        *,
        parameterization: Parameterization = "log_bandwidth",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not (math.isfinite(width) and width > 0):
            raise ValueError(f"width must be positive and finite, got {width}")
        if parameterization not in ("log_bandwidth", "inverse_bandwidth"):
            raise ValueError(
                f"parameterization must be 'log_bandwidth' or 'inverse_bandwidth', got {parameterization!r}"
            )
        self.width = width
        self.parameterization = parameterization
        empty = nn.Parameter(torch.empty((), device=device, dtype=dtype))
        if parameterization == "log_bandwidth":
            self.log_bandwidth = empty
        else:
            self.w = empty
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the width back to where it started."""
        with torch.no_grad():
            if self.parameterization == "log_bandwidth":
                self.log_bandwidth.fill_(math.log(self.width))
            else:
                self.w.fill_(1.0 / self.width)

    @property
    def inverse_bandwidth(self) -> Tensor:
        """``1 / h``, differentiable."""
        return torch.exp(-self.log_bandwidth) if self.parameterization == "log_bandwidth" else self.w

    @property
    def bandwidth(self) -> float:
        """The bandwidth h as a number."""
        inverse = abs(self.inverse_bandwidth.item())
        return 1.0 / inverse if inverse else math.inf

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, E) and keys (..., S, E), float32 at least."""
        _check_sizes(query, key, query.shape[-1], query.shape[-1])
        if query.dtype in (torch.float16, torch.bfloat16):  # squares of half precision overflow at 256 bandwidths
            query, key = query.float(), key.float()
        scaled = (query.unsqueeze(-2) - key.unsqueeze(-3)) * self.inverse_bandwidth
        return -0.5 * scaled.square().sum(dim=-1)

    def extra_repr(self) -> str:
        """Show the current width."""
        width = "?" if self.inverse_bandwidth.is_meta else f"{self.bandwidth:.6g}"
        return f"bandwidth={width}, parameterization={self.parameterization!r}"


class DotProductSimilarity(nn.Module):
    """Scaled dot product: ``s(q, k) = q . k / sqrt(E)``. It learns nothing itself.

    Examples
    --------
    >>> import torch
    >>> DotProductSimilarity()(torch.ones(1, 4), torch.ones(2, 4)).tolist()
    [[2.0, 2.0]]
    """

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, E) and keys (..., S, E)."""
        _check_sizes(query, key, query.shape[-1], query.shape[-1])
        return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


class AdditiveSimilarity(nn.Module):
    """Additive score: ``s(q, k) = v . tanh(W_q q + W_k k)``, for queries and keys of different sizes.

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
        _check_sizes(query, key, self.query_size, self.key_size)
        hidden = torch.tanh(self.query_map(query).unsqueeze(-2) + self.key_map(key).unsqueeze(-3))
        logits: Tensor = self.score(hidden).squeeze(-1)
        return logits


class BilinearSimilarity(nn.Module):
    """Bilinear score: ``s(q, k) = q . W k``, for queries and keys of different sizes.

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

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, query_size) and keys (..., S, key_size)."""
        _check_sizes(query, key, self.query_size, self.key_size)
        logits: Tensor = query @ self.key_map(key).transpose(-2, -1)
        return logits


def _check_sizes(query: Tensor, key: Tensor, query_size: int, key_size: int) -> None:
    if query.shape[-1] != query_size or key.shape[-1] != key_size:
        raise ValueError(
            f"expected queries of size {query_size} and keys of size {key_size} in the last dimension, "
            f"got shapes {tuple(query.shape)} and {tuple(key.shape)}"
        )
