"""How long standard errors, intervals and bands take: in milliseconds, in passes over the rows, and beside peers.

python benchmarks/inference.py            everything, two minutes, and the report
python benchmarks/inference.py --quick    one round of 50 000 rows, and no report
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from measure import alternate, busy, finish, report

from kernpool import InferenceWarning, LocalLinearRegressor, NadarayaWatsonRegressor

warnings.simplefilter("ignore", InferenceWarning)  # the bandwidths are given, and their bias is no matter of time

THREADS, ROUNDS = 2, 3
GRID = np.linspace(0.0, 1.0, 401)[:, None]
SMALL, SMALL_BANDWIDTH, SMALL_BAR = 1000, 0.06, 0.030  # seconds
LARGE, LARGE_BANDWIDTH = 1_000_000, 0.005
PASSES_BAR, SUMMARY_BAR, MEMORY_BAR = 4.0, 3.0, 3.0  # passes that leave each row out; times the inputs
NPROBUST_BAR, R_BAR = 10.0, 100.0
SLOW = 1.0  # seconds, from which on a peer runs once
R_ROWS, R_SECONDS = 10_000, 8.0  # npreg of R's np with errors; not of this machine
# What a process takes beyond its rows and its fit. Loops are compiled before, and the peak is counted from there.
MEMORY = """
import numpy as np
from kernpool import {make}
generator = np.random.default_rng(0)
X, y, grid = generator.random(({n}, 1)), generator.normal(size={n}), np.linspace(0.0, 1.0, 401)[:, None]
def ask(model):
    model.confidence_interval(grid)
    model.confidence_interval(grid, simultaneous=True)
ask({make}(bandwidth={h}, algorithm="sweep", n_jobs={threads}).fit(X[:20000], y[:20000]))
ask({make}(bandwidth={h}, n_jobs={threads}).fit(X[:20000], y[:20000]))
model = {make}(bandwidth={h}, n_jobs={threads}).fit(X, y)
def kilobytes(name):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name)))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins here
before = kilobytes("VmRSS:")
ask(model)
print((kilobytes("VmHWM:") - before) * 1024 / (X.nbytes + y.nbytes))
"""


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a wave with a peak, and noise that grows."""
    generator = np.random.default_rng(0)
    x = generator.uniform(size=n)
    curve = np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2)
    return x[:, None], curve + (0.2 + 0.3 * x) * generator.normal(size=n)


def fitted(make, n: int, bandwidth: float, **options):
    return make(bandwidth=bandwidth, n_jobs=THREADS, **options).fit(*sample(n))


def milliseconds(rounds: int) -> tuple[list[str], list[str]]:
    """Intervals of a thousand rows, by a model that has answered nothing yet and by one that has."""
    rows, missed = [], []
    for make in (LocalLinearRegressor, NadarayaWatsonRegressor):
        asked = {
            "interval": lambda model: model.confidence_interval(GRID),
            "interval again": lambda model: model.confidence_interval(GRID),
            "band": lambda model: model.confidence_interval(GRID, simultaneous=True),
            "standard error": lambda model: model.get_prediction(GRID).standard_error,
            "summary": lambda model: model.summary(),
        }
        seconds = {name: [] for name in asked}
        for turn in range(4 * rounds + 1):
            model = fitted(make, SMALL, SMALL_BANDWIDTH)
            for name, ask in asked.items():
                started = time.perf_counter()
                ask(model)
                if turn:  # the first one loads and compiles
                    seconds[name].append(time.perf_counter() - started)
        middle = {name: statistics.median(of) for name, of in seconds.items()}
        rows.append(f"| {make.__name__} | {' | '.join(f'{1000 * middle[name]:.1f}' for name in asked)} |")
        if middle["interval"] > SMALL_BAR:
            missed.append(f"interval of {SMALL} rows in {1000 * middle['interval']:.0f} ms, {make.__name__}")
    return rows, missed


