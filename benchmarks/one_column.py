"""One column, from unsorted arrays to pooled values, beside `np.argsort` of them; ``--large`` adds ten million rows."""

import resource
import sys

import numpy as np
from measure import alternate, report

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
CURVE, CURVE_BAR = 401, 0.5


def times(n: int, m: int, rounds: int) -> list[str]:
    """Rows of the table: seconds and multiples of sorting, for each kernel and bandwidth."""
    generator = np.random.default_rng(0)
    key, value = generator.random(n), generator.normal(size=n)
    query = np.linspace(0, 1, m) if m == CURVE else generator.random(m)
    sorting = (lambda: np.argsort(key)) if m == CURVE else (lambda: (np.argsort(key), np.argsort(query)))
    rows = []
    for kernel, bar in BARS.items():
        cells = []
        for h in BANDWIDTHS:
            run = lambda h=h: pool(query, key, value, kernel=kernel, bandwidth=h, n_jobs=THREADS, empty="zero")  # noqa: B023,E731
            run()
            some = slice(None, None, max(1, m // 300))
            exact = pool(
                query[some], key, value, kernel=kernel, bandwidth=h, algorithm="brute", n_jobs=THREADS, empty="zero"
            )
            assert np.abs(run()[some] - exact).max() <= 1e-12 * np.ptp(value)
            median = alternate({"sort": sorting, "pool": run}, rounds)
            cells.append(f"{median['pool']:.3f} s, {median['pool'] / median['sort']:.2f}")
        rows.append(f"| {n} | {m} | {kernel} | {' | '.join(cells)} | {CURVE_BAR if m == CURVE else bar} |")
    return rows


def benchmark() -> None:
    rows = times(1_000_000, 1_000_000, 5) + times(1_000_000, CURVE, 9)
    memory = ""
    if "--large" in sys.argv:
        rows += times(10_000_000, 10_000_000, 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / (3 * 8 * 10_000_000)
        memory = f" The largest resident size with 1e7 rows was {peak:.1f} times the inputs (bar: 6), sorting included."
    head = "|".join(["", " keys ", " queries ", " kernel ", *(f" h = {h} " for h in BANDWIDTHS), " bar ", ""])
    table = "\n".join([head, "|---" * 7 + "|", *rows])
    report(
        "one-column",
        f"# One column, uniform keys, float64, two threads\n\n{table}\n\n"
        "Seconds from unsorted arrays to pooled values, and how many times `np.argsort` of keys and queries (for the "
        f"curve of {CURVE} points, of the keys alone), which runs on one thread. Medians of alternating runs. A sample "
        f"of the answers agrees with brute force to 1e-12 of the range (asserted).{memory}",
    )


if __name__ == "__main__":
    benchmark()
