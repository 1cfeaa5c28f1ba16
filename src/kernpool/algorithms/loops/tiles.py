"""Compiled stages of one tile: from one query and up to 512 keys to the weights of their pairs.

Each stage does one thing to a buffer in the first-level cache: squared distance, exponent or profile, correction. One
branch per stage picks the kernel, so a single compiled function serves them all.
"""

from __future__ import annotations

import math

from numba import types

from kernpool.algorithms.loops.exponential import exp2
from kernpool.execution.compiling import bare_part, by_type, strict_loop
from kernpool.kernels import COMPILED
from kernpool.kernels.products import POWERS

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
    """sin(pi v / 2) for 0 <= v <= 1 to rounding, by its Taylor series."""
    x = 0.5 * math.pi * v
    s = x * x
    p = 1.0
    for k in range(10, 0, -1):
        p = 1.0 - s * p / (2 * k * (2 * k + 1))
    return x * p


@strict_loop
def squared_column(out, q, key, h, divide, add):
    """u**2 of one column into `out`, or onto it."""
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
    """Whether some u is so near to 1 that rounding decides on which side it lies."""
    near = 0
    for j in range(s.size):
        near += 1 if abs(s[j] - 1.0) < EDGE else 0
    return near > 0


@strict_loop
def settle_edges(s, boxcar):
    """Move what the reference counts as outside of the support well outside, and what it counts as inside, in."""
    for j in range(s.size):
        u = math.sqrt(s[j])
        if u > 1.0 or (u == 1.0 and not boxcar):
            s[j] = max(s[j], 2.0)
        else:
            s[j] = min(s[j], 1.0)


@bare_part
def exponents(out, s, code):
    """From s = u**2 to the exponent, in powers of two, of a kernel of infinite support; the rest is `correct`."""
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
    """Multiply the bounded factor of the logistic kernel onto its exponential: 1 / (1 + exp(-u))**2."""
    if code == LOGISTIC:
        for j in range(weight.size):
            tail = 1.0 + exp2(exponent[j])
            weight[j] /= tail * tail
    elif code == LAPLACE:
        for j in range(weight.size):
            weight[j] *= 0.5


@bare_part
def powers(out, s, inner, outer):
    """From s = u**2 to the powers 2, 4, 5 and 6 of z = 1 - u**inner: z**2 (a + z**2 (b + z (c + z d))), a single 1."""
    a, b = 1.0 if outer == 2 else 0.0, 1.0 if outer == 4 else 0.0
    c, d = 1.0 if outer == 5 else 0.0, 1.0 if outer == 6 else 0.0
    for j in range(s.size):
        z = max(1.0 - (s[j] if inner == 2 else math.sqrt(s[j]) * (1.0 if inner == 1 else s[j])), 0.0)
        square = z * z
        out[j] = square * (a + square * (b + z * (c + z * d)))


@bare_part
def profiles(out, s, code):
    """From s = u**2 to K(u) of a compact kernel."""
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
    """From s = u**2 to the profile of a compact kernel, or to the exponent of another; for compiled code alone."""
    raise NotImplementedError


@by_type(first_stage)
def _by_support(out, s, code, infinite):  # noqa: ARG001  # arguments of what is made
    stage = profiles if infinite is types.none else exponents
    return lambda out, s, code, infinite: stage(out, s, code)  # noqa: ARG005  # as it is called


@bare_part
def slopes(out, s, code):
    """From s = u**2 to (d log K / du) / u, where K > 0 and u > 0."""
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
    """Squared distances in bandwidths; for kernels with an edge, on the same side of it as in the reference.

    Multiplying by 1 / h is faster than dividing by h and rounds differently. That matters for u = 1 alone, which
    gridded data do reach; a tile with such a distance is done again with divisions.
    """
    for divide in range(2):  # one call for both: each is compiled into every loop that has distances
        for a in range(q.size):
            squared_column(s, q[a], key[a, first : first + s.size], bandwidth[a], divide == 1, a > 0)
        if infinite or (divide == 0 and not on_edge(s)):
            break
    else:
        settle_edges(s, code == BOXCAR)


@bare_part
def tile_weights(weight, s, exponent, column, q, key, first, bandwidth, code, infinite, product, unit):
    """Kernel weights of one query and one tile of keys, in units of 2**unit; `exponent` keeps the logits.

    The first pass makes exponents or profiles, the second multiplies bounded factors onto the exponentials. Each stage
    is called in one place, for radial kernels and for products over columns: a second one costs a second to compile.
    For the same reason `infinite` is True or None, not False: what is for kernels of infinite support alone is not
    compiled for others (2.7 s of a first call in place of 3.4).
    """
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
