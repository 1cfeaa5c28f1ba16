"""kernpool beside its peers: the same inputs, as many threads, answers compared; a table and pictures of it.

python benchmarks/compare.py                                    everything, about ten minutes; KeOps compiles five more
python benchmarks/compare.py --columns 1 --kernels gaussian     only these, half a minute; the rest stays as it was
python benchmarks/compare.py --quick --columns 1                up to a thousand rows, and nothing is kept
python benchmarks/compare.py --draw                             only the table and the pictures
"""

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

THREADS = 2
for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):  # before NumPy: libraries read them once
    os.environ[f"{_name}_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402  # after what it depends on
from cases import COLUMNS, KERNELS, LIMIT, PATIENCE, SIZES, Case, make_case  # noqa: E402  # after what it depends on
from measure import flags, tell  # noqa: E402  # after what it depends on
from peers import PEERS, dense_numpy  # noqa: E402  # after what it depends on

SMALL = 1000  # rows: everybody may try
LONG = 2 * LIMIT  # seconds: what took that long, in spite of what was expected, is not run again
ENOUGH, RUNS = 0.4, 9  # seconds of repetitions, and the most of them
PAIRWISE = ("dense NumPy", "torch attention", "KeOps", "bare exp2, every pair", "bare matrix product")
SINGLE, SINGLE_SIZE = tuple(d for d in COLUMNS if d != 2), 10_000  # where float32 is compared, the Gaussian alone


def contenders(case: Case):
    """Yield (name, function or None, reason for None): kernpool, its algorithms, the peers."""
    from kernpool import Problem, pool
    from kernpool.algorithms import ALGORITHMS

    def ours(algorithm: str):
        options = {"kernel": case.kernel, "bandwidth": case.bandwidth, "n_jobs": case.threads, "empty": "zero"}
        return lambda case: pool(case.query, case.key, case.value, algorithm=algorithm, **options)

    probe = Problem.from_arrays(case.query[:5], case.key[:5], case.value[:5], kernel=case.kernel)
    for name, algorithm in ALGORITHMS.items():
        reason = algorithm.refusal(probe)
        if name == "reference" and case.pairs > 1e7:
            reason = "holds all pairs"
        if not (reason or "").startswith("does"):
            yield f"kernpool {name}", ours(name), reason
    yield "kernpool", ours("auto"), None  # after its algorithms, which have compiled by now
    for peer in PEERS:
        reason = peer.cannot(case)
        if reason != "has no such kernel":
            yield peer.name, peer.run, reason


def expected_seconds(name: str, results: dict[str, dict], n: int) -> float:
    """Extrapolate a contender to n; ``"auto"`` may take a better algorithm than it took for less."""
    names = [other for other in results if other.startswith(name)] if name == "kernpool" else [name]
    # Calling takes most of the time of small sizes, so growth looks slow there.
    slowest = 2.0 if name in PAIRWISE else 1.0 if name.startswith("kernpool") else 1.3
    return min((extrapolate(results.get(other, {}), n, slowest) for other in names), default=0.0)


def extrapolate(history: dict[str, dict], n: int, slowest: float) -> float:
    """Extrapolate from the last two sizes; as for all pairs where there are none, or times are too short to tell."""
    done = sorted((int(size), entry["seconds"]) for size, entry in history.items() if "seconds" in entry)
    if not done:
        return 0.0
    (last, seconds), growth = done[-1], 2.0
    if len(done) > 1 and done[-2][1] > 2e-3:
        before, less = done[-2]
        growth = float(np.clip(np.log(seconds / less) / np.log(last / before), slowest, 2.0))
    return seconds * (n / last) ** growth


def measure(run, case: Case, *, is_new: bool) -> tuple[float, object]:
    """Median seconds of up to nine runs, after one that warms up; what takes long runs once, if it did so before."""
    seconds: list[float] = []
    while len(seconds) <= RUNS and sum(seconds[1:]) < ENOUGH:
        started = time.perf_counter()
        found = run(case)
        seconds.append(time.perf_counter() - started)
        if len(seconds) == 1 and seconds[0] > LONG and not is_new:
            return seconds[0], found
    return float(np.median(seconds[1:])), found


def difference(case: Case, found: np.ndarray) -> float:
    """Largest difference to the dense expression in float64 on some queries, in ranges of the values."""
    rows = np.linspace(0, len(case.query) - 1, 50).astype(int)
    arrays = (array.astype(float) for array in (case.query[rows], case.key, case.value))
    expected = dense_numpy(Case(*arrays, case.kernel, case.bandwidth, 1))
    with np.errstate(invalid="ignore"):
        return float(np.max(np.nan_to_num(np.abs(found[rows] - expected))) / np.ptp(case.value))


def outcome(contender, case: Case, results: dict[str, dict]) -> dict:
    """Measure a contender, or say why not."""
    name, run, reason, pools = contender
    history, expected = results.get(name, {}), expected_seconds(name, results, case.n)
    if any("failed" in entry.get("reason", "") for entry in history.values()):
        reason = "failed before"
    if reason:
        return {"reason": reason}
    if case.n > SMALL and expected > LIMIT * (PATIENCE if name == "kernpool" else 1.0):
        return {"reason": f"would take about {expected:.0f} s", "expected": expected}
    try:
        seconds, found = measure(run, case, is_new=not any("seconds" in entry for entry in history.values()))
    except Exception as error:
        return {"reason": f"failed: {type(error).__name__}: {str(error).splitlines()[0][:100]}"}
    tell(case.columns, case.kernel, case.key.dtype, case.n, name, f"{seconds:.4f} s")
    return {"seconds": seconds} | ({"difference": difference(case, found)} if pools else {})


def run_case(columns: int, kernel: str, dtype: str, sizes: tuple[int, ...]) -> dict:
    """Measure every contender of a case at growing sizes."""
    from yardsticks import YARDSTICKS

    bare = [(name, run, None, False) for name, run in YARDSTICKS.items() if columns == 1 or name != "np.argsort"]
    results: dict[str, dict[str, dict]] = {}
    for n in sizes:
        case = make_case(n, columns, kernel, dtype, THREADS)
        for contender in [*((*one, True) for one in contenders(case)), *bare]:
            entry = outcome(contender, case, results)
            results.setdefault(contender[0], {})[str(n)] = entry
    return results


def main() -> None:
    asked = flags(__doc__, "quick", "draw", columns=COLUMNS, kernels=KERNELS)
    from compare_report import RESULTS, draw, write

    results = {} if asked.quick else json.loads(RESULTS.read_text(encoding="utf-8"))
    sizes = tuple(n for n in SIZES if n <= SMALL) if asked.quick else SIZES
    cases = [(d, kernel, "float64", sizes) for d in asked.columns for kernel in asked.kernels]
    if "gaussian" in asked.kernels and not asked.quick:
        cases += [(d, "gaussian", "float32", (SINGLE_SIZE,)) for d in asked.columns if d in SINGLE]
    for case in [] if asked.draw else cases:
        # A process each: what one library does to memory or threads is no trouble to the others.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
            results[" ".join(map(str, case[:3]))] = alone.submit(run_case, *case).result()
        if not asked.quick:
            RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if not asked.quick:
        draw(results)
    disagreements = write(results, THREADS, keep=not asked.quick)
    if disagreements:
        sys.exit("answers differ: " + "; ".join(disagreements))


if __name__ == "__main__":
    main()
