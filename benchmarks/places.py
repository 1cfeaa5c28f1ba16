"""Coefficients by place: beside mgwr, and of many places.

python benchmarks/places.py            everything, about five minutes, most of it MGWR
python benchmarks/places.py --quick    without MGWR and a million places, and no report
"""

import time
from importlib.metadata import version

import numpy as np
from measure import alternate, finish, flags, report, table, tell
from mgwr.gwr import GWR, MGWR
from mgwr.sel_bw import Sel_BW

from kernpool import Nearest, VaryingCoefficientRegressor

THREADS = 2
FIXED = {"fixed": True, "kernel": "gaussian"}
SEEDS = 5, 6  # of the samples for MGWR


def sample(rows, seed=5):
    """Return places, three columns, outputs, and the true coefficients: a curve, a slope, a product and a constant."""
    rng = np.random.default_rng(seed)
    place, x = rng.uniform(size=(rows, 2)), rng.normal(size=(rows, 3))
    east, north = place.T
    true = np.column_stack([1 + east, np.sin(5 * north), 3 * east * north, np.full(rows, 2.0)])
    y = np.sum(np.column_stack([np.ones(rows), x]) * true, axis=1) + 0.5 * rng.normal(size=rows)
    return place, x, y, true


def model(*parameters, **options):
    """Return a regressor by place."""
    return VaryingCoefficientRegressor(*parameters, by=[0, 1], n_jobs=THREADS, **options)


def fit_of(of, rows):
    """Return a function that fits a sample."""
    place, x, y, _ = sample(rows)
    return lambda: of.fit(np.hstack([place, x]), y)


def beside_mgwr(rows, ours, theirs):
    """Return how many times faster a call is, and the seconds of both."""
    place, x, y, _ = sample(rows)
    calls = {"ours": fit_of(ours, rows), "theirs": lambda: theirs(place, y[:, None], x)}
    theirs(place[:300], y[:300, None], x[:300])  # starts its processes
    seconds = alternate(calls, 3)
    return seconds["theirs"] / seconds["ours"], f"{seconds['ours']:.3g} s, mgwr {seconds['theirs']:.3g} s"


def difference():
    """Return the largest relative difference of coefficients to those of mgwr in the same windows."""
    place, x, y, _ = sample(1000)
    ours = model("gaussian", 0.1).fit(np.hstack([place, x]), y).coef_
    theirs = GWR(place, y[:, None], x, bw=0.1, **FIXED).fit().params
    return np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))


def multiscale(seed):
    """Return seconds and root mean squared errors of ours and of MGWR."""
    place, x, y, true = sample(1000, seed)
    found = []
    started = time.perf_counter()
    ours = model(bandwidth="multiscale").fit(np.hstack([place, x]), y).coef_
    found += [time.perf_counter() - started, np.sqrt(np.mean((ours - true) ** 2))]
    started = time.perf_counter()
    selector = Sel_BW(place, y[:, None], x, multi=True, **FIXED)
    selector.search()
    theirs = MGWR(place, y[:, None], x, selector, **FIXED).fit().params
    return [*found, time.perf_counter() - started, np.sqrt(np.mean((theirs - true) ** 2))]


def main():
    quick, rows, missed = flags(__doc__, "quick").quick, [], []

    def row(what, measured, found, bar, *, at_most=True):
        rows.append(tell(what, measured, f"{bar:g}"))
        if (found > bar) == at_most and found != bar:
            missed.append(f"{what}: {measured}")

    nearest, by_aicc = model("biweight", 1.0, window=Nearest(60)), model(bandwidth="aicc")
    by_number = model("biweight", "aicc", window=Nearest())
    for warm in (nearest, by_aicc, by_number, model(bandwidth="multiscale")):
        fit_of(warm, 300)()
    times, said = beside_mgwr(5000, nearest, lambda place, y, x: GWR(place, y, x, bw=60).fit())
    row("5000 places, windows to the 60 nearest, times as fast", f"{times:.0f} ({said})", times, 100, at_most=False)
    times, said = beside_mgwr(1000, by_aicc, lambda place, y, x: Sel_BW(place, y, x, **FIXED).search())
    row("1000 places, search of a width by AICc, times as fast", f"{times:.0f} ({said})", times, 100, at_most=False)
    for size in 1000, 5000:
        times, said = beside_mgwr(size, by_number, lambda place, y, x: Sel_BW(place, y, x).search())
        what = f"{size} places, search of the number of nearest ones, times as fast"
        row(what, f"{times:.1f} ({said})", times, 1, at_most=False)
    apart = difference()
    row("coefficients in the same windows, relative difference", f"{apart:.0e}", apart, 1e-9)
    for seed in () if quick else SEEDS:
        seconds, error, their_seconds, their_error = multiscale(seed)
        times = their_seconds / seconds
        said = f"{times:.0f} ({seconds:.3g} s, MGWR {their_seconds:.3g} s)"
        row(f"1000 places, a width for each coefficient, sample {seed}, times as fast", said, times, 20, at_most=False)
        said = f"{error / their_error:.3f} ({error:.4f}, MGWR {their_error:.4f})"
        row("the same: root mean squared error of coefficients, times MGWR's", said, error / their_error, 1)
    for what, of, size, bar in (
        ("100 000 places, windows of .02", model("gaussian", 0.02), 100_000, 2),
        ("100 000 places, windows to the 500 nearest", model("biweight", 1.0, window=Nearest(500)), 100_000, 15),
        ("100 000 places, search of a width on all", model(search={"rows": None}), 100_000, 30),
        ("1 000 000 places, windows of .02", model("gaussian", 0.02), 1_000_000, 30),
    ):
        if not (quick and size > 100_000):
            seconds = alternate({"fit": fit_of(of, size)}, 1)["fit"]
            row(f"{what}, seconds", f"{seconds:.3g}", seconds, bar)
    report(
        "places",
        "# Coefficients by place",
        table("what | measured | target", rows),
        f"Four coefficients; kernpool runs on {THREADS} threads, mgwr {version('mgwr')} by its defaults on both cores. "
        "With `n_jobs=1` and one thread of BLAS its search takes three quarters of the time, MGWR nine tenths, and a "
        "fit as long. It searches one width for both directions, kernpool one for each.",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
