"""How long does a fit with defaults take? Four estimators by size, beside boosting, each in a process of its own.

python benchmarks/fit_times.py                                some ten minutes
python benchmarks/fit_times.py --sizes 2000x10 1000x50        these sizes alone, and no page
"""

import subprocess

from measure import finish, flags, in_process, report, table, tell

LIMIT = 300  # seconds
SIZES = [
    "1000x10",
    "2000x10",
    "20000x10",
    "1000x50",
    "500x200",
    "100000x2",
    "100000x5",
    "100000x10",
    "1000000x2",
    "1000000x10",
]
BARS = {
    "100000x2": 10, "100000x10": 30, "1000000x2": 20, "1000000x10": 60, "2000x10": 5, "1000x50": 10, "500x200": 10,
}  # fmt: skip
ANY = 60  # seconds of any other size
STACKING = {"1000x10": 5, "20000x10": 60}  # seconds, with predictions
GIB = {"500x200": 0.5}  # beyond what is there before the fit
ESTIMATORS = {
    "NadarayaWatsonRegressor": "kernpool", "LocalLinearRegressor": "kernpool", "NadarayaWatsonClassifier": "kernpool",
    "KernelStackingRegressor": "kernpool", "HistGradientBoostingRegressor": "sklearn.ensemble",
}  # fmt: skip
RUN = """
import importlib, warnings
warnings.simplefilter("ignore")
make = getattr(importlib.import_module(module), name)

def rows_of(n):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.5 * generator.standard_normal(n)
    return X, (y > 0 if name.endswith("Classifier") else y)

make().fit(*rows_of(min(n, 500))).predict(rows_of(10)[0])  # loads, and compiles for these columns
X, y = rows_of(n)
new = np.random.default_rng(1).standard_normal((1000, d))
before = peak_from_here()
started = time.perf_counter()
model = make().fit(X, y)
fitted = time.perf_counter()
peak = mebibytes("VmHWM:") - before
model.predict(new)
tell(fitted - started, time.perf_counter() - fitted, peak / 1024)
"""


def main() -> None:
    asked = flags(__doc__, sizes=SIZES)
    rows, missed = [], []
    for size in asked.sizes:
        n, d = map(int, size.split("x"))
        seconds = {}
        for name, module in ESTIMATORS.items():
            if name == "KernelStackingRegressor" and size not in STACKING:
                continue
            try:
                fit, predict, memory = in_process(RUN, n=n, d=d, name=name, module=module, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                fit = predict = memory = float("inf")
            seconds[name] = fit
            if module != "kernpool":
                continue
            bar, taken = BARS.get(size, ANY), fit
            if name == "KernelStackingRegressor":
                bar, taken = STACKING[size], fit + predict
            if taken > bar:
                missed.append(f"{name}, {n} x {d}: {taken:.1f} s")
            if memory > GIB.get(size, float("inf")):
                missed.append(f"{name}, {n} x {d}: {memory:.2f} GiB")
        shown = (f"{seconds[name]:.2f}" if name in seconds else "" for name in ESTIMATORS)
        rows.append(tell(n, d, *shown, BARS.get(size, ANY)))
    names = (f"`{name}`" if module == "kernpool" else "boosting" for name, module in ESTIMATORS.items())
    report(
        "fit-times",
        "# Default fits by size",
        table(f"rows | columns | {' | '.join(names)} | target", rows),
        "Seconds, kernpool with one thread (`n_jobs=None`), scikit-learn's boosting of histograms with two, each in a "
        "process of its own whose loops are compiled. Numbers are $\\sin 2x_1 + x_2 x_d$ plus noise of .5, classes the "
        "sign of it; all columns are normal. Targets of stacking are 5 s at 1000 rows and 60 s at 20 000. Boosting "
        "takes "
        "all rows, and kernpool a sample where all rows would take long (`search`).",
        keep=asked.sizes == SIZES,
    )
    finish(missed)


if __name__ == "__main__":
    main()
