"""kernpool beside its peers: the same inputs, as many threads, answers compared; a table and pictures of it.

python benchmarks/compare.py                     everything, about ten minutes (KeOps compiles five more the first time)
python benchmarks/compare.py -d 1 -k gaussian    only these, half a minute; the rest stays as it was
python benchmarks/compare.py --draw              only the table and the pictures
"""

import argparse
import json
import os
import subprocess
import sys
import time

THREADS = 2
for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):  # before NumPy: libraries read them once
    os.environ[f"{_name}_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402  # after what it depends on
from cases import COLUMNS, KERNELS, SIZES, Case, make_case  # noqa: E402  # after what it depends on
from measure import REPORTS  # noqa: E402  # after what it depends on
from peers import PEERS, dense_numpy  # noqa: E402  # after what it depends on

LIMIT = 2.0  # seconds: a contender that is expected to take longer stops growing
SMALL = 1000  # rows: everybody may try
PATIENCE = 3.0  # times as much for what `pool` chooses by itself
LONG = 2 * LIMIT  # seconds: what took that long, in spite of what was expected, is not run again
ENOUGH = 0.4  # seconds of repetitions
PAIRWISE = ("dense NumPy", "torch attention", "KeOps", "bare exp2, every pair", "bare matrix product")
RESULTS = REPORTS / "peers.json"
AGREE = {"float64": 1e-9, "float32": 1e-3}  # of the range of the values
SINGLE = tuple(d for d in COLUMNS if d != 2)  # where float32 is compared, the Gaussian at 10 000 alone


def contenders(case: Case):
    """Yield (name, function or None, reason for None): kernpool, its algorithms, the peers."""
    from kernpool import Problem, pool
    from kernpool.algorithms import ALGORITHMS

    def ours(algorithm: str):
        def run(case: Case) -> np.ndarray:
            return pool(
                case.query, case.key, case.value, kernel=case.kernel, bandwidth=case.bandwidth,
                algorithm=algorithm, n_jobs=case.threads, empty="zero",
            )  # fmt: skip

        return run

    probe = Problem.from_arrays(case.query[:5], case.key[:5], case.value[:5], kernel=case.kernel)
    for name, algorithm in ALGORITHMS.items():
        reason = algorithm.refusal(probe)
        if name == "reference" and case.pairs > 1e7:
            reason = "holds all pairs"
        if not (reason or "").startswith("does"):
            yield f"kernpool {name}", None if reason else ours(name), reason
    yield "kernpool", ours("auto"), None  # after its algorithms, which have compiled by now
    for peer in PEERS:
        reason = peer.cannot(case)
        if reason != "has no such kernel":
            yield peer.name, None if reason else peer.run, reason


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

    def timed() -> float:
        nonlocal found
        started = time.perf_counter()
        found = run(case)
        return time.perf_counter() - started

    found = None
    first = timed()
    if first > LONG and not is_new:
        return first, found
    seconds: list[float] = []
    while len(seconds) < 9 and sum(seconds) < ENOUGH:
        seconds.append(timed())
    return float(np.median(seconds)), found


def difference(case: Case, found: np.ndarray) -> float:
    """Largest difference to the dense expression in float64 on some queries, in ranges of the values."""
    rows = np.linspace(0, len(case.query) - 1, 50).astype(int)
    exact = Case(
        case.query[rows].astype(float), case.key.astype(float), case.value.astype(float), case.kernel, case.bandwidth, 1
    )
    expected = dense_numpy(exact)
    with np.errstate(invalid="ignore"):
        return float(np.max(np.nan_to_num(np.abs(found[rows] - expected))) / np.ptp(case.value))


def run_case(columns: int, kernel: str, dtype: str, sizes: tuple[int, ...]) -> dict:
    """Measure every contender of a case at growing sizes."""
    from yardsticks import YARDSTICKS

    results: dict[str, dict[str, dict]] = {}
    for n in sizes:
        case = make_case(n, columns, kernel, dtype, THREADS)
        entries = [(*entry, True) for entry in contenders(case)]
        entries += [
            (name, run, None, False) for name, run in YARDSTICKS.items() if columns == 1 or name != "np.argsort"
        ]
        for name, run, reason, pools in entries:
            expected = expected_seconds(name, results, n)
            history = results.setdefault(name, {})
            if any("failed" in entry.get("reason", "") for entry in history.values()):
                reason = "failed before"
            if reason:
                history[str(n)] = {"reason": reason}
                continue
            if n > SMALL and expected > LIMIT * (PATIENCE if name == "kernpool" else 1.0):
                history[str(n)] = {"reason": f"would take about {expected:.0f} s", "expected": expected}
                continue
            try:
                seconds, found = measure(run, case, is_new=not any("seconds" in e for e in history.values()))
            except Exception as error:
                history[str(n)] = {"reason": f"failed: {type(error).__name__}: {str(error).splitlines()[0][:100]}"}
                continue
            history[str(n)] = {"seconds": seconds} | ({"difference": difference(case, found)} if pools else {})
            print(f"  {columns:3d} {kernel:13s} {dtype} {n:8d} {name:24s} {seconds:9.4f} s", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("-k", "--kernels", nargs="*", default=KERNELS)
    parser.add_argument("--largest", type=int, default=max(SIZES), help="stop at so many keys (for a quick look)")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--one", nargs=3, metavar=("D", "KERNEL", "DTYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        columns, kernel, dtype = int(options.one[0]), *options.one[1:]
        found = run_case(
            columns, kernel, dtype, tuple(n for n in SIZES if n <= options.largest) if dtype == "float64" else (10_000,)
        )
        print(json.dumps(found))
        return
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    cases = [(d, k, "float64") for d in options.columns for k in options.kernels]
    cases += [(d, "gaussian", "float32") for d in options.columns if d in SINGLE and "gaussian" in options.kernels]
    for case in [] if options.draw else cases:
        # A process each: what one library does to memory or threads is no trouble to the others.
        command = [sys.executable, __file__, "--one", *map(str, case), "--largest", str(options.largest)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            last = ""
            for last in process.stdout:
                if not last.startswith("{"):
                    print(last, end="", flush=True)
        if process.returncode:
            sys.exit(f"{' '.join(map(str, case))} ended with {process.returncode}")
        results[" ".join(map(str, case))] = json.loads(last)
        REPORTS.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")
    from compare_report import draw, write

    draw(results, LIMIT, PATIENCE * LIMIT)
    disagreements = write(results, THREADS, LIMIT, AGREE)
    if disagreements:
        sys.exit("answers differ: " + "; ".join(disagreements))


if __name__ == "__main__":
    main()
