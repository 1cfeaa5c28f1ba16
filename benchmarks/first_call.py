"""Fresh processes, imports included: 50 queries, and 10 000 with the compile cache warm and cold.

python benchmarks/first_call.py            everything, three minutes
python benchmarks/first_call.py --quick    two cases, and no report
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import alternate, finish, flags, report, tell

import kernpool
from kernpool import Problem, choose

WARM_BAR, COLD_BAR, START_BAR, WARM_RUNS, START_RUNS = 1.0, 5.0, 0.3, 3, 15
N = 10_000
START = """
import sys, kernpool, numpy
x = numpy.linspace(0, 5, 50)
kernpool.pool(x, x, x)
assert not {'numba', 'torch', 'sklearn', 'matplotlib'} & set(sys.modules), sys.modules.keys()
"""
POOL = """
import warnings; warnings.simplefilter("error")
import numpy as np, kernpool
generator = np.random.default_rng(0)
query, key = generator.random(({n}, {columns})), generator.random(({n}, {columns}))
kernpool.pool(
    query, key, key[:, 0], bandwidth={bandwidth}, kernel={kernel!r}, algorithm={algorithm!r}, n_jobs=2, empty="zero"
)
"""
# Algorithm, columns, kernel, bandwidth: what is picked for narrow and wide, few and many columns; then all by name.
CASES = (
    ("auto", 1, "gaussian", 0.05), ("auto", 2, "gaussian", 0.02), ("auto", 2, "gaussian", 0.5),
    ("auto", 2, "epanechnikov", 0.05), ("auto", 3, "laplace", 0.2), ("auto", 10, "gaussian", 0.5),
    ("sweep", 1, "tricube", 0.05), ("sweep", 1, "logistic", 0.02), ("kd_tree", 2, "gaussian", 0.02),
    ("kd_tree", 3, "boxcar", 0.1), ("nufft", 2, "gaussian", 0.2), ("reference", 2, "gaussian", 0.1),
)  # fmt: skip


def seconds(code: str, folder: Path) -> float:
    """Run one process on the package and the compile cache in this folder; whatever it says is an error."""
    places = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache"), "HOME": str(folder)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | places, capture_output=True, text=True,
    )  # fmt: skip
    elapsed = time.perf_counter() - started
    if done.returncode or done.stderr:
        sys.exit(f"{code}\n{done.stderr}")
    return elapsed


def picked(columns: int, kernel: str, bandwidth: float) -> str:
    """What such a process picks: no compiler is loaded here either."""
    generator = np.random.default_rng(0)
    query, key = generator.random((N, columns)), generator.random((N, columns))
    return choose(Problem.from_arrays(query, key, key[:, 0], kernel=kernel, bandwidth=bandwidth)).algorithm


def measured(code: str) -> tuple[float, float]:
    """Seconds with a warm and a cold cache."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        clean = shutil.ignore_patterns("*.nb?", "__pycache__")
        shutil.copytree(Path(kernpool.__file__).parent, place / "kernpool", ignore=clean)
        (place / "cache").mkdir()
        cold = seconds(code, place)
        warm = statistics.median(seconds(code, place) for _ in range(WARM_RUNS))
    return warm, cold


def main() -> None:
    def between(column: int) -> str:
        found = [float(row[column]) for row in rows if row[0] != "reference"]
        return f"{min(found):g} to {max(found):g}"

    quick, rows, missed = flags(__doc__, "quick").quick, [], []
    for algorithm, *case in CASES[::10] if quick else CASES:
        columns, kernel, bandwidth = case
        n = 1000 if algorithm == "reference" else N  # it holds all pairs
        given = {"n": n, "columns": columns, "kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm}
        warm, cold = measured(POOL.format(**given))
        name = f"auto: {picked(*case)}" if algorithm == "auto" else algorithm
        is_late = warm > WARM_BAR or cold > COLD_BAR
        missed += [f"{name}, {columns} columns, {kernel}"] if is_late else []
        rows.append(tell(name, columns, kernel, f"{warm:.2f}", f"{cold:.1f}"))
    late = "; ".join(missed)
    codes = {"numpy": "import numpy", "kernpool": START}
    processes = {
        name: lambda code=code: subprocess.run([sys.executable, "-c", code], check=True) for name, code in codes.items()
    }
    start = alternate(processes, START_RUNS)
    apart = start["kernpool"] - start["numpy"]
    missed += [f"a small call {apart:.2f} s after NumPy"] if apart > START_BAR else []
    report(
        "first-call",
        "# First call of a fresh process",
        f"n = m = {N}, imports included, two threads, {len(rows)} algorithms and kernels: {between(3)} s with a warm "
        "cache "
        f"(median of {WARM_RUNS}; target: {WARM_BAR:g}), {between(4)} s with a cold one (target: {COLD_BAR:.0f})."
        + (f" Beyond their targets: {late}." if late else ""),
        f"50 queries and 50 keys: `import kernpool` and `pool` take {start['kernpool']:.3f} s, `import numpy` alone "
        f"{start['numpy']:.3f} s (target: at most {START_BAR:g} s more).",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
