"""How long standard errors, intervals and bands take: in milliseconds, in passes over the rows, and beside peers.

python benchmarks/inference.py            everything, two minutes, and the report
python benchmarks/inference.py --quick    one round of 50 000 rows, and no report
"""

import statistics
import time
import warnings
from importlib.metadata import version

import numpy as np
from measure import alternate, finish, flags, in_process, report, table
from nprobust import lprobust
from samples import wave_with_peak
from statsmodels.nonparametric.kernel_regression import KernelReg

from kernpool import InferenceWarning, LocalLinearRegressor, NadarayaWatsonRegressor

warnings.simplefilter("ignore", InferenceWarning)  # the bandwidths are given, and their bias is no matter of time

THREADS, ROUNDS = 2, 3
MODELS = (LocalLinearRegressor, NadarayaWatsonRegressor)
GRID = np.linspace(0.0, 1.0, 401)[:, None]
SMALL, SMALL_BANDWIDTH, SMALL_BAR = 1000, 0.06, 0.030  # seconds
LARGE, LARGE_BANDWIDTH = 1_000_000, 0.005
PASSES_BAR, SUMMARY_BAR, MEMORY_BAR = 4.0, 3.0, 3.0  # passes that leave each row out; times the inputs
NPROBUST_BAR = 10.0
# What a process takes beyond its rows and its fit. Loops are compiled before, and the peak is counted from there.
MEMORY = """
import kernpool
make = getattr(kernpool, name)
generator = np.random.default_rng(0)
X, y, grid = generator.random((n, 1)), generator.normal(size=n), np.linspace(0.0, 1.0, 401)[:, None]
def ask(model):
    model.confidence_interval(grid)
    model.confidence_interval(grid, simultaneous=True)
ask(make(bandwidth=h, n_jobs=threads).fit(X[:20000], y[:20000]))
model = make(bandwidth=h, n_jobs=threads).fit(X, y)
before = peak_from_here()
ask(model)
tell((mebibytes("VmHWM:") - before) * 2**20 / (X.nbytes + y.nbytes))
"""


def fitted(make, n: int, bandwidth: float):
    return make(bandwidth=bandwidth, n_jobs=THREADS).fit(*wave_with_peak(n))


def milliseconds(rounds: int) -> tuple[list, list[str]]:
    """Intervals of a thousand rows, by a model that has answered nothing yet and by one that has."""
    rows, missed = [], []
    for make in MODELS:
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
        middle = {name: 1000 * statistics.median(of) for name, of in seconds.items()}
        rows.append([make.__name__, *(f"{of:.1f}" for of in middle.values())])
        late = middle["interval"] > 1000 * SMALL_BAR
        missed += [f"interval of {SMALL} rows in {middle['interval']:.0f} ms, {make.__name__}"] * late
    return rows, missed


def passes(n: int, rounds: int) -> tuple[list, list[str]]:
    """Intervals and bands of many rows, in passes that leave each row out."""
    rows, missed = [], []
    for make in MODELS:
        fresh = iter([fitted(make, n, LARGE_BANDWIDTH) for _ in range(2 * rounds + 1)])
        model = fitted(make, n, LARGE_BANDWIDTH)

        def interval(model=model, **options):
            return model.confidence_interval(GRID, **options)

        def both(fresh=fresh, interval=interval):
            asked = next(fresh)
            return interval(asked), interval(asked, simultaneous=True)

        both()  # loads and compiles, with the others below
        runs = {
            "pass": model.leave_one_out,
            "both": both,
            "interval": interval,
            "band": lambda interval=interval: interval(simultaneous=True),
            "summary": lambda fresh=fresh: next(fresh).summary(),
        }
        for run in (interval, runs["band"], model.summary):
            run()
        middle = alternate(runs, rounds)
        ratio = {name: middle[name] / middle["pass"] for name in runs}
        memory = in_process(MEMORY, name=make.__name__, n=n, h=LARGE_BANDWIDTH, threads=THREADS)[0]
        cells = [f"{middle[name]:.3f} s, {ratio[name]:.2f}" for name in ("both", "interval", "band", "summary")]
        rows.append([make.__name__, f"{middle['pass']:.3f} s", *cells, f"{memory:.2f}"])
        for words, found, bar in (
            ("interval and band in passes", ratio["both"], PASSES_BAR),
            ("summary in passes", ratio["summary"], SUMMARY_BAR),
            ("memory in inputs", memory, MEMORY_BAR),
        ):
            missed += [f"{words} {found:.2f}, {make.__name__}"] * (found > bar)
    return rows, missed


