"""Built-in smoothing kernels: formulas, and constants from Wand and Jones, Kernel Smoothing (1995)."""

import math

import numpy as np

from kernpool.kernels.registry import (
    Array,
    Exponential,
    Flat,
    Form,
    Gaussian,
    Kernel,
    NearlyExponential,
    Polynomial,
    Profile,
    logarithm,
    register_kernel,
)


def _zero(u: Array) -> Array:
    return np.zeros_like(u)


def _one_minus_square(u: Array) -> Array:
    # (1 - u)(1 + u) and not 1 - u^2: near the edge 1 - u is exact, so small weights keep all their digits.
    return np.maximum(1.0 - u, 0.0) * (1.0 + u)


def _gaussian(u: Array) -> Array:
    return np.exp(-0.5 * u**2)


def _boxcar(u: Array) -> Array:
    return np.where(u <= 1.0, 1.0, 0.0)  # the edge belongs to the window


def _epanechnikov(u: Array) -> Array:
    return 0.75 * _one_minus_square(u)


def _triangular(u: Array) -> Array:
    return np.maximum(1.0 - u, 0.0)


def _biweight(u: Array) -> Array:
    return 15 / 16 * _one_minus_square(u) ** 2


def _triweight(u: Array) -> Array:
    return 35 / 32 * _one_minus_square(u) ** 3


def _tricube(u: Array) -> Array:
    # 1 - u^3 factored for the same reason as 1 - u^2
    return 70 / 81 * (np.maximum(1.0 - u, 0.0) * (1.0 + u + u**2)) ** 3


def _cosine(u: Array) -> Array:
    # cos(pi u / 2), written from the edge inwards so that it vanishes exactly at u = 1
    return math.pi / 4 * np.sin(math.pi / 2 * np.maximum(1.0 - u, 0.0))


def _laplace(u: Array) -> Array:
    return 0.5 * np.exp(-u)


def _log_logistic(u: Array) -> Array:
    return -u - 2.0 * np.log1p(np.exp(-u))


def _compact(
    name: str,
    profile: Profile,
    log_slope: Profile,
    constants: tuple[float, float, float],
    form: Form | None,
    *aliases: str,
) -> None:
    register_kernel(Kernel(name, profile, logarithm(profile), log_slope, 1.0, *constants, aliases, form))


def _infinite(
    name: str,
    profile: Profile,
    log_profile: Profile,
    log_slope: Profile,
    constants: tuple[float, float, float],
    form: Form,
    *aliases: str,
) -> None:
    register_kernel(Kernel(name, profile, log_profile, log_slope, math.inf, *constants, aliases, form))


# The constants are (integral, roughness, second moment), as in Wand and Jones, Kernel Smoothing (1995), Table B.1.
_infinite(
    "gaussian",
    _gaussian,
    lambda u: -0.5 * u**2,
    np.negative,
    (math.sqrt(2 * math.pi), 0.5 / math.sqrt(math.pi), 1.0),
    Gaussian(),
)
_compact("boxcar", _boxcar, _zero, (2.0, 1 / 2, 1 / 3), Polynomial(2, 0, 1.0), "tophat")
_infinite("constant", np.ones_like, _zero, _zero, (math.inf, 0.0, math.inf), Flat())
_compact(
    "epanechnikov",
    _epanechnikov,
    lambda u: -2 * u / _one_minus_square(u),
    (1.0, 3 / 5, 1 / 5),
    Polynomial(2, 1, 3 / 4),
)
_compact("triangular", _triangular, lambda u: -1 / (1 - u), (1.0, 2 / 3, 1 / 6), Polynomial(1, 1, 1.0), "linear")
_compact(
    "biweight",
    _biweight,
    lambda u: -4 * u / _one_minus_square(u),
    (1.0, 5 / 7, 1 / 7),
    Polynomial(2, 2, 15 / 16),
    "quartic",
)
_compact(
    "triweight",
    _triweight,
    lambda u: -6 * u / _one_minus_square(u),
    (1.0, 350 / 429, 1 / 9),
    Polynomial(2, 3, 35 / 32),
)
_compact(
    "tricube",
    _tricube,
    lambda u: -9 * u**2 / ((1 - u) * (1 + u + u**2)),
    (1.0, 175 / 247, 35 / 243),
    Polynomial(3, 3, 70 / 81),
)
_compact(
    "cosine",
    _cosine,
    lambda u: -math.pi / 2 / np.tan(math.pi / 2 * (1 - u)),
    (1.0, math.pi**2 / 16, 1 - 8 / math.pi**2),
    None,
)
_infinite(
    "laplace",
    _laplace,
    lambda u: -u - math.log(2),
    lambda u: -np.ones_like(u),
    (1.0, 1 / 4, 2.0),
    Exponential(0.5),
    "exponential",
)
_infinite(
    "logistic",
    lambda u: np.exp(_log_logistic(u)),
    _log_logistic,
    lambda u: -np.tanh(u / 2),
    (1.0, 1 / 6, math.pi**2 / 3),
    NearlyExponential(1 / 4),
)
