"""How long conditional quantiles take: of a million rows, and beside a sorted table of weights.

python benchmarks/quantiles.py            everything, about two minutes, and the report
python benchmarks/quantiles.py --quick    50 000 rows, and no report
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from measure import alternate, busy, finish, report

from kernpool import pool, pool_quantile, pooling_weights

THREADS, ROUNDS = 2, 3
LEVELS = [0.1, 0.5, 0.9]
BANDWIDTH = 0.005
FEW = 401  # places
FEW_BARS, MANY_BARS = (1.0, 3.0), (20.0, 10.0)  # seconds, and memory in inputs: at few places, at as many as rows
TABLE_ROWS, TABLE_PLACES = 20_000, 500

# What a process takes beyond its rows and places. Loops are compiled before, and the peak is counted from there.
PEAK = """
import numpy as np
from kernpool import pool_quantile
generator = np.random.default_rng(0)
x, y, places = generator.random(({n}, 1)), generator.normal(size={n}), np.linspace(0.0, 1.0, {m})[:, None]
def ask(x, y, places):
    pool_quantile(places, x, y, {levels}, bandwidth={h}, n_jobs={threads})
ask(x[:20000], y[:20000], places[:: max(1, {m} // 2000)])
def kilobytes(name):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name)))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins here
before = kilobytes("VmRSS:")
ask(x, y, places)
print((kilobytes("VmHWM:") - before) * 1024 / (x.nbytes + y.nbytes + places.nbytes))
"""


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a wave whose noise grows."""
    generator = np.random.default_rng(0)
    x = generator.uniform(size=n)
    return x[:, None], np.sin(2 * np.pi * x) + (0.2 + 0.3 * x) * generator.normal(size=n)


def by_table(places, x, y, **options):
    """The same by a table of weights, row by row in the order of values."""
    order = np.argsort(y, kind="stable")
    total = np.cumsum(pooling_weights(places, x, **options)[:, order], axis=1)
    found = np.stack([np.argmax(total >= level - 1e-13, axis=1) for level in LEVELS], axis=1)
    return y[order][found]


def main() -> None:
    quick = "--quick" in sys.argv
    n = 50_000 if quick else 1_000_000
    x, y = sample(n)
    rows, missed = [], []
    for m, (bar, memory_bar), rounds in ((FEW, FEW_BARS, ROUNDS), (n, MANY_BARS, 1)):
        places, options = np.linspace(0.0, 1.0, m)[:, None], {"bandwidth": BANDWIDTH, "n_jobs": THREADS}
        contenders = {
            "means": lambda places=places, options=options: pool(places, x, y, **options),
            "quantiles": lambda places=places, options=options: pool_quantile(places, x, y, LEVELS, **options),
        }
        alternate({name: run for name, run in contenders.items() if m == FEW}, 1)
        seconds = alternate(contenders, rounds)
        asked = PEAK.format(n=n, m=m, levels=LEVELS, h=BANDWIDTH, threads=THREADS)
        memory = float(subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout)
        rows.append(
            f"| {m} | {seconds['means']:.3g} s | {seconds['quantiles']:.3g} s | {bar:g} s "
            f"| {seconds['quantiles'] / seconds['means']:.1f} | {memory:.2f} |"
        )
        missed += [f"{seconds['quantiles']:.3g} s at {m} places"] * (not quick and seconds["quantiles"] > bar)
        missed += [f"memory {memory:.2f} times the inputs at {m} places"] * (not quick and memory > memory_bar)
    x, y = sample(TABLE_ROWS)
    places, options = np.linspace(0.0, 1.0, TABLE_PLACES)[:, None], {"bandwidth": 0.02}
    same = np.mean(by_table(places, x, y, **options) == pool_quantile(places, x, y, LEVELS, **options))
    seconds = alternate(
        {
            "table": lambda: by_table(places, x, y, **options),
            "ours": lambda: pool_quantile(places, x, y, LEVELS, **options),
        },
        ROUNDS,
    )
    report(
        "quantiles",
        "\n".join(
            [
                f"# Running time of conditional quantiles: {n} rows of one column, 3 levels, h = {BANDWIDTH:g}, "
                f"{THREADS} threads",
                "",
                "| places | means | quantiles | target | times the means | memory |",
                "|---|---|---|---|---|---|",
                *rows,
                "",
                "*Memory*: what a fresh process takes at its peak beyond rows and places, in times these; targets "
                f"{FEW_BARS[1]:g} and {MANY_BARS[1]:g}.",
                "",
                f"Beside a table of weights, put in the order of values and added up: {TABLE_ROWS} rows, "
                f"{TABLE_PLACES} places, one thread, {seconds['table']:.2f} s and {seconds['ours']:.3f} s, "
                f"{seconds['table'] / seconds['ours']:.0f} times as fast; {100 * same:.6g} % of the quantiles are the "
                "same, bit for bit.",
                "",
                f"Medians of {ROUNDS} alternating runs after one to warm up; one run at as many places as rows.",
                busy(),
            ]
        ),
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
