"""Squares of kernels, and products of a kernel with itself at another bandwidth, as sums of kernels.

Variances of kernel estimates are sums over squared weights. They are pooling states again, because

    K(u) K(u / c) = sum_k f_k L_k(u / b_k),   c >= 1

with few terms. ``c = 1`` is the square.

=========================================== ======================================================== =========
kernel                                      product                                                  terms
=========================================== ======================================================== =========
gaussian                                    gaussian, bandwidth ``1 / sqrt(1 + c**-2)``              1
laplace                                     laplace, bandwidth ``1 / (1 + 1 / c)``, factor 1/2       1
boxcar, constant                            itself                                                   1
``height (1 - u**inner)**outer``            powers ``outer`` to ``2 outer`` of ``1 - u**inner``      1 + outer
cosine, logistic, kernels of your own       a kernel of its own, made of both profiles               1
=========================================== ======================================================== =========

The square of a power has one term. Powers that are not public kernels are registered here under internal names: the
compiled loops know them, and `kernel_names` does not list them. Terms of a product kernel are product kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import Array
from kernpool.kernels.registry import (
    PRODUCT,
    Exponential,
    Flat,
    Gaussian,
    Kernel,
    Polynomial,
    Profile,
    get_kernel,
    is_registered,
    kernel_names,
    logarithm,
    register_kernel,
)

# (inner, outer) of the powers that products of registered kernels are made of. Their loops are `algorithms/loops`.
POWERS = ((1, 2), (2, 4), (2, 5), (2, 6), (3, 4), (3, 5), (3, 6))


class Term(NamedTuple):
    """One term of a product of kernels, expanded as a sum of kernels.

    Parameters
    ----------
    factor : float
        Coefficient of the term.
    kernel : Kernel
        Its kernel.
    width : float
        Its bandwidth, in units of the first factor's; at most 1.
    """

    factor: float
    kernel: Kernel
    width: float


def square(kernel: Kernel) -> Term:
    """Return the square of a kernel, which is a single term.

    Examples
    --------
    >>> square(get_kernel("epanechnikov"))
    Term(factor=0.6, kernel=Kernel('biweight'), width=1.0)
    >>> square(get_kernel("gaussian"))
    Term(factor=1.0, kernel=Kernel('gaussian'), width=0.7071067811865475)
    """
    return products(kernel, 1.0)[0]


def products(kernel: Kernel, ratio: float) -> tuple[Term, ...]:
    """Expand :math:`K(u) K(u / c)`, a kernel times itself at another bandwidth, into a sum of kernels.

    Notes
    -----
    With :math:`s = 1 - u^r` and :math:`a = c^{-r}` the second factor of a power is :math:`(1 - a + a s)^p`; its
    binomial expansion has positive terms only, so that no digits are lost to cancellation. A product kernel has a
    single term, whose factor is of each column: a product of sums would have as many terms as columns are combined.

    Examples
    --------
    >>> for term in products(get_kernel("epanechnikov"), 2**0.5):
    ...     print(term)
    Term(factor=0.375, kernel=Kernel('epanechnikov'), width=1.0)
    Term(factor=0.3, kernel=Kernel('biweight'), width=1.0)
    """
    assert 1.0 <= ratio < math.inf, "the wider factor is the second"
    return _expanded(kernel, float(ratio))


@lru_cache(maxsize=256)
def _expanded(kernel: Kernel, ratio: float) -> tuple[Term, ...]:
    if kernel.radial is not None:
        term, *others = _expanded(kernel.radial, ratio)
        if others or not is_registered(term.kernel):
            return (Term(1.0, _of_profiles(kernel, ratio), 1.0),)
        return (term._replace(kernel=get_kernel(PRODUCT + term.kernel.name)),)
    match kernel.form:
        case Gaussian():
            return (Term(1.0, kernel, 1.0 / math.sqrt(1.0 + ratio**-2)),)
        case Exponential(height):
            return (Term(height, kernel, 1.0 / (1.0 + 1.0 / ratio)),)
        case Flat() | Polynomial(outer=0):
            return (Term(1.0, kernel, 1.0),)
        case Polynomial(inner, outer, height) if (inner, 2 * outer) in _named():
            share = ratio**-inner
            orders = (outer,) if ratio == 1.0 else range(outer + 1)
            return tuple(
                _power(inner, outer + k, height**2 * math.comb(outer, k) * (1.0 - share) ** (outer - k) * share**k)
                for k in orders
            )
    return (Term(1.0, _of_profiles(kernel, ratio), 1.0),)


def _power(inner: int, outer: int, factor: float) -> Term:
    """Return ``factor * (1 - u**inner)**outer`` as a multiple of a registered kernel."""
    kernel = _named()[inner, outer]
    assert isinstance(kernel.form, Polynomial)
    return Term(factor / kernel.form.height, kernel, 1.0)


@lru_cache(maxsize=1)
def _named() -> dict[tuple[int, int], Kernel]:
    known: dict[tuple[int, int], Kernel] = {}
    for name in (*INTERNAL, *kernel_names()):  # the powers that have compiled loops go before new kernels
        kernel = get_kernel(name)
        if isinstance(kernel.form, Polynomial):
            known.setdefault((kernel.form.inner, kernel.form.outer), kernel)
    return known


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelTimesItself(Kernel):
    """Product ``K(u) K(u / ratio)`` as a single kernel, which is pickled as its kernel and ratio, `of`."""

    of: tuple[Kernel, float]

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_profiles, self.of


def _of_profiles(kernel: Kernel, ratio: float) -> Kernel:
    """Return the product ``K(u) K(u / ratio)`` as a single kernel that compiled loops do not support."""
    # Its constants are NaN; pooling does not need them.

    def both(one: Profile, combine: Callable[[Array, Array], Array]) -> Profile:
        return lambda u: combine(one(u), one(u / ratio))

    return KernelTimesItself(
        name=f"{kernel.name} times itself at {ratio:.17g}",
        profile=both(kernel.profile, np.multiply),
        log_profile=both(kernel.log_profile, np.add),
        log_slope=None,
        support=kernel.support,
        integral=math.nan,
        roughness=math.nan,
        second_moment=math.nan,
        radial=kernel.radial and _of_profiles(kernel.radial, ratio),
        of=(kernel, ratio),
    )


def _power_kernel(inner: int, outer: int) -> Kernel:
    """Return the kernel ``(1 - u**inner)**outer``, evaluated such that small weights near its edge are accurate."""
    # It is factored, so that they lose no digits to rounding.

    def profile(u: Array) -> Array:
        rest = sum((u**power for power in range(1, inner)), start=np.ones_like(u))
        return np.asarray((np.maximum(1.0 - u, 0.0) * rest) ** outer)

    def moment(order: int, power: int) -> float:
        first = (order + 1) / inner
        return 2.0 / inner * math.exp(math.lgamma(first) + math.lgamma(power + 1) - math.lgamma(first + power + 1))

    integral = moment(0, outer)
    return Kernel(
        name=f"_one_minus_{('u', 'square', 'cube')[inner - 1]}_{outer}",
        profile=profile,
        log_profile=logarithm(profile),
        log_slope=None,
        support=1.0,
        integral=integral,
        roughness=moment(0, 2 * outer) / integral**2,
        second_moment=moment(2, outer) / integral,
        form=Polynomial(inner, outer, 1.0),
    )


INTERNAL = tuple(register_kernel(_power_kernel(*power)).name for power in POWERS)
