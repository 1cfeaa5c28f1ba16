"""Compiled kernel weights of one query and up to 512 keys, powers of two, and a check of sums.

Powers of two take most of the time of brute force. A number t is split into the nearest integer and a rest in [-1/2,
1/2]; a minimax polynomial evaluates the rest, and the integer changes the exponent. Adding and subtracting a large
constant rounds, and leaves the integer in the low bits of the sum, ready to be shifted; processors without AVX-512
have no other way to convert float64 to int64 in vectors. Under the compiler flag "reassoc" this gives wrong digits,
so these functions are compiled as `ordered_loop`, in which only products and sums are fused. A test measures their
error over the whole range, and inside a reordered loop.

Weights of a tile are computed in stages, each on a buffer in the first-level cache: squared distance, exponent or
profile, correction. One branch per stage picks the kernel, so a single compiled function serves all kernels.

`count_impossible` checks all sums of a state in one pass, at the speed of memory.
"""

import math

import numpy as np
from numba import types

from kernpool.execution.compilation import bare_loop, bare_part, by_type, ordered_loop, strict_loop
from kernpool.kernels import COMPILED
from kernpool.kernels.squares import POWERS

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
    """Compute 2**t to a relative error of 6e-16; zero below the range of exponents, clamped above it."""
    # Above it only irrelevant keys can be.
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
    """Compute 2**-s for -1021 <= s <= 1021 to a relative error of 5e-16, without a check of s."""
    # A check would take a fifth of the time.
    rounded = _ROUND_64 - s
    p = _polynomial_64((_ROUND_64 - rounded) - s)
    return np.int64(np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << np.int64(52))).view(
        np.float64
    )


@ordered_loop
def exp2_minus_32_unclamped(s):
    """Compute 2**-s in float32 for -125 <= s <= 125 to a relative error of 2e-7, without a check of s."""
    rounded = _ROUND_32 - s
    p = _polynomial_32((_ROUND_32 - rounded) - s)
    return np.int32(np.float32(p).view(np.int32) + (np.float32(rounded).view(np.int32) << np.int32(23))).view(
        np.float32
    )


@ordered_loop
def exp2_minus_64(s):
    """Compute 2**-s for s >= 0 to a relative error of 6e-16, clamped to at least 2**-1021."""
    # There is neither a branch nor a product: the integer is added to the exponent bits. Beyond s = 1021 it stays at
    # 2**-1021 instead of zero. A sum of such numbers alone is tiny, and they change no larger sum.
    return exp2_minus_64_unclamped(s if s < _SMALLEST_64 else _SMALLEST_64)


@ordered_loop
def exp2_minus_32(s):
    """Compute 2**-s for s >= 0 in float32 to a relative error of 3e-7, clamped to at least 2**-125."""
    return exp2_minus_32_unclamped(s if s < _SMALLEST_32 else _SMALLEST_32)


def exp2_minus(s, bounded):
    """Compute 2**-s in the float width of s; without clamping s if `bounded` is 1."""
    # Callable from compiled code only.
    raise NotImplementedError


@by_type(exp2_minus)
def _by_width(s, bounded):  # noqa: ARG001  # an argument of the compiled function
    narrow, clamped, unclamped = s == types.float32, exp2_minus_64, exp2_minus_64_unclamped
    if narrow:
        clamped, unclamped = exp2_minus_32, exp2_minus_32_unclamped
    return lambda s, bounded: unclamped(s) if bounded == 1 else clamped(s)


CODES = {name: code for code, name in enumerate(COMPILED)}
GAUSSIAN, BOXCAR, CONSTANT, EPANECHNIKOV = (CODES[k] for k in ("gaussian", "boxcar", "constant", "epanechnikov"))
TRIANGULAR, BIWEIGHT, TRIWEIGHT, TRICUBE = (CODES[k] for k in ("triangular", "biweight", "triweight", "tricube"))
COSINE, LAPLACE, LOGISTIC = (CODES[k] for k in ("cosine", "laplace", "logistic"))
FIRST_POWER = len(COMPILED) - len(POWERS)  # from here on (1 - u**inner)**outer of `POWERS`, one after the other
INNER, OUTER = tuple(inner for inner, _ in POWERS), tuple(outer for _, outer in POWERS)

EDGE = 1e-12  # rounding of a squared distance near 1 is below this for some thousand columns
LN_2 = math.log(2.0)
LOG2_E = 1.0 / LN_2


