"""Bare loops of powers of two and of multiply-adds: what no loop of pairs can be faster than."""

import numpy as np
from numba import types

from kernpool.execution.compilation import by_type, loop, ordered_loop, use_widest_vectors

A0, A1, A2, A3, A4, A5 = (
    np.float32(a) for a in (1.00000007, 0.693146967, 0.240221197, 0.0555071328, 0.00967554139, 0.00132764715)
)
ROUND, FAINTEST = np.float32(1.5 * 2.0**23), np.float32(125.0)


def shortest(s):
    """2**-s in the width of s; for compiled code alone."""
    raise NotImplementedError


@by_type(shortest)
def _shortest(s):
    return (lambda s: shortest_32(s)) if s == types.float32 else (lambda s: shortest_64(s))


@ordered_loop
def shortest_64(s):
    """2**-s with the fewest operations: nothing follows it, so a long chain of them does no harm."""
    s = s if s < 1021.0 else 1021.0
    rounded = 1.5 * 2.0**52 - s
    f = -(s + (rounded - 1.5 * 2.0**52))
    p = 7.0372890723202395e-9
    p = p * f + 1.0208537844778034e-7
    p = p * f + 1.3215662773751729e-6
    p = p * f + 1.5252658116852302e-5
    p = p * f + 1.540352996125744e-4
    p = p * f + 0.0013333558228561023
    p = p * f + 0.009618129108034489
    p = p * f + 0.05550410866445884
    p = p * f + 0.24022650695908768
    p = p * f + 0.6931471805599497
    p = p * f + 1.0
    return np.int64(np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << np.int64(52))).view(
        np.float64
    )


@ordered_loop
def shortest_32(s):
    """Do the same in float32."""
    s = s if s < FAINTEST else FAINTEST
    rounded = ROUND - s
    f = -(s + (rounded - ROUND))
    p = ((((A5 * f + A4) * f + A3) * f + A2) * f + A1) * f + A0
    return np.int32(np.float32(p).view(np.int32) + (np.float32(rounded).view(np.int32) << np.int32(23))).view(
        np.float32
    )


@loop
def powers(s, repeats):
    """Sum powers of two: one per number and repeat."""
    use_widest_vectors()
    total = 0.0
    for _ in range(repeats):
        part = s[0]
        for j in range(s.size):
            part += shortest(s[j])
        total += part
    return total


@ordered_loop
def products(s, factor, repeats):
    """Do nothing but fused multiply-adds: `CHAIN` per number and repeat, one after the other."""
    use_widest_vectors()
    for _ in range(repeats):
        for j in range(s.size):
            x = s[j]
            for _ in range(CHAIN):
                x = x * factor + factor
            s[j] = x


CHAIN = 32
