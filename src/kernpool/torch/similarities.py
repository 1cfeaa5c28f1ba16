"""Similarities for attention pooling: kernels of a distance with learnable bandwidths, and attention scores.

`KernelSimilarity` and `GaussianSimilarity` compare queries and keys by distance. `DotProductSimilarity`,
`BilinearSimilarity` and `AdditiveSimilarity` are scores whose queries and keys need not live in one space.

Logarithms of the built-in kernels are written here again for torch, as functions of the squared distance in
bandwidths. They are the functions of `kernpool.kernels`, differentiable everywhere. Three traps are why:

- The derivative of a square root at zero is infinite. `_root` gives it slope zero there, the slope of a symmetric
  function, as the gradients in NumPy do.
- Outside of a compact support the logarithm is minus infinity. A ``where`` alone would still send zero times
  infinity, which is NaN, back through the branch not taken; so that branch sees a harmless number instead.
- NaN has to stay NaN, rather than end up on the far side of a comparison as a weight of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from kernpool.data.array_validation import refuse_foreign
from kernpool.execution.error_messages import abbreviate, as_count, check_choice, explain_calls
from kernpool.kernels import BUILT_IN, Kernel, Polynomial, get_kernel, is_built_in
from kernpool.torch.masks import at_least_single, check_tensors, without_autocast

LogProfile = Callable[[Tensor], Tensor]


def _root(squared: Tensor) -> Tensor:
    return torch.sqrt(squared.clamp(min=torch.finfo(squared.dtype).tiny))  # whose slope below is zero


def _log_within_support(u: Tensor, log_profile: LogProfile) -> Tensor:
    """Return the log kernel ``log_profile(u)`` where ``u < 1``, its support, and minus infinity elsewhere."""
    outside = u >= 1
    return log_profile(u.masked_fill(outside, 0.0)).masked_fill(outside, -torch.inf)


def _flat(squared: Tensor) -> Tensor:
    """Return the log of a constant kernel: zero with zero gradient, but NaN where the squared distance is NaN."""
    return squared.masked_fill(~torch.isnan(squared), 0.0)


def _gaussian(squared: Tensor) -> Tensor:
    return -0.5 * squared


def _polynomial(form: Polynomial) -> LogProfile:
    """Return the logarithm of ``height (1 - u**inner)**outer`` as a function of the squared distance."""
    if not form.outer:
        return lambda squared: _flat(squared).masked_fill(squared > 1, -torch.inf)  # the edge belongs to the window

    def log_profile(u: Tensor) -> Tensor:
        logarithm = torch.log1p(-u)
        if degree > 1:  # 1 - u^3 = (1 - u)(1 + u + u^2): near the edge 1 - u is exact, so small weights keep all digits
            logarithm = logarithm + torch.log1p(sum((u**power for power in range(2, degree)), start=u))
        return math.log(form.height) + form.outer * logarithm

    degree = form.inner if form.inner % 2 else form.inner // 2  # in the distance, or in its square
    return lambda squared: _log_within_support(_root(squared) if form.inner % 2 else squared, log_profile)


def _cosine(squared: Tensor) -> Tensor:
    # cos(pi u / 2), written from the edge inwards for the same reason
    return _log_within_support(
        _root(squared), lambda u: math.log(math.pi / 4) + torch.log(torch.sin(math.pi / 2 * (1.0 - u)))
    )


def _laplace(squared: Tensor) -> Tensor:
    return -_root(squared) - math.log(2)


def _logistic(squared: Tensor) -> Tensor:
    u = _root(squared)
    return -u - 2.0 * torch.log1p(torch.exp(-u))


def _log_profile_of(name: str) -> LogProfile:
    """Return the logarithm of a built-in kernel, by its form where that says all."""
    form = get_kernel(name).form
    return _polynomial(form) if isinstance(form, Polynomial) else OTHERS[name]


OTHERS: dict[str, LogProfile] = {
    "gaussian": _gaussian,
    "constant": _flat,
    "cosine": _cosine,
    "laplace": _laplace,
    "logistic": _logistic,
}
# A test holds them against every kernel that `kernpool` comes with.
LOG_PROFILES = {name: _log_profile_of(name) for name in BUILT_IN}


Form = Literal["shared", "per_feature", "linear"]


def read_bandwidth(
    bandwidth: float | Sequence[float], form: str, size: int | None, output_size: int | None
) -> tuple[float | list[float], int | None, int | None]:
    """Validate a similarity's initial bandwidth; return it with the sizes of the features and of the linear map."""
    check_choice("form", form, get_args(Form))
    for name, number in (("size", size), ("output_size", output_size)):
        if number is not None:
            as_count(name, number)
    if not isinstance(bandwidth, Tensor):
        refuse_foreign("bandwidth", bandwidth)
    try:
        bandwidths = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"bandwidth must be a positive number, or one per feature, got {abbreviate(bandwidth)}"
        ) from None
    if not np.all(np.isfinite(bandwidths) & (bandwidths > 0)):
        raise ValueError(f"bandwidth must be positive and finite, got {abbreviate(bandwidth)}")
    is_shared, features = form == "shared", size if bandwidths.ndim == 0 else bandwidths.size
    one_each = bandwidths.ndim < 2 and features and size in (None, features)
    if not (bandwidths.ndim == 0 if is_shared else one_each):
        raise ValueError(
            "bandwidth must be one number, for form='per_feature' or 'linear' together with size=, or for these forms "
            f"one per feature, got {abbreviate(bandwidth)} with form={form!r} and size={size}"
        )
    # More rows could not measure another distance, and rows of zeros would never learn.
    if output_size is not None and (form != "linear" or features is None or output_size > features):
        raise ValueError(
            f"output_size must be at most the number of features, and belongs to form='linear', got {output_size} for "
            f"{features} features with form={form!r}"
        )
    if is_shared or features is None:
        return float(bandwidths), size, None
    rows = (output_size or features) if form == "linear" else None
    return np.broadcast_to(bandwidths, features).tolist(), features, rows


