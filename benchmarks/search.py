"""Searches for bandwidths: beside statsmodels' `cv_ls`, and on many rows.

python benchmarks/search.py            everything, about ten minutes, nearly all of it statsmodels
python benchmarks/search.py --quick    a few problems of each kind
"""

import os
import subprocess
import sys
import time
import warnings

import numpy as np
from measure import finish, report
from statsmodels.nonparametric.kernel_regression import KernelReg

from kernpool import NadarayaWatsonRegressor

THREADS = 2
SPEED_BAR, WORSE_BAR = 100, 1e-9  # times faster than statsmodels; how much above its criterion, relative
SORTS_BAR = 30  # times np.argsort, for a million rows
SECONDS_BAR, MEMORY_BAR = 30, 1024  # for 20 000 rows of five columns; MiB
# A process that does nothing else: the largest resident size is of the fit, interpreter and compiler included.
LARGE = """
import time
import numpy as np
from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
generator = np.random.default_rng(0)
X = generator.uniform(-1, 1, size=(20_000, 5))
y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * generator.normal(size=len(X))
{make}(n_jobs={threads}).fit(X[:300], y[:300])  # loads and compiles
started = time.perf_counter()
model = {make}(n_jobs={threads}).fit(X, y)
seconds = time.perf_counter() - started
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(seconds, int(peak) / 1024, model.bandwidth_search_.evaluations, *model.relevance_.round(3), sep=",")
"""


def one_column(seed, n=1000):
    """Waves of some frequency in some noise, at uniform or clustered places."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, n) if seed % 2 else generator.beta(0.7, 1.5, n)
    frequency, noise = generator.uniform(2, 30), generator.uniform(0.1, 1.0)
    return x[:, None], np.sin(frequency * x) + 0.5 * x**2 + noise * generator.normal(size=n)


def three_columns(seed, n=500):
    """A wave, a product and, in every other problem, a column of no use."""
    generator = np.random.default_rng(1000 + seed)
    X = generator.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] if seed % 2 else 1.0) + 0.5 * generator.normal(size=n)
    return X, y


def criterion(X, y, h):
    return NadarayaWatsonRegressor(bandwidth=h).fit(X, y).leave_one_out().error


def beside_statsmodels(make, seeds) -> tuple[list[float], list[float]]:
    """How many times faster on each problem, and how far above their criterion, relative."""
    faster, worse = [], []
    NadarayaWatsonRegressor(bandwidth="loo", n_jobs=THREADS).fit(*make(0))  # loads and compiles
    for seed in seeds:
        X, y = make(seed)
        ours = []
        for _ in range(3):
            started = time.perf_counter()
            model = NadarayaWatsonRegressor(bandwidth="loo", n_jobs=THREADS).fit(X, y)
            ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = KernelReg(y, X, "c" * X.shape[1], reg_type="lc", bw="cv_ls")
        seconds = time.perf_counter() - started
        their_h = np.abs(theirs.bw)  # Nelder-Mead may end at a negative number, which means the same
        faster.append(seconds / float(np.median(ours)))
        worse.append(model.loo_error_ / criterion(X, y, their_h) - 1)
        print(
            f"{X.shape[1]} columns, problem {seed}: {seconds:.2f} s and {np.median(ours):.4f} s, {faster[-1]:.0f} "
            f"times; criterion {worse[-1]:+.1e}",
            flush=True,
        )
    return faster, worse


def million() -> tuple[float, float, int]:
    """Seconds of a fit, of sorting the column, and evaluations."""
    generator = np.random.default_rng(0)
    x = generator.random(1_000_000)
    y = np.sin(20 * x) + generator.normal(size=len(x))
    fits, sorts = [], []
    NadarayaWatsonRegressor(n_jobs=THREADS).fit(x[:20_000, None], y[:20_000])
    for _ in range(3):
        started = time.perf_counter()
        model = NadarayaWatsonRegressor(n_jobs=THREADS).fit(x[:, None], y)
        fits.append(time.perf_counter() - started)
        started = time.perf_counter()
        np.argsort(x)
        sorts.append(time.perf_counter() - started)
    return float(np.median(fits)), float(np.median(sorts)), model.bandwidth_search_.evaluations


def large(make: str) -> list[str]:
    code = LARGE.format(make=make, threads=THREADS)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    return done.stdout.strip().split(",")


def benchmark(quick: bool) -> None:
    rows, missed = [], []
    for name, make, seeds in (
        ("one column, n = 1000", one_column, range(5 if quick else 40)),
        ("three columns, n = 500", three_columns, range(2 if quick else 10)),
    ):
        faster, worse = beside_statsmodels(make, seeds)
        better = sum(one < -1e-6 for one in worse)
        rows.append(
            f"| {name}, {len(faster)} problems | {np.median(faster):.0f} times as fast as statsmodels (from "
            f"{min(faster):.0f} to {max(faster):.0f}) | {SPEED_BAR} |"
        )
        other = f"; in {better} of {len(worse)} problems theirs is a worse minimum, by up to {-min(worse):.1%}"
        rows.append(
            f"| the same: criterion over theirs, less one | at most {max(worse):+.1e}{other if better else ''} | "
            f"{WORSE_BAR:g} |"
        )
        missed += [f"{name}: {np.median(faster):.0f} times"] if np.median(faster) < SPEED_BAR else []
        missed += [f"{name}: criterion {max(worse):+.1e}"] if max(worse) > WORSE_BAR else []
    fit, sort, evaluations = million()
    rows.append(
        f"| one column, n = 1 000 000, Gaussian, all rows | {fit:.2f} s, {fit / sort:.1f} times `np.argsort` of the "
        f"column; {evaluations} evaluations, most of them on 2048 rows | {SORTS_BAR} |"
    )
    missed += [f"n = 1 000 000: {fit / sort:.0f} sorts"] if fit / sort > SORTS_BAR else []
    for make in ("NadarayaWatsonRegressor", "LocalLinearRegressor"):
        seconds, peak, evaluations, *relevance = large(make)
        rows.append(
            f"| five columns, n = 20 000, `{make}()`, all rows | {float(seconds):.1f} s, {float(peak):.0f} MiB; "
            f"{evaluations} evaluations; relevance {', '.join(relevance)} | {SECONDS_BAR} s, {MEMORY_BAR} MiB |"
        )
        print(rows[-1], flush=True)
        if float(seconds) > SECONDS_BAR or float(peak) > MEMORY_BAR:
            missed.append(f"n = 20 000, {make}: {float(seconds):.0f} s, {float(peak):.0f} MiB")
    table = "\n".join(["| what | measured | target |", "|---|---|---|", *rows])
    text = (
        f"# Running time of bandwidth searches\n\n{table}\n\nLeave-one-out squared error, Gaussian kernel, one "
        "bandwidth per "
        'column; the two last rows are with the default, `bandwidth="regularised"`. '
        f"kernpool runs on {THREADS} threads, median of three fits; statsmodels' `KernelReg(..., "
        'bw="cv_ls")` runs once, as it takes seconds, and has no threads. Both criteria are evaluated by the same '
        "function. In five columns the truth is a wave in the first, a product of the second and third, a line in the "
        "fourth, and nothing in the fifth."
    )
    report("search", text, keep=not quick)
    finish(missed)


if __name__ == "__main__":
    benchmark("--quick" in sys.argv)
