"""Maps that learn which differences between rows matter: a Gaussian similarity of mapped rows is one of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kernpool.torch.similarities import GaussianSimilarity

Array = NDArray[np.float64]

MAPS = ("per_feature", "width", "linear", "encoder")


class ColumnMap(nn.Module):
    r"""Scale columns: ``f(x)_a = r_a e^{t_a} (x_a - center_a) / spread_a``, where t learns.

    Parameters
    ----------
    center, spread, relevance : Tensor of shape (d,)
        Where columns lie, how they spread, and the spread over the bandwidth, r, to start from.
    shared : bool
        One t for all columns (a width), or one per column.
    """

    def __init__(self, center: Tensor, spread: Tensor, relevance: Tensor, *, shared: bool) -> None:
        super().__init__()
        _keep(self, center=center, spread=spread, relevance=relevance)
        self.log_factor = nn.Parameter(torch.zeros_like(relevance[0] if shared else relevance))

    def forward(self, x: Tensor) -> Tensor:
        """Return rows of shape (..., d) in units of bandwidths."""
        return (x - self.center) / self.spread * (self.relevance * torch.exp(self.log_factor))


class LinearMap(nn.Module):
    r"""Any linear map: ``f(x) = A (x - center) / spread``, where A learns.

    Parameters
    ----------
    center, spread, relevance : Tensor of shape (d,)
        As in `ColumnMap`; A starts as the diagonal matrix of the relevance.
    output_size : int
        Rows of A; with fewer than d it starts from the most relevant columns.
    """

    def __init__(self, center: Tensor, spread: Tensor, relevance: Tensor, output_size: int) -> None:
        super().__init__()
        _keep(self, center=center, spread=spread)
        most = torch.argsort(relevance, descending=True, stable=True)[:output_size].sort().values
        weight = torch.zeros(output_size, len(relevance), dtype=relevance.dtype)
        weight[torch.arange(len(most)), most] = relevance[most]
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return rows of shape (..., output_size) in units of bandwidths."""
        return (x - self.center) / self.spread @ self.weight.T


class EncoderMap(nn.Module):
    r"""A linear map and a perceptron beside it: ``f(x) = A z + g(z)`` with ``z = (x - center) / spread``.

    The last layer of g starts as zero, so that f starts as the linear map, and the others as torch starts them.

    Parameters
    ----------
    center, spread, relevance, output_size
        As in `LinearMap`.
    hidden_sizes : sequence of int
        Widths of the hidden layers of g.
    generator : numpy.random.RandomState
        For the first weights.
    """

    def __init__(
        self,
        center: Tensor,
        spread: Tensor,
        relevance: Tensor,
        output_size: int,
        hidden_sizes: Sequence[int],
        generator: np.random.RandomState,
    ) -> None:
        super().__init__()
        self.linear = LinearMap(center, spread, relevance, output_size)
        sizes = (len(relevance), *hidden_sizes, output_size)
        layers = [nn.utils.skip_init(nn.Linear, a, b, dtype=relevance.dtype) for a, b in pairwise(sizes)]
        with torch.no_grad():  # not by torch's own, which would change the caller's global generator
            for layer in layers:
                for parameter in (layer.weight, layer.bias):
                    reach = 0.0 if layer is layers[-1] else 1.0 / math.sqrt(layer.in_features)
                    parameter.copy_(torch.tensor(generator.uniform(-reach, reach, tuple(parameter.shape))))
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return rows of shape (..., output_size) in units of bandwidths."""
        hidden = (x - self.linear.center) / self.linear.spread
        for layer in self.layers[:-1]:
            hidden = nn.functional.silu(layer(hidden))
        encoded: Tensor = self.linear(x) + self.layers[-1](hidden)
        return encoded


class MappedGaussianSimilarity(nn.Module):
    r"""Gaussian similarity of mapped rows: ``s(q, k) = -|f(q) - f(k)|^2 / 2``.

    Parameters
    ----------
    encoder : nn.Module
        f, the same for queries and keys. Its outputs are in units of bandwidths, so the width is fixed to one.

    Examples
    --------
    >>> similarity = MappedGaussianSimilarity(make_map("linear", np.zeros(2), np.ones(2), np.array([1.0, 2.0])))
    >>> row = torch.ones(1, 2, dtype=torch.float64)
    >>> similarity(row, 0 * row).item()
    -2.5
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        dtype = next(encoder.parameters()).dtype
        self.gaussian = GaussianSimilarity(1.0, dtype=dtype).requires_grad_(False)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, d) and keys (..., S, d)."""
        logits: Tensor = self.gaussian(self.encoder(query), self.encoder(key))
        return logits


def make_map(
    kind: str,
    center: Array,
    spread: Array,
    relevance: Array,
    *,
    output_size: int | None = None,
    hidden_sizes: Sequence[int] = (64,),
    generator: Any = None,
    dtype: torch.dtype = torch.float64,
) -> nn.Module:
    """Make a map that starts from bandwidths.

    Parameters
    ----------
    kind : {"per_feature", "width", "linear", "encoder"}
        `ColumnMap` with a factor per column or one for all, `LinearMap`, or `EncoderMap`.
    center, spread, relevance : ndarray of shape (d,)
        Centres and spreads of columns, and spreads over bandwidths.
    output_size : int, optional
        Of a linear map or encoder; d by default.
    hidden_sizes : sequence of int, default=(64,)
        Of an encoder.
    generator : numpy.random.RandomState, optional
        For the first weights of an encoder.
    dtype : torch.dtype, default=torch.float64
        Of parameters and buffers.

    Returns
    -------
    nn.Module
        From rows of shape (..., d) to rows in units of bandwidths.

    Examples
    --------
    >>> make_map("per_feature", np.zeros(2), np.ones(2), np.array([1.0, 2.0]))(torch.ones(1, 2)).tolist()
    [[1.0, 2.0]]
    """
    start = [torch.tensor(array, dtype=dtype) for array in (center, spread, relevance)]
    if kind in ("per_feature", "width"):
        return ColumnMap(*start, shared=kind == "width")
    size = len(relevance) if output_size is None else output_size
    if kind == "linear":
        return LinearMap(*start, size)
    return EncoderMap(*start, size, hidden_sizes, np.random.RandomState(0) if generator is None else generator)


def map_shapes(kind: str, d: int, output_size: int | None, hidden_sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Tell the names and shapes of everything in the state of a map, without making one.

    Parameters
    ----------
    kind, output_size, hidden_sizes
        As in `make_map`.
    d : int
        Number of columns.

    Returns
    -------
    dict
        Shapes by name.

    Examples
    --------
    >>> map_shapes("linear", 3, 2, ())
    {'center': (3,), 'spread': (3,), 'weight': (2, 3)}
    """
    size = d if output_size is None else output_size
    linear = {"center": (d,), "spread": (d,), "weight": (size, d)}
    if kind in ("per_feature", "width"):
        return {"center": (d,), "spread": (d,), "relevance": (d,), "log_factor": (d,) if kind == "per_feature" else ()}
    if kind == "linear":
        return dict(linear)
    shapes: dict[str, tuple[int, ...]] = {f"linear.{name}": shape for name, shape in linear.items()}
    for i, (before, after) in enumerate(pairwise((d, *hidden_sizes, size))):
        shapes |= {f"layers.{i}.weight": (after, before), f"layers.{i}.bias": (after,)}
    return shapes


def _keep(module: nn.Module, **buffers: Tensor) -> None:
    for name, buffer in buffers.items():
        module.register_buffer(name, buffer)
