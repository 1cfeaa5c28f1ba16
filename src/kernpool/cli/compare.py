"""`kernpool compare`: cross-validated comparison of this package's estimators with a random forest and boosting."""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from kernpool.cli.table_files import import_pandas
from kernpool.cli.tables import TrainingTable, training_rows
from kernpool.cli.terminal import UsageError, need_output, print_json
from kernpool.data import TableError
from kernpool.data.dates import times_of
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.execution.notices import progress_bar
from kernpool.execution.progress import current_progress, report_progress
from kernpool.execution.text_table import columns_of_text
from kernpool.execution.threads import resolve_n_jobs

Array = NDArray[np.float64]
Make = Callable[[], Any]

OURS = ("NadarayaWatson", "LocalLinear")
FEW_ROWS = 10_000  # with fewer, OpenMP threads wait for each other and make boosting many times slower
MOST_BINS = 255  # of a column in boosting, and so most categories of a categorical one


def run_compare(options: argparse.Namespace) -> None:
    """Run `kernpool compare`: read the table, cross-validate, print the scores."""
    need_output("open it")
    resolve_n_jobs(options.jobs)
    if options.folds < 2:
        raise UsageError(f"--folds must be at least 2, got {options.folds}")
    if not 0 <= options.seed < 2**32:
        raise UsageError(f"--seed must be in [0, 2^32), got {options.seed}")
    training = training_rows(options)
    folds = folds_of(training, options.folds, options.seed)
    with progress_bar("comparing", options.quiet, unit="fits"):
        results = compare(training, folds, options.seed, options.jobs)
    if options.json:
        how = {"rows": sum(map(len, folds[0])), "columns": training.names, "folds": len(folds), "seed": options.seed}
        print_json(how | {"notes": training.notes, "results": results})
        return
    digits = dict(zip(results[0], ("", ".5g", ".2g", ".3f", ".1f"), strict=True))
    names = [name.replace("_", " ").replace("standard", "std") for name in digits]
    rows = [[format(result[name], form) for name, form in digits.items()] for result in results]
    print("\n".join(columns_of_text(["", *names[1:]], rows)))


