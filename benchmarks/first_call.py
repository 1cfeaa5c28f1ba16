"""A fresh process that pools 10 000 queries over 10 000 keys, imports included: compile cache warm, cold, read-only."""

import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import report

import kernpool

WARM_BAR, COLD_BAR = 1.5, 8.0
POOL = """
import warnings; warnings.simplefilter("error")
import numpy as np, kernpool
generator = np.random.default_rng(0)
query, key = generator.random((10_000, {d})), generator.random((10_000, {d}))
kernpool.pool(query, key, key[:, 0], bandwidth=0.05, kernel={kernel!r}, n_jobs=2, empty="zero")
"""


def seconds(kernel: str, d: int, folder: Path, *, locked: bool = False) -> float:
    """Run one process on the package and the compile cache in this folder; whatever it says is an error."""
    places = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache"), "HOME": str(folder)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-B", "-c", POOL.format(kernel=kernel, d=d)],
        env=os.environ | places, capture_output=True, text=True, preexec_fn=respect_permissions if locked else None,
    )  # fmt: skip
    elapsed = time.perf_counter() - started
    if done.returncode or done.stderr:
        sys.exit(f"{kernel}, {d} columns:\n{done.stderr}")
    return elapsed


def respect_permissions() -> None:
    """Give up the right of a Linux superuser to write what is read-only (PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def set_writable(folder: Path, writable: bool) -> None:
    """Give or take the right to write below a folder."""
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o755 if writable else 0o555) if path.is_dir() else (0o644 if writable else 0o444))


def benchmark() -> None:
    rows, missed = [], []
    for d in (1, 2, 10):
        for kernel in ("gaussian", "epanechnikov", "laplace"):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                shutil.copytree(
                    Path(kernpool.__file__).parent, place / "kernpool", ignore=shutil.ignore_patterns("*.nb?")
                )
                (place / "cache").mkdir()
                cold = seconds(kernel, d, place)
                warm = statistics.median(seconds(kernel, d, place) for _ in range(5))
                set_writable(place, False)  # the package too, beside which Numba would keep its cache otherwise
                locked = seconds(kernel, d, place, locked=True)
                set_writable(place, True)
            rows.append(f"| {d} | {kernel} | {warm:.2f} | {cold:.1f} | {locked:.1f} |")
            missed += [f"{kernel}, {d} columns"] if warm > WARM_BAR or cold > COLD_BAR else []
    report(
        "first-call",
        "# A fresh process at n = m = 10 000, imports included\n\n"
        f"| columns | kernel | warm cache (bar: {WARM_BAR}) | cold cache (bar: {COLD_BAR:.0f}) | read-only cache |\n"
        "|---|---|---|---|---|\n" + "\n".join(rows) + "\n\nSeconds, two threads; warm: median of 5. Warnings are "
        "errors in these processes and none may write to its error stream (asserted). Numba does not read a cache that "
        "it may not write, so that with a read-only one every process compiles, quietly.",
    )
    if missed:
        sys.exit(f"a bar was missed: {'; '.join(missed)}")


if __name__ == "__main__":
    benchmark()
