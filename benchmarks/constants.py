"""The constants of `Algorithm.seconds`, measured: two threads, smallest of three runs. Prints, and writes nothing.

python benchmarks/constants.py           about a minute once loops are compiled
python benchmarks/constants.py brute     one of brute, sweep, kd_tree, nufft
"""

import sys
import time

import numpy as np

from kernpool import Problem, choose, kernel_names
from kernpool.algorithms import ALGORITHMS
from kernpool.algorithms.tree.block import visit_blocks
from kernpool.algorithms.tree.planted import Planted

THREADS, ROUNDS = 2, 3
COLUMNS = (1, 2, 3, 6, 16, 64)


def draw(m: int, n: int, columns: int, **options) -> Problem:
    generator = np.random.default_rng(0)
    query, key = generator.random((m, columns)), generator.random((n, columns))
    return Problem.from_arrays(query, key, np.sin(key[:, 0]), **options)


def seconds(algorithm: str, problem: Problem) -> float:
    plan, found = choose(problem, algorithm), []
    plan.reduce(problem, n_jobs=THREADS)
    for _ in range(ROUNDS):
        started = time.perf_counter()
        plan.reduce(problem, n_jobs=THREADS)
        found.append(time.perf_counter() - started)
    return min(found)


def brute() -> None:
    print("brute: nanoseconds of a pair, by columns; of a query among 100 keys (1 column); microseconds of a call")
    for composition in ("radial", "product"):
        for kernel in kernel_names():
            cells = []
            for d in COLUMNS if composition == "radial" else COLUMNS[:4]:
                options = {"kernel": kernel, "bandwidth": 0.5 * d**0.5, "composition": composition}
                few, many = (seconds("brute", draw(1000, n, d, **options)) for n in (500, 1500))
                cells.append(f"{(many - few) / 1e6 * 1e9:7.2f}")
            some, more = (seconds("brute", draw(m, 100, 1, kernel=kernel)) for m in (100, 50_000))
            cells += [f"| {(more - some) / 49_900 * 1e9:6.0f} {some * 1e6:6.0f}"]
            print(f"  {composition:8s} {kernel:14s}", *cells, flush=True)


def sweep() -> None:
    print("sweep: nanoseconds of a key, of a query, of both among as many; microseconds of a call; by bandwidth")
    for kernel in kernel_names():
        for h in (0.002, 0.04, 0.4):
            times = {
                shape: seconds("sweep", draw(*shape, 1, kernel=kernel, bandwidth=h))
                for shape in ((100, 100), (100, 200_000), (200_000, 100), (100_000, 100_000))
            }
            call = times[100, 100]
            key, query = ((times[shape] - call) / 2e5 * 1e9 for shape in ((100, 200_000), (200_000, 100)))
            both = (times[100_000, 100_000] - call) / 2e5 * 1e9
            print(f"  {kernel:14s} h {h:<6g} {key:7.0f} {query:7.0f} {both:7.0f} | {call * 1e6:6.0f}", flush=True)


def kd_tree() -> None:
    print("kd_tree: nanoseconds of a pair that is looked at, by columns; of a key and query to build; of a call")
    for kernel in kernel_names():
        cells = []
        for d in (2, 3, 6):
            problem = draw(20_000, 20_000, d, kernel=kernel, bandwidth=0.02 * d**2)
            tiny = problem.with_kernel(problem.similarity.kernel, 1e-3)
            least = seconds("kd_tree", tiny)
            planted = Planted(problem)
            pairs = visit_blocks(planted, planted.blocks())[1]
            cells.append(f"{(seconds('kd_tree', problem) - least) / max(pairs, 1) * 1e9:7.2f} of {pairs / 4e8:4.0%}")
            built = least / 40_000 * 1e9
        call = seconds("kd_tree", draw(100, 100, 2, kernel=kernel)) * 1e6
        print(f"  {kernel:14s}", *cells, f"| {built:6.0f} {call:6.0f}", flush=True)


def nufft() -> None:
    print("nufft: nanoseconds of a key and a query; milliseconds of a call; Gaussian, 2 and 3 columns")
    for d in (2, 3):
        few, many = (seconds("nufft", draw(n, n, d, bandwidth=0.2)) for n in (1000, 200_000))
        print(f"  {d} columns {(many - few) / 398_000 * 1e9:7.0f} | {few * 1e3:6.1f}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in ALGORITHMS if name in globals()]:
        globals()[name]()