def passes(n: int, rounds: int) -> tuple[list[str], list[str]]:
    """Intervals and bands of many rows, in passes that leave each row out."""
    rows, missed = [], []
    for make in (LocalLinearRegressor, NadarayaWatsonRegressor):
        fresh = iter([fitted(make, n, LARGE_BANDWIDTH) for _ in range(2 * rounds)])
        model = fitted(make, n, LARGE_BANDWIDTH)
        model.confidence_interval(GRID)  # loads and compiles
        model.confidence_interval(GRID, simultaneous=True)
        model.summary()

        def both(fresh=fresh):
            asked = next(fresh)
            asked.confidence_interval(GRID)
            asked.confidence_interval(GRID, simultaneous=True)

        contenders = {
            "pass": model.leave_one_out,
            "both": both,
            "interval": lambda model=model: model.confidence_interval(GRID),
            "band": lambda model=model: model.confidence_interval(GRID, simultaneous=True),
            "summary": lambda fresh=fresh: next(fresh).summary(),
        }
        middle = alternate(contenders, rounds)
        ratio = {name: middle[name] / middle["pass"] for name in contenders}
        code = MEMORY.format(make=make.__name__, n=n, h=LARGE_BANDWIDTH, threads=THREADS)
        memory = float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE).stdout)
        cells = [f"{middle[name]:.3f} s, {ratio[name]:.2f}" for name in ("both", "interval", "band", "summary")]
        rows.append(f"| {make.__name__} | {middle['pass']:.3f} s | {' | '.join(cells)} | {memory:.2f} |")
        missed += [f"interval and band {ratio['both']:.2f} passes, {make.__name__}"] * (ratio["both"] > PASSES_BAR)
        missed += [f"summary {ratio['summary']:.2f} passes, {make.__name__}"] * (ratio["summary"] > SUMMARY_BAR)
        missed += [f"memory {memory:.2f} times the inputs, {make.__name__}"] * (memory > MEMORY_BAR)
    return rows, missed


def peers(rounds: int) -> tuple[list[str], list[str]]:
    """The same rows, bandwidth and places by others; where the answer is the same, it is compared."""
    X, y = sample(SMALL)
    given = {"bandwidth": SMALL_BANDWIDTH, "n_jobs": THREADS}

    def ours(**options):
        return LocalLinearRegressor(**given).fit(X, y).confidence_interval(GRID, **options)

    def new_observation():
        return LocalLinearRegressor(**given).fit(X, y).predict(GRID, return_std=True)

    contenders = {
        "ours": ours,
        "ours, quadratic": lambda: ours(method="quadratic", variance="nn"),
        "ours, new": new_observation,
    }
    if find_spec("nprobust"):
        from nprobust import lprobust

        options = {"p": 1, "h": SMALL_BANDWIDTH, "rho": 1, "kernel": "gau", "vce": "nn", "bwcheck": None}
        contenders["nprobust"] = lambda: lprobust(y, X[:, 0], eval=GRID[:, 0], **options)
        theirs, found = np.asarray(contenders["nprobust"]().Estimate), contenders["ours, quadratic"]()
        np.testing.assert_allclose(found.center, theirs[:, 5], rtol=1e-9)
        np.testing.assert_allclose(found.standard_error, theirs[:, 7], rtol=1e-9)
    if find_spec("mapie"):
        from mapie.regression import CrossConformalRegressor
        from sklearn.model_selection import LeaveOneOut

        def jackknife():
            model = LocalLinearRegressor(bandwidth=SMALL_BANDWIDTH, n_jobs=1)
            wrapped = CrossConformalRegressor(model, confidence_level=0.95, method="plus", cv=LeaveOneOut())
            return wrapped.fit_conformalize(X, y).predict_interval(GRID)

        contenders["MAPIE"] = jackknife
    if find_spec("statsmodels"):
        from statsmodels.nonparametric.kernel_regression import KernelReg

        contenders["statsmodels"] = lambda: KernelReg(y, X, "c", reg_type="ll", bw=[SMALL_BANDWIDTH]).fit(GRID)
    alternate({name: run for name, run in contenders.items() if name.startswith("ours")}, 1)  # loads and compiles
    middle = alternate(contenders, 1)
    quick = {name: run for name, run in contenders.items() if middle[name] < SLOW}
    middle |= alternate(quick, 4 * rounds)
    what = {
        "nprobust": ("`lprobust`, robust, nearest neighbours", "ours, quadratic", "the same, to 1e-9 (asserted)"),
        "MAPIE": (
            "jackknife+ around our fit",
            "ours, new",
            "`predict(return_std=True)`: no guarantee in finite samples",
        ),
        "statsmodels": ("`KernelReg.fit`, which has no errors", "ours", "intervals"),
    }
    rows, missed = [], []
    for name, (call, own, ours_is) in what.items():
        if name not in middle:
            rows.append(f"| {name} | {call} | not installed | | {ours_is} | | |")
            continue
        ratio = middle[name] / middle[own]
        bar = f"{NPROBUST_BAR:.0f}" if name == "nprobust" else "none"
        title = f"{name} {version(name)}"
        times = f"{1000 * middle[name]:.0f} ms | {1000 * middle[own]:.1f} ms"
        rows.append(f"| {title} | {call} | {times} | {ours_is} | {ratio:.1f} | {bar} |")
        if name == "nprobust":
            default = middle[name] / middle["ours"]
            rows.append(
                f"| {title} | the same | {1000 * middle[name]:.0f} ms | {1000 * middle['ours']:.1f} ms | our default | "
                f"{default:.1f} | {bar} |"
            )
            least = min(ratio, default)
            missed += [f"{least:.1f} times as fast as nprobust, not {NPROBUST_BAR:.0f}"] * (least < NPROBUST_BAR)
    return rows, missed


