"""What it costs to hold every answer against what is known of it: the share of the time of whole calls.

Clocks around the two checks, within the calls that they are part of: differences between calls with and without them
are smaller than the noise.
"""

import statistics
import time

import numpy as np
from measure import finish, report
from one_column import BANDWIDTHS, BARS, CURVE, MILLION
from tree import BARS as TREES
from tree import N, data, radius

from kernpool import pool
from kernpool.algorithms.tree import tree
from kernpool.pooling import plan

THREADS, ROUNDS, BAR = 2, 7, 0.02


class Clock:
    """Wraps functions, and adds up the time that they take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function):
        def timed(*arguments):
            started = time.perf_counter()
            found = function(*arguments)
            self.seconds += time.perf_counter() - started
            return found

        return timed


def share(clock: Clock, run) -> tuple[float, float]:
    """Median seconds of a call, and the median share of them that the checks take."""
    run()
    seconds, shares = [], []
    for _ in range(ROUNDS):
        clock.seconds, started = 0.0, time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
        shares.append(clock.seconds / seconds[-1])
    return statistics.median(seconds), statistics.median(shares)


def benchmark() -> None:
    clock = Clock()
    plan.corrected, tree.compared = clock.around(plan.corrected), clock.around(tree.compared)
    rows, missed = [], []

    def measure(what, *arrays, **options):
        seconds, part = share(clock, lambda: pool(*arrays, n_jobs=THREADS, empty="zero", **options))
        rows.append(f"| {what} | {seconds:.3f} | {part:.2%} |")
        print(rows[-1], flush=True)
        if part > BAR:
            missed.append(f"{what}: {part:.1%}")

    for kernel, d in TREES:
        h = radius(N, d) / (2 if kernel == "gaussian" else 1)
        measure(f"{kernel}, d = {d}, {N} x {N}, tree", *data(N, d), kernel=kernel, bandwidth=h, algorithm="kd_tree")
    generator = np.random.default_rng(0)
    key, value = generator.random(MILLION), generator.normal(size=MILLION)
    for query in (generator.random(MILLION), np.linspace(0, 1, CURVE)):
        for kernel in BARS:
            for h in BANDWIDTHS[::2]:
                measure(f"{kernel}, h = {h:g}, {len(query)} x {MILLION}, sweep", query, key, value, kernel=kernel,
                        bandwidth=h)  # fmt: skip
    table = "\n".join(rows)
    report(
        "verification",
        f"# Cost of run-time verification (target: {BAR:.0%})\n\n"
        f"| call | seconds | share of the checks |\n|---|---|---|\n{table}\n\n"
        f"{THREADS} threads, medians of {ROUNDS} calls. The share is that of the time within the calls themselves.",
    )
    finish(missed)


if __name__ == "__main__":
    benchmark()