def check_sizes(query: Tensor, key: Tensor, query_size: int | None = None, key_size: int | None = None) -> None:
    """Raise ValueError unless queries and keys have the numbers of columns that the similarity expects."""
    check_tensors(query=query, key=key)
    query_size = query.shape[-1] if query_size is None else query_size
    key_size = query_size if key_size is None else key_size
    if query.shape[-1] != query_size or key.shape[-1] != key_size:
        raise ValueError(
            f"expected queries of size {query_size} and keys of size {key_size} in the last dimension, "
            f"got shapes {tuple(query.shape)} and {tuple(key.shape)}"
        )


class Products(NamedTuple):
    """Gaussian logits as dot products of centred points, in the precision of the points."""

    by_key: Tensor  # shape (..., S, 1): minus half of the squared key, which is added

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S); never in half precision, in which they would be mostly rounding."""
        with without_autocast(query.device):
            return (query @ key.mT).add_(self.by_key.mT)

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys with one more column each, so that their dot products are the logits."""
        return pad(query, (0, 1), value=1.0), torch.cat([key, self.by_key], dim=-1)


def is_traced() -> bool:
    """Return whether a program is made, for other numbers too, without derivatives of its own."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined]  # it is documented


def _differences(query: Tensor, key: Tensor) -> Tensor:
    return query.unsqueeze(-2) - key.unsqueeze(-3)


class _SquaredDistances(torch.autograd.Function):
    """Squared distances (..., L, S) without a table of differences, which takes 2 to 22 times as long."""

    # torch.cdist itself has neither second derivatives nor derivatives forward
    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, key: Tensor) -> Tensor:
        distance = torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist")
        return (distance * distance).clamp(max=torch.finfo(distance.dtype).max)  # infinity has no slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004  # as torch calls
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        query, key = ctx.saved_tensors
        slope = 2.0 * slope
        if torch.is_grad_enabled():  # for second derivatives
            slopes = slope.unsqueeze(-1) * _differences(query, key)
            return slopes.sum(-2), -slopes.sum(-3)
        sides = (slope, query, key), (slope.mT.contiguous(), key, query)
        # slopes of distances that count as one, whose direction is the difference
        return tuple(torch.ops.aten._cdist_backward(by, *points, 2.0, torch.ones_like(by)) for by, *points in sides)

    @staticmethod
    def jvp(ctx: Any, *moved: Tensor) -> Tensor:
        return 2.0 * (_differences(*ctx.saved_tensors) * _differences(*moved)).sum(-1)


Parameterization = Literal["log_bandwidth", "inverse_bandwidth"]


@explain_calls
class KernelSimilarity(nn.Module):
    r"""Logarithm of a kernel of the distance in units of learnable bandwidths: ``s(q, k) = log K(|u|)``.

    .. math:: u = (q - k) / h \;\text{(shared)}, \qquad u_a = (q_a - k_a) / h_a \;\text{(per feature)}, \qquad
              u = M (q - k) \;\text{(linear)}

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any kernel that the package comes with, by name or alias; see `kernpool.kernel_names`.
    bandwidth : float or sequence of float, default=1.0
        Bandwidth h at the start: one number, or for the forms "per_feature" and "linear" one per feature. The attribute
        of this name is what training has made of it; setting it starts anew.
    form : {"shared", "per_feature", "linear"}, default="shared"
        One width for all features; one for each, which learns how relevant features are; or a full linear map, which
        learns directions too, and on few data learns noise unless training is stopped early.
    size : int, optional
        Number of features. The forms "per_feature" and "linear" need it where `bandwidth` is one number.
    output_size : int, optional
        Rows of the linear map, at most `size`, which is the default; fewer of them reduce dimensions.
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
        If a bandwidth is not positive and finite, sizes disagree, a name is unknown, or the kernel is one of
        your own.

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

    **Rounding, cost.** Distances are formed from differences, as by ``torch.cdist`` in its time and in memory of O(L
    S), second derivatives and forward mode in O(L S E). With one width for all features differences are exact; with
    several, points are scaled about the first key, on the processor in double precision. Layers take
    Gaussian weights from matrix products of centred points: in the precision of the data where the keys of each
    sequence are within 3 bandwidths of their mean, and within 1.2 on average (root mean square); of float32 on the
    processor in double precision within 1e4. In float32, values are then right to 2e-6 of their range, and gradients
    are as by ``torch.cdist``, in tight clusters a digit less. On accelerators leave
    ``torch.backends.cuda.matmul.allow_tf32`` False: products with it have three digits. Logits have the precision of
    the data, float32 at least; give float64 data a float64 width (``dtype=``), or the width alone limits the result to
    seven digits.

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
        parameterization: Parameterization = "log_bandwidth",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
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
        """Reset the learnable bandwidths, or the linear map, to their initial values."""
        with torch.no_grad():
            self._learned.copy_(torch.tensor(self._start(), device=self._learned.device))

    def _start(self) -> NDArray[np.float64]:
        first = np.asarray(self._first_bandwidth)
        if self.form == "linear":
            return np.asarray(np.eye(self.output_size or first.size, first.size) / first)
        return np.asarray(np.log(first) if self.parameterization == "log_bandwidth" else 1.0 / first)

    @property
    def inverse_bandwidth(self) -> Tensor:
        """Differentiable inverse bandwidth ``1 / h`` of shape () or (size,), float32 at least; not of a linear map."""
        learned = at_least_single(self._learned)
        return torch.exp(-learned) if self.parameterization == "log_bandwidth" else learned

    @property
    def bandwidth(self) -> float | list[float]:
        """Current bandwidth, a number or a list of one per feature; for a linear map, 1 / its singular values."""
        with torch.no_grad():
            inverse = (
                torch.linalg.svdvals(at_least_single(self.map)) if self.form == "linear" else self.inverse_bandwidth
            )
            found: float | list[float] = (1.0 / inverse.abs().cpu().double()).tolist()
        return found

    @bandwidth.setter
    def bandwidth(self, bandwidth: float | Sequence[float]) -> None:
        """Start anew from other bandwidths, as the constructor takes them; `reset_parameters` returns to them."""
        self._first_bandwidth, _, _ = read_bandwidth(bandwidth, self.form, self.size, self.output_size)
        self.reset_parameters()

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys less the first key, divided by the bandwidths; on the processor in double precision.

        Less the mean of the keys they would lose digits where one key is far from all others.
        """
        check_sizes(query, key, self.size)
        precision = torch.float64 if key.is_cpu else at_least_single(key).dtype
        first = key.detach()[..., :1, :].sum(-2, keepdim=True)
        return self._scaled(*(points.to(precision) - first for points in (query, key)))

    def _scaled(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys in units of the widths, which are converted once: slopes by them nearly cancel."""
        is_map = self.form == "linear"
        widths = (self.map.T if is_map else self.inverse_bandwidth).to(key.dtype)
        with without_autocast(key.device):  # distances between points in half precision are mostly rounding
            return (query @ widths, key @ widths) if is_map else (query * widths, key * widths)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, E) and keys (..., S, E), float32 at least."""
        dtype, factor = at_least_single(query).dtype, None
        if self.form == "shared":
            check_sizes(query, key, self.size)
            query, key, inverse = at_least_single(query), at_least_single(key), self.inverse_bandwidth.to(dtype)
            # Powers of two round nothing. With half of one, squares that overflow do so once more times 4 to 16.
            unit = torch.exp2(torch.floor(torch.log2(inverse.detach().abs())) - 1.0).clamp(1e-30, 1e30)
            query, key, factor = query * unit, key * unit, (inverse / unit).square()
        else:
            query, key = self.points(query, key)
        batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        squares = _SquaredDistances.forward if is_traced() else _SquaredDistances.apply
        squared = squares(query.expand(*batch, -1, -1), key.expand(*batch, -1, -1))
        return LOG_PROFILES[self.kernel_name](squared if factor is None else squared * factor).to(dtype)

    def as_products(self, query: Tensor, key: Tensor, used: Tensor | None) -> tuple[Products, Tensor, Tensor] | None:
        """Return the Gaussian as products, with its points; None where these lose digits, or there are no numbers.

        `used` has shape (..., S, 1): keys that are padding, and zero, are left out of the center.
        """
        check_sizes(query, key, self.size)
        if self.kernel_name != "gaussian":
            return None
        query, key = at_least_single(query), at_least_single(key)
        center = key.detach().mean(-2, keepdim=True)
        share: Tensor | float = 1.0
        if used is not None:
            share = used.float().mean(-2, keepdim=True).clamp(min=1e-30)
            center = center / share
        # The rounding of products grows with half of the squared distance of keys from their center, in bandwidths: at
        # most this of a sequence's furthest key, for errors below 3e-7 of values of size one, and on average, for those
        # of gradients: two columns, 300 rows: 1.5 to 4 times those of explicit differences, .8 to 1.2 times those of
        # torch.cdist; two tight clusters 4 to 10 times. In double precision, at half the cost of differences: below 1.
        limits = (key.dtype, 4.5, 0.75), (torch.float64, 5e7, 5e7)
        for precision, largest, usual in limits[: 1 + (key.is_cpu and key.dtype == torch.float32)]:
            far, near = (points.to(precision) - center for points in (query, key))
            if used is not None:
                near = near.masked_fill(~used, 0.0)
            far, near = self._scaled(far, near)
            by_key = -0.5 * (near * near).sum(-1, keepdim=True)
            spread = by_key.detach()
            try:
                furthest = -spread.min().item()
                is_near = furthest <= usual or (
                    furthest <= largest and (spread.mean(-2, keepdim=True) / share).min().item() >= -usual
                )
                if is_near and torch.linalg.vector_norm(far.detach()).item() < 1e15:
                    return Products(by_key), far, near
            except RuntimeError:  # of torch.func.vmap, the device "meta" and no keys, which have no numbers to look at
                return None
        return None

    def extra_repr(self) -> str:
        """Return the kernel and the current bandwidths, for ``repr``."""
        return f"kernel={self.kernel_name!r}, {self._shown()}"

    def _shown(self) -> str:
        if self.form == "linear":
            return f"size={self.size}, output_size={self.output_size}, form='linear'"
        if self._learned.is_meta:
            shown = "?"
        elif isinstance(self.bandwidth, float):
            shown = f"{self.bandwidth:.6g}"
        else:
            shown = f"[{', '.join(f'{h:.6g}' for h in self.bandwidth)}]"
        form = "" if self.form == "shared" else f", form={self.form!r}"
        return f"bandwidth={shown}{form}, parameterization={self.parameterization!r}"


@explain_calls
class GaussianSimilarity(KernelSimilarity):
    r"""Gaussian similarity with learnable bandwidths: ``s(q, k) = -|q - k|^2 / (2 h^2)``.

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

    extra_repr = KernelSimilarity._shown


