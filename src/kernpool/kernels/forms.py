"""How kernels add up: what algorithms have to know of a formula, as data.

A sum over keys costs less than a visit to each where a few numbers can stand for many keys: moments for a polynomial or
a Gaussian, a single sum for an exponential. What follows from a form is decided by the algorithms, never by a name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Polynomial:
    """``K(u) = height (1 - u**inner)**outer`` for ``u < 1``, zero beyond; the edge belongs to it if `outer` is 0."""

    inner: int
    outer: int
    height: float


@dataclass(frozen=True)
class Gaussian:
    """``K(u) = exp(-u**2 / 2)``: the product over columns is the kernel of the Euclidean distance."""


@dataclass(frozen=True)
class Exponential:
    """``K(u) = height exp(-u)``."""

    height: float


@dataclass(frozen=True)
class NearlyExponential:
    """``exp(-u)`` times a factor between `least` and 1: how far it reaches is known, but it does not add up."""

    least: float


@dataclass(frozen=True)
class Flat:
    """``K(u) = 1`` everywhere."""


Form = Polynomial | Gaussian | Exponential | NearlyExponential | Flat


def power_of_square(form: Form | None) -> int | None:
    """Return `p` of a kernel that is ``(1 - u**2)**p`` up to a factor, 0 for a boxcar; None for all others."""
    return form.outer if isinstance(form, Polynomial) and form.inner == 2 else None
