"""Searches on tables of every kind: levels, many columns, classes, many rows; each held to a target of seconds.

python benchmarks/search_tables.py            everything, about two minutes
python benchmarks/search_tables.py --quick    without the 20 000 rows
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from measure import finish, report
from sklearn.datasets import load_breast_cancer

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

THREADS = 2
# Processor seconds of the release before, where every evaluation was the engine's.
BEFORE = {"mixed": 30.9, "cells loo 0": 11.0, "34 columns": 23.5, "30 columns": 8.8, "large 0": 65.2}


def levels(generator, n, count):
    return pd.Categorical.from_codes(generator.integers(0, count, n), [f"level {i}" for i in range(count)])


def mixed(n=900):
    """Four numbers, factors of 20 and 3 levels."""
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(n, 4)), columns=list("abcd"))
    X["many"], X["few"] = levels(generator, n, 20), levels(generator, n, 3)
    y = np.sin(2 * X["a"]) + X["b"] + 0.1 * X["many"].cat.codes + 0.5 * X["few"].cat.codes
    return X, y.to_numpy() + 0.3 * generator.normal(size=n)


def cells(n=1200):
    """One number, 6 x 12 levels."""
    generator = np.random.default_rng(1)
    X = pd.DataFrame(
        {"x": generator.uniform(size=n), "six": levels(generator, n, 6), "twelve": levels(generator, n, 12)}
    )
    y = np.sin(6 * X["x"]) + 0.3 * X["six"].cat.codes + 0.1 * X["twelve"].cat.codes
    return X, y.to_numpy() + 0.4 * generator.normal(size=n)


def wide(n=215, columns=34):
    """Many columns, of which four matter."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(n, columns))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * generator.normal(size=n)


def large(n=20_000):
    """Six numbers, three ordered factors."""
    generator = np.random.default_rng(3)
    X = pd.DataFrame(generator.normal(size=(n, 6)), columns=list("abcdef"))
    for name, count in (("five", 5), ("four", 4), ("three", 3)):
        X[name] = levels(generator, n, count).as_ordered()
    y = np.sin(2 * X["a"]) + X["b"] * X["c"] + 0.3 * X["five"].cat.codes + 0.2 * X["four"].cat.codes
    return X, y.to_numpy() + 0.3 * generator.normal(size=n)


def problems(quick):
    for degree, make in enumerate((NadarayaWatsonRegressor, LocalLinearRegressor)):
        for name in ("loo", "aicc"):
            about = f"1200 rows, one number, 6 x 12 levels, `{name}`, degree {degree}"
            yield f"cells {name} {degree}", about, make(bandwidth=name, n_jobs=THREADS), cells(), 3.0
    yield (
        "mixed",
        "900 rows, 4 numbers, 20 and 3 levels, local linear",
        LocalLinearRegressor(n_jobs=THREADS),
        mixed(),
        3.0,
    )
    yield "34 columns", "215 rows, 34 columns, local linear", LocalLinearRegressor(n_jobs=THREADS), wide(), 5.0
    classes = load_breast_cancer(return_X_y=True)
    yield "30 columns", "569 rows, 30 columns, classifier", NadarayaWatsonClassifier(n_jobs=THREADS), classes, 2.0
    for degree, make in enumerate((NadarayaWatsonRegressor, LocalLinearRegressor)):
        if not quick:
            about = f"20 000 rows, 6 numbers, 3 ordered factors, degree {degree}"
            yield f"large {degree}", about, make(n_jobs=THREADS), large(), 40.0


def main():
    warnings.simplefilter("ignore")
    for make in (NadarayaWatsonRegressor, LocalLinearRegressor):
        make(n_jobs=THREADS).fit(*mixed(700))  # loads and compiles
    rows, missed = [], []
    for name, about, model, (X, y), bar in problems("--quick" in sys.argv):
        seconds = []
        for _ in range(3 if bar < 10 else 1):
            started = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - started)
        found, taken = model.bandwidth_search_, float(np.median(seconds))
        before = f"{BEFORE[name]:.1f} s" if name in BEFORE else ""
        rows.append(f"| {about} | {taken:.2f} s | {bar:g} s | {before} | {found.evaluations} |")
        print(rows[-1], flush=True)
        missed += [f"{about}: {taken:.2f} s"] if taken > bar else []
    head = "| search | seconds | target | before | evaluations |\n|---|---|---|---|---|"
    text = "# Running time of bandwidth searches on many tables\n\n" + "\n".join([head, *rows])
    text += (
        f"\n\nDefaults unless said otherwise, {THREADS} threads, the median of three fits (of one for 20 000 rows). "
        "*Before*: processor seconds of the release before on problems of these sizes."
    )
    report("search-tables", text)
    finish(missed)


if __name__ == "__main__":
    main()
