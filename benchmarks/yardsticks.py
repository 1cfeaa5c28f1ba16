"""What nothing can beat: sorting the keys, one exponential per pair, one matrix product."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cases import Case
from numba import njit


@njit(nogil=True, fastmath={"contract", "reassoc", "arcp", "nsz"}, cache=True)
def _exponentials(t, rounds):
    """Sum 2**t over a tile in the first-level cache, again and again: the least that an exponential costs."""
    total = 0.0
    for r in range(rounds):
        shift = 1e-9 * r  # so that the compiler cannot do it once
        for j in range(t.size):
            x = t[j] - shift
            whole = np.rint(x)
            f = x - whole
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
            total += p * np.int64((np.int64(whole) + 1023) << 52).view(np.float64)
    return total


def exponentials(case: Case) -> None:
    """As many exponentials as there are pairs."""
    tile = -10.0 * np.random.default_rng(0).random(512)
    rounds = max(1, int(case.pairs / 512 / case.threads))
    with ThreadPoolExecutor(case.threads) as pool:
        list(pool.map(lambda _: _exponentials(tile, rounds), range(case.threads)))


def matrix_product(case: Case) -> None:
    """All products of queries and keys, some thousand rows at a time, each written over the last."""
    rows = max(1, min(len(case.query), (1 << 22) // case.n))
    out, key = np.empty((rows, case.n), dtype=case.key.dtype), np.ascontiguousarray(case.key.T)
    for start in range(0, len(case.query), rows):
        part = case.query[start : start + rows]
        np.matmul(part, key, out=out[: len(part)])


def argsort(case: Case) -> None:
    """Sort the first column of the keys."""
    np.argsort(case.key[:, 0])


YARDSTICKS = {"bare exp2, every pair": exponentials, "bare matrix product": matrix_product, "np.argsort": argsort}
