"""The constants of `Algorithm.seconds`, measured: two threads, smallest of three runs.

python benchmarks/constants.py pairs     what a pair costs in every loop; kept for processors of this class
python benchmarks/constants.py           these, and what sweep and nufft take, which is printed

Some minutes, most of them for compiling. For AVX2 on a processor with AVX-512: NUMBA_CPU_NAME=znver3 with
NUMBA_CPU_FEATURES="" compile for it.
"""

import json
import re
import sys
import timeit
from pathlib import Path

import numpy as np
from measure import machine

from kernpool import Problem, choose, kernel_names
from kernpool.algorithms import ALGORITHMS
from kernpool.algorithms import algorithm as pair_costs
from kernpool.algorithms.brute.brute import reduce_staged
from kernpool.algorithms.tree.blocks import PreparedTree, visit_blocks
from kernpool.execution.threads import vector_bits

THREADS, ROUNDS = 2, 3
# Tables of costs, and their numbers of columns.
PAIRS = {
    "radial": (1, 2, 3, 4, 5, 8, 9, 11, 15, 16, 32, 33, 64),
    "radial, float32": (1, 2, 3, 4, 5, 8, 9, 11, 15, 16, 32, 33, 64),
    "product": (1, 2, 3, 5),
    "staged": (1, 2, 3, 5, 16, 64),
    "degree 1": (1, 2, 3, 4, 6, 16),
    "tree": (2, 3, 6),
}
PAIRS_M, PAIRS_N = 2000, (1000, 3000)


def draw(m: int, n: int, columns: int, dtype=np.float64, **options) -> Problem:
    generator = np.random.default_rng(0)
    query, key = (generator.random((rows, columns)).astype(dtype) for rows in (m, n))
    return Problem.from_arrays(query, key, np.sin(key[:, 0]), **options)


def seconds(algorithm: str, problem: Problem) -> float:
    plan = choose(problem, algorithm)
    return smallest(lambda: plan.reduce(problem, n_jobs=THREADS))


def pairs() -> None:
    """Measure every table of `kernpool.algorithms.algorithm`, on one thread, and keep them for this class."""
    nanoseconds: dict[str, dict] = {}
    for loops, columns in PAIRS.items():
        kernels = {kernel: [pair(loops, kernel, d) for d in columns] for kernel in kernel_names()}
        nanoseconds[loops] = {"columns": list(columns), "kernels": kernels}
        for kernel, costs in kernels.items():
            print(f"  {loops:16s} {kernel:14s}", *(f"{cost:7.2f}" for cost in costs), flush=True)
    path = Path(pair_costs.__file__).with_name(pair_costs.FILE)
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stored[str(vector_bits())] = {"measured on": machine(), "nanoseconds": nanoseconds}
    path.write_text(text_of(stored), encoding="utf-8")


def pair(loops: str, kernel: str, d: int) -> float:
    """Return the nanoseconds of a pair: what more keys add, so that calls and queries do not count."""
    options = {"kernel": kernel, "bandwidth": 0.5 * d**0.5}
    if loops == "tree":
        return pair_of_tree(draw(20_000, 20_000, d, kernel=kernel, bandwidth=0.02 * d**2))
    if loops == "product":
        options["kernel"] = f"product {kernel}"
    if loops == "degree 1":
        options["degree"] = 1
    few, many = (
        draw(PAIRS_M, n, d, dtype=np.float32 if "float32" in loops else np.float64, **options) for n in PAIRS_N
    )
    run = reduce_staged if loops == "staged" else lambda problem: ALGORITHMS["brute"].reduce(problem, 1)
    times = [smallest(lambda problem=problem: run(problem)) for problem in (few, many)]
    return round((times[1] - times[0]) / (PAIRS_M * (PAIRS_N[1] - PAIRS_N[0])) * 1e9, 3)


def pair_of_tree(problem: Problem) -> float:
    """Return the nanoseconds of a pair in a leaf that is visited."""
    tiny = problem.with_kernel(problem.similarity.kernel, 1e-3)
    planted = PreparedTree(problem)
    visited = visit_blocks(planted, planted.blocks())[1]
    if not visited:  # of the constant kernel every node is added as a whole
        return pair("staged", problem.similarity.kernel.name, problem.key.shape[1])
    run = ALGORITHMS["kd_tree"].reduce
    return round((smallest(lambda: run(problem, 1)) - smallest(lambda: run(tiny, 1))) / max(visited, 1) * 1e9, 3)


def smallest(run) -> float:
    """Return the smallest of a few times: nothing makes a loop faster than it is."""
    run()
    return min(timeit.repeat(run, number=1, repeat=ROUNDS))


def text_of(stored: dict) -> str:
    """Write JSON with a line for each list."""
    text = json.dumps(stored, indent=1)
    return re.sub(r"\[\s+([^\]]*?)\s+\]", lambda found: "[" + " ".join(found[1].split()) + "]", text) + "\n"


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


def nufft() -> None:
    print("nufft: nanoseconds of a key and a query; milliseconds of a call; Gaussian, 2 and 3 columns")
    for d in (2, 3):
        few, many = (seconds("nufft", draw(n, n, d, bandwidth=0.2)) for n in (1000, 200_000))
        print(f"  {d} columns {(many - few) / 398_000 * 1e9:7.0f} | {few * 1e3:6.1f}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("pairs", "sweep", "nufft"):
        globals()[name]()
