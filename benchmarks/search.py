"""Searches for bandwidths: beside statsmodels' `cv_ls`, and on many rows.

python benchmarks/search.py            everything, about ten minutes, nearly all of it statsmodels
python benchmarks/search.py --quick    a few problems of each kind, and no report
"""

import time
import warnings

import numpy as np
from measure import alternate, finish, flags, in_process, report, table, tell
from statsmodels.nonparametric.kernel_regression import KernelReg

from kernpool import NadarayaWatsonRegressor

THREADS = 2
SPEED_BAR, WORSE_BAR = 100, 1e-9  # times faster than statsmodels; how much above its criterion, relative
SORTS_BAR = 30  # times np.argsort, for a million rows
SECONDS_BAR, MEMORY_BAR = 30, 1024  # for 20 000 rows of five columns; MiB
# A process that does nothing else: the largest resident size is of the fit, interpreter and compiler included.
LARGE = """
import kernpool
make = getattr(kernpool, name)
generator = np.random.default_rng(0)
X = generator.uniform(-1, 1, size=(20_000, 5))
y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * generator.normal(size=len(X))
make(n_jobs=threads).fit(X[:300], y[:300])  # loads and compiles
started = time.perf_counter()
model = make(n_jobs=threads).fit(X, y)
seconds = time.perf_counter() - started
tell(seconds, mebibytes("VmHWM:"))
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


def beside_statsmodels(make, seeds) -> tuple[list[float], list[float]]:
    """How many times faster on each problem, and how far above their criterion, relative."""
    faster, worse = [], []
    model = NadarayaWatsonRegressor(bandwidth="loo", n_jobs=THREADS).fit(*make(0))  # loads and compiles
    for seed in seeds:
        X, y = make(seed)
        ours = alternate({"ours": lambda X=X, y=y: model.fit(X, y)}, 3)["ours"]
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = KernelReg(y, X, "c" * X.shape[1], reg_type="lc", bw="cv_ls")
        faster.append((time.perf_counter() - started) / ours)
        their_h = np.abs(theirs.bw)  # Nelder-Mead may end at a negative number, which means the same
        criterion = NadarayaWatsonRegressor(bandwidth=their_h).fit(X, y).leave_one_out().error
        worse.append(model.loo_error_ / criterion - 1)
        tell(f"{X.shape[1]} columns", f"problem {seed}", f"{faster[-1]:.0f} times", f"criterion {worse[-1]:+.1e}")
    return faster, worse


def million() -> tuple[float, float]:
    """Seconds of a fit, and of sorting the column."""
    generator = np.random.default_rng(0)
    x = generator.random(1_000_000)
    y = np.sin(20 * x) + generator.normal(size=len(x))
    model = NadarayaWatsonRegressor(n_jobs=THREADS).fit(x[:20_000, None], y[:20_000])
    seconds = alternate({"fit": lambda: model.fit(x[:, None], y), "sort": lambda: np.argsort(x)}, 3)
    return seconds["fit"], seconds["sort"]


def main() -> None:
    quick, rows, missed = flags(__doc__, "quick").quick, [], []
    for name, make, seeds in (
        ("one column, n = 1000", one_column, range(5 if quick else 40)),
        ("three columns, n = 500", three_columns, range(2 if quick else 10)),
    ):
        faster, worse = beside_statsmodels(make, seeds)
        middle, better = np.median(faster), sum(one < -1e-6 for one in worse)
        times = f"{middle:.0f} times as fast as statsmodels (from {min(faster):.0f} to {max(faster):.0f})"
        other = f"; in {better} of {len(worse)} problems theirs is a worse minimum, by up to {-min(worse):.1%}"
        apart = f"at most {max(worse):+.1e}{other if better else ''}"
        rows.append(tell(f"{name}, {len(faster)} problems", times, SPEED_BAR))
        rows.append(tell("the same: criterion over theirs, less one", apart, f"{WORSE_BAR:g}"))
        missed += [f"{name}: {middle:.0f} times"] if middle < SPEED_BAR else []
        missed += [f"{name}: criterion {max(worse):+.1e}"] if max(worse) > WORSE_BAR else []
    fit, sort = million()
    times = f"{fit:.2f} s, {fit / sort:.1f} times `np.argsort` of the column"
    rows.append(tell("one column, n = 1 000 000, Gaussian, all rows", times, SORTS_BAR))
    missed += [f"n = 1 000 000: {fit / sort:.0f} sorts"] if fit / sort > SORTS_BAR else []
    for name in ("NadarayaWatsonRegressor", "LocalLinearRegressor"):
        seconds, peak = in_process(LARGE, name=name, threads=THREADS)
        found = f"{seconds:.1f} s, {peak:.0f} MiB"
        rows.append(
            tell(f"five columns, n = 20 000, `{name}()`, all rows", found, f"{SECONDS_BAR} s, {MEMORY_BAR} MiB")
        )
        if seconds > SECONDS_BAR or peak > MEMORY_BAR:
            missed.append(f"n = 20 000, {name}: {seconds:.0f} s, {peak:.0f} MiB")
    report(
        "search",
        "# Bandwidth searches",
        table("what | measured | target", rows),
        "Leave-one-out squared error, Gaussian kernel, one bandwidth per column; the two last rows are with the "
        f'default, `bandwidth="regularised"`. kernpool runs on {THREADS} threads, median of three fits; '
        'statsmodels\' `KernelReg(..., bw="cv_ls")` runs once, and has no threads.',
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