def peers(rounds: int) -> tuple[list, list[str]]:
    """The same rows, bandwidth and places by others; where the answer is the same, it is compared."""
    X, y = wave_with_peak(SMALL)

    def model():
        return LocalLinearRegressor(bandwidth=SMALL_BANDWIDTH, n_jobs=THREADS)

    options = {"p": 1, "h": SMALL_BANDWIDTH, "rho": 1, "kernel": "gau", "vce": "nn", "bwcheck": None}
    quick = {
        "ours": lambda: model().fit(X, y).confidence_interval(GRID),
        "quadratic": lambda: model().fit(X, y).confidence_interval(GRID, method="quadratic", variance="nn"),
    }
    slow = {
        "nprobust": lambda: lprobust(y, X[:, 0], eval=GRID[:, 0], **options),
        "statsmodels": lambda: KernelReg(y, X, "c", reg_type="ll", bw=[SMALL_BANDWIDTH]).fit(GRID),
    }
    theirs, found = np.asarray(slow["nprobust"]().Estimate), quick["quadratic"]()
    np.testing.assert_allclose(found.center, theirs[:, 5], rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, theirs[:, 7], rtol=1e-9)
    alternate(quick, 1)  # loads and compiles
    middle = alternate(quick, 4 * rounds) | alternate(slow, 1)
    rows, missed = [], []
    for peer, call, own, what, bar in (
        (
            "nprobust",
            "`lprobust`, robust, nearest neighbours",
            "quadratic",
            "the same, to 1e-9 (asserted)",
            NPROBUST_BAR,
        ),
        ("nprobust", "the same", "ours", "our default", NPROBUST_BAR),
        ("statsmodels", "`KernelReg.fit`, which has no errors", "ours", "intervals", 0),
    ):
        ratio, times = middle[peer] / middle[own], (f"{1000 * middle[peer]:.0f} ms", f"{1000 * middle[own]:.1f} ms")
        title = f"{peer} {version(peer)}"
        rows.append([title, call, *times, what, f"{ratio:.1f}", f"{bar:.0f}" if bar else "none"])
        missed += [f"{ratio:.1f} times as fast as {peer}, not {bar:.0f}"] * (ratio < bar)
    return rows, missed


def main() -> None:
    quick = flags(__doc__, "quick").quick
    rounds, n = (1, 50_000) if quick else (ROUNDS, LARGE)
    small, some = milliseconds(rounds)
    large, others = passes(n, rounds)
    beside, beaten = peers(rounds)
    report(
        "inference",
        "# Standard errors, intervals and bands",
        f"{THREADS} threads, {SMALL} rows, h = {SMALL_BANDWIDTH:g}, {len(GRID)} points, milliseconds (target of the "
        "first interval: "
        f"{1000 * SMALL_BAR:.0f}):",
        table("model | interval | interval again | band | standard error | summary", small),
        "The first interval leaves each row out, which the model keeps. *Again*: at the same points, without that "
        "pass.",
        f"{n} rows, h = {LARGE_BANDWIDTH:g}, {len(GRID)} points, seconds and passes of `leave_one_out`:",
        table(
            "model | one pass | interval and band of a new fit | interval again | band again | summary of a new fit "
            "| memory",
            large,
        ),
        f"Bars: interval and band together {PASSES_BAR:g} passes, the summary {SUMMARY_BAR:g}, memory {MEMORY_BAR:g} "
        "times the inputs. *Memory*: the peak of a fresh process beyond rows and fit, in times X and y.",
        f"Peers, {SMALL} rows, {len(GRID)} points, local linear, Gaussian, h = {SMALL_BANDWIDTH:g}, given; from arrays "
        "to answers:",
        table("peer | call | its time | ours | what ours is | times as fast | target", beside),
        f"Medians of {rounds} alternating runs, {4 * rounds} of small fits; one run of peers.",
        keep=not quick,
    )
    finish(some + others + beaten)


if __name__ == "__main__":
    main()
