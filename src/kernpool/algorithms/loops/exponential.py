"""Powers of two, the one function that brute force spends its time in.

A number t is split into the nearest integer and a rest in [-1/2, 1/2]; a minimax polynomial takes the rest, and the
integer moves the exponent. Adding and subtracting a large constant rounds, and leaves the integer in the low bits of
the sum, ready to be shifted: processors without AVX-512 have no other way to convert float64 to int64 in vectors.

That trick dies under "reassoc", with wrong digits as the result, so these functions are `ordered_loop`s, in which only
products and sums are fused. A test measures their error over the whole range, and inside of a reordered loop.
"""

from __future__ import annotations

import numpy as np
from numba import types

from kernpool.execution.compiling import by_type, ordered_loop

_ROUND_64, _ROUND_32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
_SMALLEST_64, _SMALLEST_32 = 1021.0, np.float32(125.0)

# Minimax coefficients of 2**f on [-1/2, 1/2]: relative error 7.5e-8 of degree 5, 2.1e-16 of degree 10.
_A0, _A1, _A2, _A3, _A4, _A5 = (
    np.float32(a) for a in (1.00000007, 0.693146967, 0.240221197, 0.0555071328, 0.00967554139, 0.00132764715)
)


# Even and odd powers apart: a chain of seven operations where Horner's has ten. Loops that do more than exponentials
# get 5 to 15 % faster, since processors see some hundred instructions ahead and no more; one of nothing else, 10 %
# slower. Estrin's scheme and pairs of Horner steps make shorter chains still, and run out of the 16 registers.
@ordered_loop
def _polynomial_64(f):
    g = f * f
    even = 7.0372890723202395e-9
    even = even * g + 1.3215662773751729e-6
    even = even * g + 1.540352996125744e-4
    even = even * g + 0.009618129108034489
    even = even * g + 0.24022650695908768
    even = even * g + 1.0
    odd = 1.0208537844778034e-7
    odd = odd * g + 1.5252658116852302e-5
    odd = odd * g + 0.0013333558228561023
    odd = odd * g + 0.05550410866445884
    odd = odd * g + 0.6931471805599497
    return odd * f + even


@ordered_loop
def _polynomial_32(f):
    g = f * f
    even = (_A4 * g + _A2) * g + _A0
    odd = (_A5 * g + _A3) * g + _A1
    return odd * f + even


@ordered_loop
def exp2(t):
    """2**t to 6e-16; zero below the exponent range, and clamped above it, where only keys that do not count can be."""
    t = t if t > -1023.0 else -1023.0
    t = t if t < 1023.0 else 1023.0
    rounded = t + _ROUND_64
    p = _polynomial_64(t - (rounded - _ROUND_64))
    scale = (np.float64(rounded).view(np.int64) + np.int64(1023)) << np.int64(
        52
    )  # the bits of 2**integer, which are 0.0 at -1023
    return p * np.int64(scale).view(np.float64)


@ordered_loop
def exp2_minus_64_unclamped(s):
    """2**-s to 5e-16 for -1021 <= s <= 1021, which the caller has made sure of: the bound is a fifth of the time."""
    rounded = _ROUND_64 - s
    p = _polynomial_64((_ROUND_64 - rounded) - s)
    return np.int64(np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << np.int64(52))).view(
        np.float64
    )


@ordered_loop
def exp2_minus_32_unclamped(s):
    """2**-s in float32, to 2e-7, for -125 <= s <= 125, which the caller has made sure of."""
    rounded = _ROUND_32 - s
    p = _polynomial_32((_ROUND_32 - rounded) - s)
    return np.int32(np.float32(p).view(np.int32) + (np.float32(rounded).view(np.int32) << np.int32(23))).view(
        np.float32
    )


@ordered_loop
def exp2_minus_64(s):
    """2**-s for s >= 0 to 6e-16, without a branch or a product: the integer is added to the exponent's bits.

    Beyond s = 1021 it stays at 2**-1021 instead of vanishing. Whoever adds such numbers up has a tiny sum, and sums
    that are not tiny do not see them.
    """
    return exp2_minus_64_unclamped(s if s < _SMALLEST_64 else _SMALLEST_64)


@ordered_loop
def exp2_minus_32(s):
    """2**-s for s >= 0 in float32, to 3e-7; never below 2**-125."""
    return exp2_minus_32_unclamped(s if s < _SMALLEST_32 else _SMALLEST_32)


def exp2_minus(s, bounded):
    """2**-s in the width of s, without a bound where `bounded` is 1; for compiled code alone."""
    raise NotImplementedError


@by_type(exp2_minus)
def _by_width(s, bounded):  # noqa: ARG001  # an argument of what is made
    narrow, clamped, unclamped = s == types.float32, exp2_minus_64, exp2_minus_64_unclamped
    if narrow:
        clamped, unclamped = exp2_minus_32, exp2_minus_32_unclamped
    return lambda s, bounded: unclamped(s) if bounded == 1 else clamped(s)