@bare_part
def sine_of_quarter_turns(v):
    """Compute sin(pi v / 2) for 0 <= v <= 1 to machine precision, by its Taylor series."""
    x = 0.5 * math.pi * v
    s = x * x
    p = 1.0
    for k in range(10, 0, -1):
        p = 1.0 - s * p / (2 * k * (2 * k + 1))
    return x * p


@strict_loop
def squared_column(out, q, key, h, divide, add):
    """Write to `out`, or add to it, one column's squared differences between a query and keys, in bandwidths."""
    inverse = 1.0 / h
    if divide:  # as NumPy does it: fl(|q - k| / h) <= 1 exactly if fl(|q - k|) <= h
        for j in range(out.size):
            u = (q - key[j]) / h
            out[j] = (out[j] if add else 0.0) + u * u
    elif add:
        for j in range(out.size):
            u = (q - key[j]) * inverse
            out[j] = out[j] + u * u
    else:
        for j in range(out.size):
            u = (q - key[j]) * inverse
            out[j] = u * u


@bare_part
def on_edge(s):
    """Return whether any squared distance is so near 1 that rounding decides if its key is in the support."""
    near = 0
    for j in range(s.size):
        near += 1 if abs(s[j] - 1.0) < EDGE else 0
    return near > 0


@strict_loop
def resolve_edges(s, boxcar):
    """Move squared distances clearly into (<= 1) or out of (>= 2) the support, in place, as the reference decides."""
    for j in range(s.size):
        u = math.sqrt(s[j])
        if u > 1.0 or (u == 1.0 and not boxcar):
            s[j] = max(s[j], 2.0)
        else:
            s[j] = min(s[j], 1.0)


@bare_part
def exponents(out, s, code):
    """Write the base-2 logarithm of a kernel of infinite support, at squared distances `s`, to `out`."""
    # `correct` applies the bounded factor that some kernels have.
    if code == GAUSSIAN:
        for j in range(s.size):
            out[j] = -0.5 * LOG2_E * s[j]
    elif code == CONSTANT:
        out[:] = 0.0
    else:
        for j in range(s.size):
            out[j] = -LOG2_E * math.sqrt(s[j])


@bare_part
def correct(weight, exponent, code):
    """Multiply weights by the factor beside the exponential: 1 / (1 + exp(-u))**2 (logistic) or 1/2 (Laplace)."""
    if code == LOGISTIC:
        for j in range(weight.size):
            tail = 1.0 + exp2(exponent[j])
            weight[j] /= tail * tail
    elif code == LAPLACE:
        for j in range(weight.size):
            weight[j] *= 0.5


@bare_part
def powers(out, s, inner, outer):
    """Write the kernel (1 - u**inner)**outer, zero beyond u = 1, to `out`, given squared distances s = u**2."""
    # `outer` is 2, 4, 5 or 6. With z = 1 - u**inner it is z**2 (a + z**2 (b + z (c + z d))), where one of a, b, c, d is
    # 1 and the others are 0.
    a, b = 1.0 if outer == 2 else 0.0, 1.0 if outer == 4 else 0.0
    c, d = 1.0 if outer == 5 else 0.0, 1.0 if outer == 6 else 0.0
    for j in range(s.size):
        z = max(1.0 - (s[j] if inner == 2 else math.sqrt(s[j]) * (1.0 if inner == 1 else s[j])), 0.0)
        square = z * z
        out[j] = square * (a + square * (b + z * (c + z * d)))


@bare_part
def profiles(out, s, code):
    """Write the values K(u) of a compact kernel to `out`, given squared distances s = u**2 in bandwidths."""
    if code == BOXCAR:
        for j in range(s.size):
            out[j] = 1.0 if s[j] <= 1.0 else 0.0
    elif code == EPANECHNIKOV:
        for j in range(s.size):
            out[j] = 0.75 * max(1.0 - s[j], 0.0)
    elif code == TRIANGULAR:
        for j in range(s.size):
            out[j] = max(1.0 - math.sqrt(s[j]), 0.0)
    elif code == BIWEIGHT:
        for j in range(s.size):
            p = max(1.0 - s[j], 0.0)
            out[j] = 15 / 16 * p * p
    elif code == TRIWEIGHT:
        for j in range(s.size):
            p = max(1.0 - s[j], 0.0)
            out[j] = 35 / 32 * p * p * p
    elif code == TRICUBE:
        for j in range(s.size):
            p = max(1.0 - s[j] * math.sqrt(s[j]), 0.0)
            out[j] = 70 / 81 * p * p * p
    elif code >= FIRST_POWER:
        powers(out, s, INNER[code - FIRST_POWER], OUTER[code - FIRST_POWER])
    else:
        for j in range(s.size):
            out[j] = 0.25 * math.pi * sine_of_quarter_turns(max(1.0 - math.sqrt(s[j]), 0.0))


