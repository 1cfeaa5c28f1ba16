"""Similarities by distance: a kernel of the distance between query and key, with widths that learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kernpool.core.similarity import check_composition
from kernpool.execution.messages import check_choice, explain_calls
from kernpool.kernels import Kernel, get_kernel, is_built_in
from kernpool.torch.masks import at_least_single, check_tensors, without_autocast
from kernpool.torch.similarities.profiles import LOG_PROFILES
from kernpool.torch.similarities.widths import Form, check_sizes, read_bandwidth

Parameterization = Literal["log_bandwidth", "inverse_bandwidth"]


@explain_calls
class KernelSimilarity(nn.Module):
    r"""A kernel of the distance in learnable bandwidths: ``s(q, k) = log K(|u|)``.

    .. math:: u = (q - k) / h \;\text{(shared)}, \qquad u_a = (q_a - k_a) / h_a \;\text{(per feature)}, \qquad
              u = M (q - k) \;\text{(linear)}

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any kernel that the package comes with, by name or alias; see `kernpool.kernel_names`.
    bandwidth : float or sequence of float, default=1.0
        Bandwidth h at the start: one number, or for the forms "per_feature" and "linear" one per feature. The attribute
        of this name is what training has made of it.
    form : {"shared", "per_feature", "linear"}, default="shared"
        One width for all features; one for each, which learns how relevant features are; or a full linear map, which
        learns directions too, and on few data learns noise unless training is stopped early.
    size : int, optional
        Number of features. The forms "per_feature" and "linear" need it where `bandwidth` is one number.
    output_size : int, optional
        Rows of the linear map, at most `size`, which is the default; fewer of them reduce dimensions.
    composition : {"radial"}, default="radial"
        Here for symmetry with `kernpool.pool`: products of one kernel per column are refused.
    parameterization : {"log_bandwidth", "inverse_bandwidth"}, default="log_bandwidth"
        What is learned: ``log h``, which keeps h positive and makes equal steps equal factors; or ``w = 1 / h`` itself,
        as in ``softmax(-((q - k) w)^2 / 2)`` of the textbooks. There only ``w^2`` matters, and ``w = 0`` is a
        stationary point, so for anything but following a textbook use the first. A linear map is its own parameter.
    device, dtype
        As for any module.

    Attributes
    ----------
    log_bandwidth, w or map : nn.Parameter
        What is learned: of shape () or (size,), or for a linear map (output_size, size), at the start a diagonal of
        ``1 / bandwidth``.
    kernel_name : str
        Name of the kernel, without aliases.
    form : str
        As given.

    Raises
    ------
    ValueError
        If a bandwidth is not positive and finite, sizes disagree, a name is unknown, the kernel is one of your
        own, or the composition is "product".

    See Also
    --------
    kernpool.pool : The same numbers without gradients; ``empty="zero"`` is what the layers do.

    Notes
    -----
    **Compact support.** Outside of it the logit is minus infinity, with a gradient of exactly zero, and a query without
    any key within the support pools to zero. Such a query does not pull on the width: start wide enough, or take a
    kernel that is positive everywhere. The boxcar's and the constant kernel's logits have no slope, so they learn
    nothing. Keys at ``|u| = 1`` belong to the boxcar as far as the rounding of the width allows.

    **Distance zero.** The slope there is zero, as in NumPy, for the triangular and Laplace kernels too, which have a
    kink. Second derivatives are right wherever no query sits on a key; for Gaussian, Epanechnikov, biweight and
    triweight everywhere.

    **Extreme widths.** A width that training drives to zero leaves each query its nearest key, or, if the support is
    compact, nothing but keys at distance zero; one that it drives to infinity leaves the mean of all keys. Either way
    gradients go to zero: finite, but training stands still. Logits of size 1e8 in float32, 1e16 in float64, round by
    more than one, and then say nothing of keys at nearly the same distance: the dense layer pools what they say, while
    the engine (``algorithm="fused"``) takes gradients from differences of distances. ``log_bandwidth`` between -40 and
    40 does no harm to data of size one in float32. Squared distances overflow at 1.8e19 bandwidths in float32 and
    1.3e154 in float64; a query whose keys are all that far counts as having none.

    **Rounding, cost.** Distances are formed from differences. The expansion ``|q|^2 + |k|^2 - 2 q.k`` is a matrix
    product and faster, and loses digits in proportion to the square of the distance from the origin. Memory is
    O(L S E) here. Logits have the precision of the data, float32 at least; give float64 data a float64 width
    (``dtype=``), or the width alone limits the result to seven digits.

    References
    ----------
    .. [1] K. Q. Weinberger and G. Tesauro, "Metric learning for kernel regression", AISTATS (2007), for the linear map.

    Examples
    --------
    >>> import torch
    >>> similarity = KernelSimilarity("triangular", bandwidth=2.0)
    >>> similarity(torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [5.0]])).exp().tolist()
    [[1.0, 0.5, 0.0]]
    >>> KernelSimilarity("laplace", bandwidth=[0.5, 2.0], form="per_feature").bandwidth
    [0.5, 2.0]
    """

    log_bandwidth: nn.Parameter
    w: nn.Parameter
    map: nn.Parameter

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        bandwidth: float | Sequence[float] = 1.0,
        *,
        form: Form = "shared",
        size: int | None = None,
        output_size: int | None = None,
        composition: str = "radial",
        parameterization: Parameterization = "log_bandwidth",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_composition(composition)
        if composition == "product":
            raise ValueError(
                "composition='product' is not available for torch; use 'radial', which is the same for the Gaussian"
            )
        check_choice("parameterization", parameterization, get_args(Parameterization))
        self.kernel_name = _differentiable(kernel)
        self._first_bandwidth, self.size, self.output_size = read_bandwidth(bandwidth, form, size, output_size)
        self.form, self.parameterization = form, parameterization
        parameter = nn.Parameter(torch.empty(self._start().shape, device=device, dtype=dtype))
        name = "w" if parameterization == "inverse_bandwidth" else "log_bandwidth"
        self._learned_name = "map" if form == "linear" else name
        self.register_parameter(self._learned_name, parameter)
        self.reset_parameters()

    @property
    def _learned(self) -> Tensor:
        learned: Tensor = getattr(self, self._learned_name)
        return learned

    def reset_parameters(self) -> None:
        """Set the widths back to where they started."""
        with torch.no_grad():
            self._learned.copy_(torch.tensor(self._start(), device=self._learned.device))

    def _start(self) -> NDArray[np.float64]:
        first = np.asarray(self._first_bandwidth)
        if self.form == "linear":
            return np.asarray(np.eye(self.output_size or first.size, first.size) / first)
        return np.asarray(np.log(first) if self.parameterization == "log_bandwidth" else 1.0 / first)

    @property
    def inverse_bandwidth(self) -> Tensor:
        """``1 / h``, differentiable, float32 at least: of shape () or (size,), and one for a linear map."""
        learned = at_least_single(self._learned)
        if self.form == "linear":
            return torch.ones((), device=learned.device, dtype=learned.dtype)
        return torch.exp(-learned) if self.parameterization == "log_bandwidth" else learned

    @property
    def bandwidth(self) -> float | list[float]:
        """The bandwidth as it is now, a number or a list of one per feature; of a linear map 1 over singular values."""
        with torch.no_grad():
            inverse = (
                torch.linalg.svdvals(at_least_single(self.map)) if self.form == "linear" else self.inverse_bandwidth
            )
            found: float | list[float] = (1.0 / inverse.abs().cpu().double()).tolist()
        return found

    def mapped(self, x: Tensor) -> Tensor:
        """Map queries or keys, of shape (..., rows, size), to where distances are measured: ``x @ map.T`` or `x`."""
        if self.form != "linear":
            return x
        x = at_least_single(x)
        with without_autocast(x.device):  # distances between points in half precision are mostly rounding
            return x @ self.map.to(x.dtype).T

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return the points whose distance it is of: mapped, with the center of the keys at the origin, or as given."""
        check_sizes(query, key, self.size)
        if self.form != "linear":
            return query, key
        center = _center_of(key)  # a map of differences in effect, at the price of a map of points
        return self.mapped(query - center), self.mapped(key - center)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, E) and keys (..., S, E), float32 at least."""
        check_tensors(query=query, key=key)
        query, key = self.points(at_least_single(query), at_least_single(key))
        difference = query.unsqueeze(-2) - key.unsqueeze(-3)
        scaled = difference * self.inverse_bandwidth.to(difference.dtype)
        return LOG_PROFILES[self.kernel_name](scaled.square().sum(dim=-1))

    def extra_repr(self) -> str:
        """Show the kernel and the current widths."""
        return f"kernel={self.kernel_name!r}, {self._widths_repr()}"

    def _widths_repr(self) -> str:
        if self.form == "linear":
            shown = f"size={self.size}, output_size={self.output_size}"
        elif self._learned.is_meta:
            shown = "bandwidth=?"
        elif isinstance(self.bandwidth, float):
            shown = f"bandwidth={self.bandwidth:.6g}"
        else:
            shown = f"bandwidth=[{', '.join(f'{h:.6g}' for h in self.bandwidth)}]"
        form = "" if self.form == "shared" else f", form={self.form!r}"
        return shown + form + ("" if self.form == "linear" else f", parameterization={self.parameterization!r}")


@explain_calls
class GaussianSimilarity(KernelSimilarity):
    r"""Gaussian kernel with learnable widths: ``s(q, k) = -|q - k|^2 / (2 h^2)``.

    Parameters
    ----------
    bandwidth : float or sequence of float, default=1.0
        Bandwidth h at the start; the attribute of this name is what training has made of it.
    form, size, output_size, parameterization, device, dtype
        As in `KernelSimilarity`.

    Attributes
    ----------
    log_bandwidth, w or map : nn.Parameter
        What is learned.

    Raises
    ------
    ValueError
        As in `KernelSimilarity`, of which this is the Gaussian case.

    Notes
    -----
    What is said there of precision, of memory and of extreme widths holds here.

    Examples
    --------
    >>> import torch
    >>> similarity = GaussianSimilarity(bandwidth=2.0)
    >>> similarity(torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]])).tolist()
    [[-0.0, -0.5]]
    >>> GaussianSimilarity(0.5, parameterization="inverse_bandwidth").w.item()
    2.0
    """

    def __init__(
        self,
        bandwidth: float | Sequence[float] = 1.0,
        *,
        form: Form = "shared",
        size: int | None = None,
        output_size: int | None = None,
        parameterization: Parameterization = "log_bandwidth",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            "gaussian",
            bandwidth,
            form=form,
            size=size,
            output_size=output_size,
            parameterization=parameterization,
            device=device,
            dtype=dtype,
        )

    def extra_repr(self) -> str:
        """Show the current widths."""
        return self._widths_repr()


def _differentiable(kernel: str | Kernel) -> str:
    """Return the name of a kernel that has a differentiable twin for torch."""
    record = get_kernel(kernel)
    if not is_built_in(record):
        raise ValueError(
            f"{record!r} is made of NumPy functions, which have no gradients in torch; use one of "
            f"{', '.join(LOG_PROFILES)}, or write an nn.Module (query, key) -> log K"
        )
    return record.name


def _center_of(key: Tensor) -> Tensor:
    """Return the mean of the finite keys, which no distance depends on: near it, mapped points lose few digits."""
    key = key.detach()
    return torch.where(torch.isfinite(key), key, 0.0).sum(dim=-2, keepdim=True) / max(key.shape[-2], 1)