def _differentiable(kernel: str | Kernel) -> str:
    """Return the name of a built-in kernel, which torch can differentiate; raise ValueError for others."""
    record = get_kernel(kernel)
    if not is_built_in(record):
        raise ValueError(
            f"{record!r} is a product kernel or made of NumPy functions: torch has no gradients of it; use one of "
            f"{', '.join(LOG_PROFILES)}, or write an nn.Module (query, key) -> log K"
        )
    return record.name


@explain_calls
class DotProductSimilarity(nn.Module):
    """Scaled dot product: ``s(q, k) = scale q @ k``, where by default ``scale = 1 / sqrt(E)``. It has no parameters.

    Parameters
    ----------
    scale : float, optional
        Factor of the dot products, as in torch's ``scaled_dot_product_attention``.

    Raises
    ------
    ValueError
        If the scale is not finite.

    Examples
    --------
    >>> import torch
    >>> DotProductSimilarity()(torch.ones(1, 4), torch.ones(2, 4)).tolist()
    [[2.0, 2.0]]
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        if scale is not None and not math.isfinite(scale):
            raise ValueError(f"scale must be a finite number, or None for 1 / sqrt(E), got {scale}")
        self.scale = scale

    def extra_repr(self) -> str:
        """Return the scale, where one is set, for ``repr``."""
        return "" if self.scale is None else f"scale={self.scale:g}"

    def factor(self, columns: int) -> float:
        """Return the factor of the dot products of so many columns."""
        return 1.0 / math.sqrt(max(columns, 1)) if self.scale is None else self.scale

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys as they are: their dot products are the scores."""
        check_sizes(query, key)
        return query, key

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return logits of shape (..., L, S) for queries (..., L, Eq) and keys (..., S, Ek)."""
        query, key = self.points(query, key)
        return query @ key.mT * self.factor(query.shape[-1])


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
class BilinearSimilarity(DotProductSimilarity):
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
        super().__init__(scale=1.0)
        self.query_size, self.key_size = query_size, key_size
        self.key_map = nn.Linear(key_size, query_size, bias=False, device=device, dtype=dtype)

    def points(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries, and keys times the learned matrix: their dot products are the scores."""
        check_sizes(query, key, self.query_size, self.key_size)
        return query, self.key_map(key)