def first_stage(out, s, code, infinite):
    """Write a compact kernel's values, or another's base-2 logarithms, at squared distances `s` to `out`."""
    # Callable from compiled code only.
    raise NotImplementedError


@by_type(first_stage)
def _by_support(out, s, code, infinite):  # noqa: ARG001  # arguments of the compiled function
    stage = profiles if infinite is types.none else exponents
    return lambda out, s, code, infinite: stage(out, s, code)  # noqa: ARG005  # as it is called


@bare_part
def slopes(out, s, code):
    """Write (d log K / du) / u to `out`, given squared distances s = u**2; valid where K > 0 and u > 0."""
    for j in range(s.size):
        u = math.sqrt(s[j])
        if code == GAUSSIAN:
            out[j] = -1.0
        elif code == EPANECHNIKOV:
            out[j] = -2.0 / (1.0 - s[j])
        elif code == TRIANGULAR:
            out[j] = -1.0 / (u * (1.0 - u))
        elif code == BIWEIGHT:
            out[j] = -4.0 / (1.0 - s[j])
        elif code == TRIWEIGHT:
            out[j] = -6.0 / (1.0 - s[j])
        elif code == TRICUBE:
            out[j] = -9.0 * u / (1.0 - u * s[j])
        elif code == COSINE:
            out[j] = -0.5 * math.pi / (math.tan(0.5 * math.pi * (1.0 - u)) * u)
        elif code == LAPLACE:
            out[j] = -1.0 / u
        elif code == LOGISTIC:
            out[j] = -math.tanh(0.5 * u) / u
        else:  # flat kernels
            out[j] = 0.0


@bare_part
def tile_distances(s, q, key, first, bandwidth, code, infinite):
    """Write the squared distances, in bandwidths, of one query from a tile of keys to `s`."""
    # At the edge of a kernel's support they are on the same side as in the reference. Multiplying by 1 / h is faster
    # than dividing by h and rounds differently. That matters for u = 1 alone, which gridded data do reach; a tile with
    # such a distance is done again with divisions.
    for divide in range(2):  # one call for both: each is compiled into every loop that has distances
        for a in range(q.size):
            squared_column(s, q[a], key[a, first : first + s.size], bandwidth[a], divide == 1, a > 0)
        if infinite or (divide == 0 and not on_edge(s)):
            break
    else:
        resolve_edges(s, code == BOXCAR)


@bare_part
def tile_weights(weight, s, exponent, column, q, key, first, bandwidth, code, infinite, product, unit):
    """Write the kernel weights of one query and a tile of keys, in units of 2**unit, to `weight`."""
    # `exponent` keeps the logits. The first pass makes exponents or profiles, the second multiplies bounded factors
    # onto the exponentials. Each stage is called in one place, for radial kernels and for products over columns: a
    # second one costs a second to compile. For the same reason `infinite` is True or None, not False: what is for
    # kernels of infinite support alone is not compiled for others (2.7 s of a first call in place of 3.4).
    together = 1 if product else q.size  # columns
    made = column if product else exponent if infinite is not None else weight
    for factors in range(2 if code in (LAPLACE, LOGISTIC) else 1):
        for a in range(0, q.size, together):
            if product or factors == 0:
                last = a + together
                tile_distances(s, q[a:last], key[a:last], first, bandwidth[a:last], code, infinite)
                first_stage(made, s, code, infinite)
            if factors == 1:
                if infinite is not None:
                    correct(weight, made, code)
            elif product and infinite is not None:
                for j in range(weight.size):
                    exponent[j] = column[j] + (exponent[j] if a > 0 else 0.0)
            elif product:
                for j in range(weight.size):
                    weight[j] = column[j] * (weight[j] if a > 0 else 1.0)
        if infinite is not None:  # noqa: SIM102  # two questions: the first is answered when this is compiled
            if factors == 0:
                for j in range(weight.size):
                    weight[j] = exp2(exponent[j] - unit)


@bare_loop
def count_impossible(denominator, numerator, low, high):
    """Count means outside of `low` to `high`, and those whose sum of weights is not positive and finite."""
    # NaN counts, too.
    count = 0
    for c in range(low.size):  # by columns: with the rows inside the loop is a vector's
        least, most = low[c], high[c]
        for i in range(denominator.size):
            weight, total = denominator[i], numerator[i, c]
            fine = (weight > 0.0) & (weight < np.inf) & (weight * least <= total) & (total <= weight * most)
            count += 0 if fine else 1
    return count
