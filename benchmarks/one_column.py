"""One column, from unsorted arrays to pooled values, beside `np.argsort` of them.

python benchmarks/one_column.py            a million keys; as many queries, and a curve of 401; about two minutes
python benchmarks/one_column.py --large    ten million of both, and the memory that takes; about three minutes
"""

import os
import subprocess
import sys

import numpy as np
from measure import alternate, finish, report

from kernpool import pool

THREADS, BANDWIDTHS = 2, (0.002, 0.04, 0.4)
BARS = {  # how many times np.argsort of keys and queries; for the curve, of the keys alone
    "boxcar": 2,
    "epanechnikov": 2,
    "triangular": 2,
    "biweight": 2,
    "triweight": 2,
    "tricube": 2,
    "laplace": 2,
    "gaussian": 3,
}
MILLION, LARGE = 1_000_000, 10_000_000
LARGE_KERNELS = ("boxcar", "epanechnikov", "tricube", "laplace", "gaussian")
CURVE, CURVE_BAR, MEMORY_BAR = 401, 0.5, 6
# The largest resident size of a process that does nothing else, compiler and all, in times its three arrays. (Not by
# getrusage: there a process starts with the peak of the one that started it.)
MEMORY = """
import numpy as np
from kernpool import pool
generator = np.random.default_rng(0)
query, key, value = (generator.random({n}) for _ in range(3))
pool(query, key, value, kernel={kernel!r}, bandwidth={bandwidth}, n_jobs={threads}, empty="zero")
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak) * 1024 / (query.nbytes + key.nbytes + value.nbytes))
"""


def times(n: int, m: int, kernels, rounds: int) -> tuple[list[str], list[str]]:
    """Rows of the table, seconds and multiples of sorting for each kernel and bandwidth; and what missed its target."""
    generator = np.random.default_rng(0)
    key, value = generator.random(n), generator.normal(size=n)
    query = np.linspace(0, 1, m) if m == CURVE else generator.random(m)
    sorting = (lambda: np.argsort(key)) if m == CURVE else (lambda: (np.argsort(key), np.argsort(query)))
    rows, missed = [], []
    for kernel in kernels:
        cells, bar = [], CURVE_BAR if m == CURVE else BARS[kernel]
        for h in BANDWIDTHS:
            # H is bound, the others called before the next turn.
            run = lambda h=h: pool(query, key, value, kernel=kernel, bandwidth=h, n_jobs=THREADS, empty="zero")  # noqa: B023,E731
            found, some = run(), slice(None, None, max(1, m // 100))
            exact = pool(
                query[some], key, value, kernel=kernel, bandwidth=h, algorithm="brute", n_jobs=THREADS, empty="zero"
            )
            assert np.abs(found[some] - exact).max() <= 1e-12 * np.ptp(value)
            median = alternate({"sort": sorting, "pool": run}, rounds)
            ratio = median["pool"] / median["sort"]
            cells.append(f"{median['pool']:.3f} s, {ratio:.2f}")
            missed += [f"{kernel}, h = {h:g}, m = {m}: {ratio:.2f}"] if ratio > bar else []
        rows.append(f"| {n} | {m} | {kernel} | {' | '.join(cells)} | {bar} |")
        print(rows[-1], flush=True)
    return rows, missed


def memory(kernel: str, bandwidth: float) -> float:
    code = MEMORY.format(n=LARGE, kernel=kernel, bandwidth=bandwidth, threads=THREADS)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    return float(done.stdout)


def benchmark(large: bool) -> None:
    if large:
        rows, missed = times(LARGE, LARGE, LARGE_KERNELS, 1)
    else:
        rows, missed = times(MILLION, MILLION, BARS, 5)
        curve, curve_missed = times(MILLION, CURVE, BARS, 9)
        rows, missed = rows + curve, missed + curve_missed
    head = "|".join(["", " keys ", " queries ", " kernel ", *(f" h = {h} " for h in BANDWIDTHS), " target ", ""])
    table = "\n".join([head, "|---" * 7 + "|", *rows])
    text = (
        f"# Running time in one column, {'10^7' if large else '10^6'} uniform keys, float64, two threads\n\n{table}\n\n"
        "Seconds from unsorted arrays to pooled values, and how many times `np.argsort` of keys and queries (for a "
        f"curve of {CURVE} points, of the keys alone), which runs on one thread. "
        f"{'One run each' if large else 'Medians of alternating runs'}, after one to warm up. A sample of the answers "
        "agrees with brute force to 1e-12 of the range (asserted)."
    )
    if large:
        peaks = {kernel: max(memory(kernel, h) for h in BANDWIDTHS[::2]) for kernel in LARGE_KERNELS}
        missed += [f"memory, {kernel}: {peak:.1f}" for kernel, peak in peaks.items() if peak > MEMORY_BAR]
        lines = "\n".join(f"| {kernel} | {peak:.2f} |" for kernel, peak in peaks.items())
        text += (
            f"\n\n## Memory\n\n| kernel | largest resident size, in times the inputs (target: {MEMORY_BAR}) "
            "|\n|---|---|\n"
            f"{lines}\n\nOf a fresh process for each, interpreter, compiler and the inputs themselves "
            f"({3 * 8 * LARGE / 2**20:.0f} MiB) included; the larger of h = {BANDWIDTHS[0]:g} and {BANDWIDTHS[-1]:g}."
        )
    report("one-column-large" if large else "one-column", text)
    finish(missed)


if __name__ == "__main__":
    benchmark("--large" in sys.argv)
