"""Encoders (learnable maps of rows), and the learned similarity: a Gaussian kernel of the encoded rows.

A map scales columns, is any linear map, or adds a perceptron to a linear map. All of them start from bandwidths, so
training begins at the fit that a search has found.
"""

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


class ColumnMap(nn.Module):
    r"""Encoder that scales columns: ``f(x)_a = r_a e^{t_a} (x_a - center_a) / spread_a``, with fixed r and learnable t.

    Parameters
    ----------
    center, spread, relevance : Tensor of shape (d,)
        Where columns lie, how they spread, and the spread over the bandwidth, r, to start from.
    shared : bool
        One t for all columns (a width), or one per column.
    """

    center: Tensor
    spread: Tensor
    relevance: Tensor

    def __init__(self, center: Tensor, spread: Tensor, relevance: Tensor, *, shared: bool) -> None:
        super().__init__()
        _keep(self, center=center, spread=spread, relevance=relevance)
        self.log_factor = nn.Parameter(torch.zeros_like(relevance[0] if shared else relevance))

    def forward(self, x: Tensor) -> Tensor:
        """Map rows x of shape (..., d) to encoded rows of the same shape, each column in units of its bandwidth."""
        return (x - self.center) / self.spread * (self.relevance * torch.exp(self.log_factor))


class LinearMap(nn.Module):
    r"""Encoder that is a linear map: ``f(x) = s A (x - center) / spread``, with a fixed number s and learnable A.

    Parameters
    ----------
    center, spread : Tensor of shape (d,)
        As in `ColumnMap`.
    start : Tensor of shape (E, d)
        What s A starts as. The number s is such that entries of A are about one where there is something, so that a
        learning rate means the same whatever the bandwidths.
    """

    center: Tensor
    spread: Tensor
    scale: Tensor

    def __init__(self, center: Tensor, spread: Tensor, start: Tensor) -> None:
        super().__init__()
        scale = (start.square().sum() / min(start.shape)).sqrt()
        _keep(self, center=center, spread=spread, scale=scale)
        self.weight = nn.Parameter(start / scale)

    def forward(self, x: Tensor) -> Tensor:
        """Map rows x of shape (..., d) to encoded rows of shape (..., E), in units of bandwidths."""
        return (x - self.center) / self.spread @ (self.scale * self.weight).T


class EncoderMap(nn.Module):
    r"""Encoder that adds a perceptron g to a linear map: ``f(x) = s (A z + g(z))``, ``z = (x - center) / spread``.

    The last layer of g starts as zero, so that f starts as the linear map, and the others as torch starts them.

    Parameters
    ----------
    center, spread, start
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
        start: Tensor,
        hidden_sizes: Sequence[int],
        generator: np.random.RandomState,
    ) -> None:
        super().__init__()
        self.linear = LinearMap(center, spread, start)
        sizes = (start.shape[1], *hidden_sizes, start.shape[0])
        layers = [nn.utils.skip_init(nn.Linear, a, b, dtype=start.dtype) for a, b in pairwise(sizes)]
        with torch.no_grad():  # not by torch's own, which would change the caller's global generator
            for layer in layers:
                for parameter in (layer.weight, layer.bias):
                    reach = 0.0 if layer is layers[-1] else 1.0 / math.sqrt(layer.in_features)
                    parameter.copy_(torch.tensor(generator.uniform(-reach, reach, tuple(parameter.shape))))
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Map rows x of shape (..., d) to encoded rows of shape (..., E), in units of bandwidths."""
        hidden = (x - self.linear.center) / self.linear.spread
        for layer in self.layers[:-1]:
            hidden = nn.functional.silu(layer(hidden))
        encoded: Tensor = self.linear(x) + self.linear.scale * self.layers[-1](hidden)
        return encoded


class MappedGaussianSimilarity(nn.Module):
    r"""Gaussian similarity of encoded rows: ``s(q, k) = -|f(q) - f(k)|^2 / 2``.

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
    start: Array | None = None,
    hidden_sizes: Sequence[int] = (64,),
    generator: Any = None,
    dtype: torch.dtype = torch.float64,
) -> nn.Module:
    """Create an encoder of a given kind, whose initial outputs are in units of bandwidths.

    Parameters
    ----------
    kind : {"per_feature", "width", "linear", "encoder"}
        `ColumnMap` with a factor per column or one for all, `LinearMap`, or `EncoderMap`.
    center, spread, relevance : ndarray of shape (d,)
        Centres and spreads of columns, and spreads over bandwidths.
    start : ndarray of shape (E, d), optional
        What a linear map or encoder starts as, for standardised columns; by default the diagonal matrix of the
        relevance.
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
    middle, unit, factor = (torch.tensor(array, dtype=dtype) for array in (center, spread, relevance))
    if kind in ("per_feature", "width"):
        return ColumnMap(middle, unit, factor, shared=kind == "width")
    first = torch.tensor(np.diag(relevance) if start is None else start, dtype=dtype)
    if kind == "linear":
        return LinearMap(middle, unit, first)
    generator = np.random.RandomState(0) if generator is None else generator
    return EncoderMap(middle, unit, first, hidden_sizes, generator)


def principal_start(Z: Array, relevance: Array, size: int) -> Array:
    r"""Return an initial matrix of `size` rows for a linear map: principal components in units of bandwidths.

    Of all matrices of so many rows it best preserves distances in bandwidths.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Standardised columns.
    relevance : ndarray of shape (d,)
        Spreads over bandwidths.
    size : int
        Number of rows.

    Returns
    -------
    ndarray of shape (size, d)
        :math:`U^\top \operatorname{diag}(r)`, where U holds the principal directions of the rows in bandwidths. With as
        many as columns the diagonal matrix itself, which is as good and can be read; with more, zeros below.

    Examples
    --------
    >>> principal_start(np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0]]), np.array([1.0, 1.0]), 1).round(2)
    array([[1., 0.]])
    """
    d = len(relevance)
    start = np.zeros((size, d))
    if size >= d:
        start[:d] = np.diag(relevance)
        return start
    rows = (Z - Z.mean(axis=0)) * relevance
    _, directions = np.linalg.eigh(rows.T @ rows)  # by ascending eigenvalue
    for i, direction in enumerate(directions.T[::-1][:size]):
        start[i] = direction * np.sign(direction[np.argmax(np.abs(direction))]) * relevance
    return start


def map_shapes(kind: str, d: int, output_size: int | None, hidden_sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the tensors in an encoder's state, without creating the encoder.

    Parameters
    ----------
    kind, hidden_sizes
        As in `make_map`.
    d : int
        Number of columns.
    output_size : int or None
        Rows of the start, None for d.

    Returns
    -------
    dict
        Shapes by name.

    Examples
    --------
    >>> map_shapes("linear", 3, 2, ())
    {'center': (3,), 'spread': (3,), 'scale': (), 'weight': (2, 3)}
    """
    size = d if output_size is None else output_size
    linear = {"center": (d,), "spread": (d,), "scale": (), "weight": (size, d)}
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
