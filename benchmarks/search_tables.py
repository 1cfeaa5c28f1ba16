"""Searches on tables of every kind: levels, many columns, classes, many rows; each held to a target of seconds.

python benchmarks/search_tables.py            everything, about two minutes
python benchmarks/search_tables.py --quick    without the 20 000 rows, and no report
"""

import warnings

import numpy as np
import pandas as pd
from measure import alternate, finish, flags, report, table, tell
from sklearn.datasets import load_breast_cancer

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

THREADS = 2
MODELS = (NadarayaWatsonRegressor, LocalLinearRegressor)


def frame(seed: int, n: int, numbers: str, **counts: int):
    """Normal columns of these names, and factors of so many levels; and the generator."""
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(generator.normal(size=(n, len(numbers))), columns=list(numbers))
    for name, count in counts.items():
        X[name] = pd.Categorical.from_codes(generator.integers(0, count, n), [f"level {i}" for i in range(count)])
    return X, generator


def mixed(n=900):
    """Four numbers, factors of 20 and 3 levels."""
    X, generator = frame(0, n, "abcd", many=20, few=3)
    y = np.sin(2 * X["a"]) + X["b"] + 0.1 * X["many"].cat.codes + 0.5 * X["few"].cat.codes
    return X, y.to_numpy() + 0.3 * generator.normal(size=n)


def cells(n=1200):
    """One number, 6 x 12 levels."""
    X, generator = frame(1, n, "x", six=6, twelve=12)
    X["x"] = generator.uniform(size=n)
    y = np.sin(6 * X["x"]) + 0.3 * X["six"].cat.codes + 0.1 * X["twelve"].cat.codes
    return X, y.to_numpy() + 0.4 * generator.normal(size=n)


def wide(n=215, columns=34):
    """Many columns, of which four matter."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(n, columns))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * generator.normal(size=n)


def large(n=20_000):
    """Six numbers, three ordered factors."""
    X, generator = frame(3, n, "abcdef", five=5, four=4, three=3)
    for name in ("five", "four", "three"):
        X[name] = X[name].cat.as_ordered()
    y = np.sin(2 * X["a"]) + X["b"] * X["c"] + 0.3 * X["five"].cat.codes + 0.2 * X["four"].cat.codes
    return X, y.to_numpy() + 0.3 * generator.normal(size=n)


def problems(quick):
    """Yield what is fitted, the model, the rows, the target in seconds and how often it is timed."""
    for degree, make in enumerate(MODELS):
        for name in ("loo",):
            about = f"1200 rows, one number, 6 x 12 levels, `{name}`, degree {degree}"
            yield about, make(bandwidth=name, n_jobs=THREADS), cells(), 3.0, 3
    planes = LocalLinearRegressor(n_jobs=THREADS)
    yield "900 rows, 4 numbers, 20 and 3 levels, local linear", planes, mixed(), 3.0, 3
    yield "215 rows, 34 columns, local linear", planes, wide(), 5.0, 3
    classes = load_breast_cancer(return_X_y=True)
    yield "569 rows, 30 columns, classifier", NadarayaWatsonClassifier(n_jobs=THREADS), classes, 2.0, 3
    for degree, make in enumerate(() if quick else MODELS):
        yield f"20 000 rows, 6 numbers, 3 ordered factors, degree {degree}", make(n_jobs=THREADS), large(), 40.0, 1


def main():
    quick, rows, missed = flags(__doc__, "quick").quick, [], []
    warnings.simplefilter("ignore")
    for make in MODELS:
        make(n_jobs=THREADS).fit(*mixed(700))  # loads and compiles
    for about, model, given, bar, rounds in problems(quick):
        taken = alternate({"fit": lambda model=model, given=given: model.fit(*given)}, rounds)["fit"]
        rows.append(tell(about, f"{taken:.2f} s", f"{bar:g} s"))
        missed += [f"{about}: {taken:.2f} s"] if taken > bar else []
    report(
        "search-tables",
        "# Bandwidth searches on many tables",
        table("search | seconds | target", rows),
        f"Defaults unless said otherwise, {THREADS} threads, the median of three fits (of one for 20 000 rows).",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