def folds_of(training: TrainingTable, folds: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return indices of the training and test rows of each fold, stratified by class; folds do not split clusters."""
    y, groups = training.target, training.groups
    assert y is not None
    n = len(y) if groups is None else len(np.unique(groups))
    if folds > n:
        what = "rows" if groups is None else "clusters"
        raise TableError(f"--folds {folds} needs as many {what}, and there are {n}; say --folds {max(n, 2)} or less")
    if training.classes:
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < folds:
            remedy = "use fewer folds" if fewest > 1 else "drop its row, or join the class to another one"
            size = f"{fewest} row{'s' * (fewest > 1)}"
            raise TableError(f"the smallest class has {size}, which is less than --folds {folds}; {remedy}")
    if groups is not None:
        kind = StratifiedGroupKFold if training.classes else GroupKFold
        split = kind(folds, shuffle=True, random_state=seed)
    else:
        split = (StratifiedKFold if training.classes else KFold)(folds, shuffle=True, random_state=seed)
    found = [(fit, test) for fit, test in split.split(np.zeros(len(y)), y, groups)]
    if training.classes and any(len(np.unique(y[fit])) < 2 for fit, _ in found):
        raise TableError(
            "without the clusters of one fold a single class is left, and no classifier can be fitted; leave --groups "
            "out, or name a column whose clusters have several classes"
        )
    return found


def compare(
    training: TrainingTable, folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]], seed: int, jobs: int
) -> list[dict[str, Any]]:
    """Cross-validate all estimators on the training table, and return their scores, best first."""
    makers, y = _estimators(training, seed, jobs), training.target
    assert y is not None
    listener, total, done, scores = current_progress(), len(makers) * len(folds), 0, []
    measure, share = ("log_loss", "wrong") if training.classes else ("mean_squared_error", "r2")
    labels, numbers = np.unique(y), _as_numbers(training)
    for name, make in makers.items():
        ours, loss, wrong = name.startswith(OURS), np.full(len(y), np.nan), np.zeros(len(y))
        X = training.X if ours else numbers
        started = time.perf_counter()
        for fit, test in folds:
            with (
                report_progress(lambda _, __: None),
                warnings.catch_warnings(),
                threadpool_limits(1 if len(y) < FEW_ROWS else resolve_n_jobs(jobs), "openmp"),
            ):
                warnings.simplefilter("ignore")  # of one fold of many
                clusters = {"groups": training.groups[fit]} if ours and training.groups is not None else {}
                model = make().fit(_rows(X, fit), y[fit], **clusters)
                loss[test], wrong[test] = _losses(model, _rows(X, test), y[test], labels)
            done += 1
            if listener is not None:
                listener(done, total)
        seconds, error = time.perf_counter() - started, float(loss.mean())
        errors = np.array([loss[test].mean() for _, test in folds])
        spread = np.nan if training.classes else float(np.var(y)) or np.nan
        scores.append(
            {
                "name": name,
                measure: error,
                "standard_error": float(errors.std(ddof=1) / len(folds) ** 0.5),
                share: float(wrong.mean()) if training.classes else 1 - error / spread,
                "seconds": seconds,
            }
        )
    return sorted(scores, key=lambda score: score[measure])


def _losses(model: Any, X: Any, y: NDArray[Any], labels: NDArray[Any]) -> tuple[Array, Array]:
    """Return the squared error or log loss of each row, and for classes whether the predicted class is wrong."""
    if not hasattr(model, "predict_proba"):
        return (model.predict(X) - y) ** 2, np.zeros(len(y))
    probability = np.zeros((len(y), len(labels)))
    probability[:, np.searchsorted(labels, model.classes_)] = model.predict_proba(X)
    true = np.searchsorted(labels, y)
    said = np.maximum(probability[np.arange(len(y)), true], np.finfo(float).eps)  # as `sklearn.metrics.log_loss`
    return -np.log(said), (probability.argmax(axis=1) != true).astype(float)


def _rows(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _as_numbers(training: TrainingTable) -> Array:
    """Return the features as a matrix of numbers; categories become their indices in the order of categories."""
    X = training.X
    if isinstance(X, np.ndarray):
        return X
    columns = []
    for name in X:
        times = times_of(name, X[name])
        if times is not None:
            columns.append(times.days())
        elif name in _categorical(training):
            kind = X[name] if hasattr(X[name], "cat") else X[name].astype("category")
            columns.append(kind.cat.codes.to_numpy(np.float64))
        else:
            columns.append(X[name].to_numpy(np.float64))
    return np.column_stack(columns)


def _categorical(training: TrainingTable) -> list[str]:
    X = training.X
    is_number = import_pandas().api.types.is_numeric_dtype
    return [name for name in X if not is_number(X[name]) and times_of(name, X[name]) is None]


def _unordered(training: TrainingTable) -> list[int]:
    X = training.X
    if isinstance(X, np.ndarray):
        return []
    return [X.columns.get_loc(name) for name in _categorical(training) if name not in training.ordered]


def _estimators(training: TrainingTable, seed: int, jobs: int) -> dict[str, Make]:
    """Return functions that make the estimators to compare, by name; names of this package begin with `OURS`."""
    levels, numbers = _unordered(training), _as_numbers(training)
    named: Any = {
        "unordered": training.unordered or None,
        "ordered": training.ordered or None,
        "unseen": "unlike",
        "n_jobs": jobs,
    }
    forest: Any = {"random_state": seed, "n_jobs": jobs}
    boosting: Any = {"categorical_features": _few_categories(levels, numbers), "random_state": seed}
    if training.classes:
        return {
            "NadarayaWatsonClassifier": lambda: NadarayaWatsonClassifier(**named),
            "RandomForestClassifier": lambda: _one_hot(levels, RandomForestClassifier(**forest)),
            "HistGradientBoostingClassifier": lambda: HistGradientBoostingClassifier(**boosting),
            "class frequencies": lambda: DummyClassifier(strategy="prior"),
        }
    return {
        "NadarayaWatsonRegressor": lambda: NadarayaWatsonRegressor(empty="nearest", **named),
        "LocalLinearRegressor": lambda: LocalLinearRegressor(empty="nearest", **named),
        "RandomForestRegressor": lambda: _one_hot(levels, RandomForestRegressor(**forest)),
        "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(**boosting),
        "mean of y": DummyRegressor,
    }


def _one_hot(levels: list[int], forest: Any) -> Any:
    if not levels:
        return forest
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), remainder="passthrough")
    return make_pipeline(encoder, forest)


def _few_categories(levels: list[int], numbers: Array) -> list[int]:
    """Return the indices of the categorical columns with few enough categories for gradient boosting."""
    return [i for i in levels if numbers[:, i].max() < MOST_BINS]
