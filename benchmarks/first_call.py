"""A fresh process that pools 10 000 queries over 10 000 keys, imports included: compile cache warm, cold, read-only."""

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import finish, report

import kernpool
from kernpool import Problem, choose
from kernpool.algorithms import ALGORITHMS

WARM_BAR, COLD_BAR, WARM_RUNS = 1.0, 5.0, 3
N = 10_000
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
    ("auto", 1, "gaussian", 0.05),
    ("auto", 1, "epanechnikov", 0.05),
    ("auto", 1, "laplace", 0.05),
    ("auto", 1, "cosine", 0.05),
    ("auto", 2, "gaussian", 0.02),
    ("auto", 2, "gaussian", 0.5),
    ("auto", 2, "epanechnikov", 0.05),
    ("auto", 3, "laplace", 0.2),
    ("auto", 10, "gaussian", 0.5),
    ("auto", 10, "epanechnikov", 1.0),
    ("brute", 1, "gaussian", 0.05),
    ("brute", 2, "cosine", 0.1),
    ("sweep", 1, "tricube", 0.05),
    ("sweep", 1, "logistic", 0.02),
    ("kd_tree", 2, "gaussian", 0.02),
    ("kd_tree", 3, "boxcar", 0.1),
    ("nufft", 2, "gaussian", 0.2),
    ("reference", 2, "gaussian", 0.1),  # with fewer rows: it holds all pairs
)


def rows_of(algorithm: str) -> int:
    return 1000 if algorithm == "reference" else N


def seconds(code: str, folder: Path, *, locked: bool = False) -> float:
    """Run one process on the package and the compile cache in this folder; whatever it says is an error."""
    places = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache"), "HOME": str(folder)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | places, capture_output=True, text=True, preexec_fn=respect_permissions if locked else None,
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


def respect_permissions() -> None:
    """Give up the right of a Linux superuser to write what is read-only (PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def set_writable(folder: Path, writable: bool) -> None:
    """Give or take the right to write below a folder."""
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o755 if writable else 0o555) if path.is_dir() else (0o644 if writable else 0o444))


def measured(algorithm: str, columns: int, kernel: str, bandwidth: float) -> tuple[float, float, float]:
    """Seconds with a warm, a cold and a read-only cache."""
    code = POOL.format(n=rows_of(algorithm), columns=columns, kernel=kernel, bandwidth=bandwidth, algorithm=algorithm)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        clean = shutil.ignore_patterns("*.nb?", "__pycache__")
        shutil.copytree(Path(kernpool.__file__).parent, place / "kernpool", ignore=clean)
        (place / "cache").mkdir()
        cold = seconds(code, place)
        warm = statistics.median(seconds(code, place) for _ in range(WARM_RUNS))
        set_writable(place, False)  # the package too, beside which Numba would keep its cache otherwise
        locked = seconds(code, place, locked=True)
        set_writable(place, True)
    return warm, cold, locked


def benchmark() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-a", "--algorithms", nargs="*", default=["auto", *ALGORITHMS], help="only these; not kept")
    parser.add_argument("-d", "--columns", nargs="*", type=int, help="only these; not kept")
    options = parser.parse_args()
    rows, missed = [], []
    for case in CASES:
        algorithm, columns, kernel, bandwidth = case
        if algorithm not in options.algorithms or (options.columns and columns not in options.columns):
            continue
        warm, cold, locked = measured(*case)
        name = f"auto: {picked(*case[1:])}" if algorithm == "auto" else algorithm
        is_late = warm > WARM_BAR or cold > COLD_BAR
        missed += [f"{name}, {columns} columns, {kernel}"] if is_late else []
        n = rows_of(algorithm)
        rows.append(
            f"| {name} | {n} | {columns} | {kernel} | {bandwidth:g} | {warm:.2f} | {cold:.1f} | {locked:.1f} "
            f"| {'**missed**' if is_late else 'met'} |"
        )
        print(rows[-1], flush=True)
    report(
        "first-call",
        f"# First call of a fresh process at n = m = {N}, imports included\n\n"
        f"| algorithm | n | columns | kernel | h | warm cache (target: {WARM_BAR:g}) | cold cache (target: "
        f"{COLD_BAR:.0f}) "
        "| read-only cache | target |\n"
        "|---|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\nSeconds, two threads; warm: median of "
        f"{WARM_RUNS}. Warnings are errors in these processes and none may write to its error stream (asserted). Numba "
        "does not read a cache that it may not write, so that with a read-only one every process compiles, quietly.",
        keep=len(rows) == len(CASES),
    )
    finish(missed)


if __name__ == "__main__":
    benchmark()
