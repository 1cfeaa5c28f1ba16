r"""Logarithms of the built-in kernels for torch, as functions of the squared distance in bandwidths.

The same functions as in `kernpool.kernels`, differentiable everywhere. Three traps are why they are written out here:

- The derivative of a square root at zero is infinite. `_root` gives it slope zero there, the slope of a symmetric
  function, as the gradients in NumPy do.
- Outside of a compact support the logarithm is minus infinity. A ``where`` alone would still send zero times infinity,
  which is NaN, back through the branch not taken; so that branch sees a harmless number instead.
- NaN has to stay NaN, rather than end up on the far side of a comparison as a weight of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

LogProfile = Callable[[Tensor], Tensor]


def _root(squared: Tensor) -> Tensor:
    zero = squared == 0
    return torch.sqrt(squared.masked_fill(zero, 1.0)).masked_fill(zero, 0.0)


def _supported(u: Tensor, log_profile: LogProfile) -> Tensor:
    """``log_profile`` where ``u < 1``, minus infinity elsewhere."""
    outside = u >= 1
    return log_profile(u.masked_fill(outside, 0.0)).masked_fill(outside, -torch.inf)


def _flat(squared: Tensor) -> Tensor:
    """Zero with zero gradient, and NaN for NaN."""
    return squared.masked_fill(~torch.isnan(squared), 0.0)


def _gaussian(squared: Tensor) -> Tensor:
    return -0.5 * squared


def _boxcar(squared: Tensor) -> Tensor:
    return _flat(squared).masked_fill(squared > 1, -torch.inf)  # the edge belongs to the window


def _epanechnikov(squared: Tensor) -> Tensor:
    return _supported(squared, lambda s: math.log(3 / 4) + torch.log1p(-s))


def _biweight(squared: Tensor) -> Tensor:
    return _supported(squared, lambda s: math.log(15 / 16) + 2.0 * torch.log1p(-s))


def _triweight(squared: Tensor) -> Tensor:
    return _supported(squared, lambda s: math.log(35 / 32) + 3.0 * torch.log1p(-s))


def _triangular(squared: Tensor) -> Tensor:
    return _supported(_root(squared), lambda u: torch.log1p(-u))


def _tricube(squared: Tensor) -> Tensor:
    # 1 - u^3 = (1 - u)(1 + u + u^2): near the edge 1 - u is exact, so small weights keep all their digits.
    return _supported(
        _root(squared), lambda u: math.log(70 / 81) + 3.0 * (torch.log1p(-u) + torch.log1p(u * (1.0 + u)))
    )


def _cosine(squared: Tensor) -> Tensor:
    # cos(pi u / 2), written from the edge inwards for the same reason
    return _supported(_root(squared), lambda u: math.log(math.pi / 4) + torch.log(torch.sin(math.pi / 2 * (1.0 - u))))


def _laplace(squared: Tensor) -> Tensor:
    return -_root(squared) - math.log(2)


def _logistic(squared: Tensor) -> Tensor:
    u = _root(squared)
    return -u - 2.0 * torch.log1p(torch.exp(-u))


# By name; a test holds them against every kernel that `kernpool` comes with.
LOG_PROFILES: dict[str, LogProfile] = {
    "gaussian": _gaussian,
    "boxcar": _boxcar,
    "constant": _flat,
    "epanechnikov": _epanechnikov,
    "triangular": _triangular,
    "biweight": _biweight,
    "triweight": _triweight,
    "tricube": _tricube,
    "cosine": _cosine,
    "laplace": _laplace,
    "logistic": _logistic,
}
