"""n = m = 10 000, one column, float64, two threads, beside the dense NumPy expression; and the memory of it."""

import resource
import sys

import numpy as np
from measure import alternate, report

from kernpool import kernel_names, pool

N, BANDWIDTH, THREADS, ROUNDS = 10_000, 0.1, 2, 9


def resident_mebibytes() -> float:
    """Return the largest resident size this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def benchmark() -> None:
    generator = np.random.default_rng(0)
    query, key, value = (generator.normal(size=N) for _ in range(3))

    def dense():
        weights = np.exp(-0.5 * ((query[:, None] - key) / BANDWIDTH) ** 2)
        return weights @ value / weights.sum(axis=1)

    def tiled(kernel="gaussian", n_jobs=THREADS):
        return pool(
            query, key, value, kernel=kernel, bandwidth=BANDWIDTH, n_jobs=n_jobs, empty="zero", algorithm="brute"
        )

    pool(query[:1100], key[:1100], value[:1100], algorithm="brute")  # warms up: loads and compiles, with little memory
    before = resident_mebibytes()
    found = tiled()
    growth = resident_mebibytes() - before  # measured before the dense expression has taken its gigabytes
    assert np.abs(found - dense()).max() < 1e-12 * np.ptp(value)

    contenders = {"dense NumPy": dense} | {kernel: (lambda k=kernel: tiled(k)) for kernel in kernel_names()}
    contenders["gaussian, one thread"] = lambda: tiled(n_jobs=1)
    median = alternate(contenders, ROUNDS)
    base = median.pop("dense NumPy")
    rows = "\n".join(f"| {name} | {t:.3f} | {N * N / t / 1e9:.2f} | {base / t:.1f} |" for name, t in median.items())
    report(
        "brute-force",
        f"# Running time of brute force: {N} queries, {N} keys, one column, float64\n\n"
        "| what | seconds | 1e9 pairs/s | times as fast as dense NumPy |\n|---|---|---|---|\n"
        f"| dense NumPy, Gaussian | {base:.3f} | {N * N / base / 1e9:.2f} | 1 |\n{rows}\n\n"
        f"Kernels run on {THREADS} threads unless said otherwise; medians of {ROUNDS} alternating runs. The answers "
        "agree to 1e-12 of the range of the values (asserted).\n\n"
        f"Resident memory grew by {growth:.1f} MiB over a warmed-up process (target: 64); the weights alone would take "
        f"{8 * N * N / 2**20:.0f} MiB.",
    )
    if base / median["gaussian"] < 3 or growth > 64:
        sys.exit("a target was missed")


if __name__ == "__main__":
    benchmark()