def beside_r(rounds: int) -> tuple[str, list[str]]:
    """Fit and standard errors at all training rows, beside npreg of R, if it is here, or a figure from elsewhere."""
    X, y = sample(R_ROWS)
    given = {"bandwidth": 0.02, "n_jobs": THREADS}

    def ours():
        _ = LocalLinearRegressor(**given).fit(X, y).get_prediction(X).standard_error

    ours()
    contenders = {"ours": ours}
    if shutil.which("Rscript"):
        code = (
            "suppressMessages(library(np)); options(np.messages=FALSE); set.seed(1); "
            f"x <- runif({R_ROWS}); y <- sin(6 * x) + rnorm({R_ROWS}); b <- npregbw(xdat=x, ydat=y, bws=0.02, "
            "bandwidth.compute=FALSE, regtype='ll'); cat(system.time(npreg(b))[['elapsed']])"
        )
        done = subprocess.run(["Rscript", "-e", code], check=True, stdout=subprocess.PIPE, text=True)
        theirs, where = float(done.stdout), "on this machine"
    else:
        theirs, where = R_SECONDS, "measured on another machine, as R is not installed here"
    middle = alternate(contenders, rounds)["ours"]
    ratio = theirs / middle
    text = (
        f"R's np: `npreg` with standard errors at its {R_ROWS} rows took {theirs:.1f} s, {where}; ours takes "
        f"{1000 * middle:.0f} ms, {ratio:.0f} times as fast (target: {R_BAR:.0f})."
    )
    return text, [f"{ratio:.0f} times as fast as npreg, not {R_BAR:.0f}"] * (ratio < R_BAR)


def main(quick: bool) -> None:
    rounds, n = (1, 50_000) if quick else (ROUNDS, LARGE)
    small, some = milliseconds(rounds)
    large, others = passes(n, rounds)
    beside, beaten = peers(rounds)
    of_r, slower = beside_r(rounds)
    text = "\n".join(
        [
            f"# Running time of standard errors, intervals and bands, {THREADS} threads",
            "",
            f"{SMALL} rows, h = {SMALL_BANDWIDTH:g}, {len(GRID)} places, milliseconds (target of the first interval: "
            f"{1000 * SMALL_BAR:.0f}):",
            "",
            "| model | interval | interval again | band | standard error | summary |",
            "|---|---|---|---|---|---|",
            *small,
            "",
            "The first interval leaves each row out, which the model keeps for all that follows. *Again*: at the same",
            "places, of which the model keeps the sums, up to 16 384 places.",
            "",
            f"{n} rows, h = {LARGE_BANDWIDTH:g}, {len(GRID)} places, seconds and passes of `leave_one_out`:",
            "",
            "| model | one pass | interval and band of a new fit | interval again | band again | summary of a new fit "
            "| memory |",
            "|---|---|---|---|---|---|---|",
            *large,
            "",
            f"Bars: interval and band together {PASSES_BAR:g} passes, the summary {SUMMARY_BAR:g}, memory "
            f"{MEMORY_BAR:g} times the inputs. *Memory*: what a fresh process takes at its peak beyond rows and fit, "
            "for interval and band, in times X and y.",
            "",
            f"Peers, {SMALL} rows, {len(GRID)} places, local linear, Gaussian, h = {SMALL_BANDWIDTH:g}, given; from "
            "arrays to answers:",
            "",
            "| peer | call | peer | ours | what ours is | times as fast | target |",
            "|---|---|---|---|---|---|---|",
            *beside,
            "",
            of_r,
            "",
            f"Medians of {rounds} alternating runs, {4 * rounds} of small fits, after one to warm up; one run of peers "
            f"that take more than {SLOW:g} s. {busy()}".rstrip(),
        ]
    )
    report("inference", text, keep=not quick)
    finish(some + others + beaten + slower)


if __name__ == "__main__":
    main("--quick" in sys.argv)
