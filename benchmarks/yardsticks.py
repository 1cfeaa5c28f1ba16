"""What nothing can beat: sorting the keys, one exponential per pair, one matrix product."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cases import Case
from loops.limit import powers


def exponentials(case: Case) -> None:
    """As many exponentials as there are pairs."""
    tile = 10.0 * np.random.default_rng(0).random(512)
    rounds = max(1, int(case.pairs / 512 / case.threads))
    with ThreadPoolExecutor(case.threads) as pool:
        list(pool.map(lambda _: powers(tile, rounds), range(case.threads)))


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
