"""`kernpool compare`: cross-validated comparison of this package's estimators with a random forest and boosting."""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from kernpool._arrays import Index
from kernpool.cli.table_files import import_pandas
from kernpool.cli.tables import TrainingTable, training_rows
from kernpool.cli.terminal import need_output, print_json, refuse
from kernpool.data import TableError
from kernpool.data.dates import times_of
from kernpool.estimators import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from kernpool.execution import current_progress, progress_bar, report_progress, resolve_n_jobs
from kernpool.execution.text_table import columns_of_text

Folds = list[tuple[Index, Index]]  # rows of the fit and of the test

OURS = ("NadarayaWatson", "LocalLinear", "KernelStacking")
FEW_ROWS = 10_000  # with fewer, OpenMP threads wait for each other and make boosting many times slower
MOST_BINS = 255  # of a column in boosting, and so most categories of a nominal one


def run_compare(options: argparse.Namespace) -> None:
    """Run `kernpool compare`: read the table, cross-validate, print the scores."""
    need_output("open it")
    resolve_n_jobs(options.jobs)
    refuse(
        (options.folds < 2, f"--folds must be at least 2, got {options.folds}"),
        (not 0 <= options.seed < 2**32, f"--seed must be in [0, 2^32), got {options.seed}"),
    )
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


def folds_of(training: TrainingTable, folds: int, seed: int) -> Folds:
    """Return indices of the training and test rows of each fold, stratified by class; folds do not split clusters."""
    y, groups = training.target, training.roles.get("groups")
    assert y is not None
    n = len(y) if groups is None else len(np.unique(groups))
    what = "rows" if groups is None else "clusters"
    refuse((folds > n, f"--folds {folds} needs as many {what}, and there are {n}; say --folds {max(n, 2)} or less"))
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


def compare(training: TrainingTable, folds: Folds, seed: int, jobs: int) -> list[dict[str, Any]]:
    """Cross-validate all estimators on the training table, and return their scores, best first."""
    makers, y, scores = _estimators(training, seed, jobs), training.target, list[dict[str, Any]]()
    assert y is not None
    listener, labels, others = current_progress(), np.unique(y), _for_trees(training)
    measure, share = ("log_loss", "wrong") if training.classes else ("mean_squared_error", "r2")
    for done, (name, estimator) in enumerate(makers.items(), start=1):
        ours = name.startswith(OURS)
        started = time.perf_counter()
        with (
            report_progress(lambda _, __: None),
            warnings.catch_warnings(),
            threadpool_limits(1 if len(y) < FEW_ROWS else resolve_n_jobs(jobs), "openmp"),
        ):
            warnings.simplefilter("ignore")  # of one fold of many
            predicted = cross_val_predict(
                estimator,
                training.X if ours else others,
                y,
                cv=folds,
                method="predict_proba" if training.classes else "predict",
                params=training.roles if ours else None,
            )
        seconds = time.perf_counter() - started
        if training.classes:
            true = np.searchsorted(labels, y)
            said = np.maximum(predicted[np.arange(len(y)), true], np.finfo(float).eps)  # as `sklearn.metrics.log_loss`
            loss, second = -np.log(said), float((predicted.argmax(axis=1) != true).mean())
        else:
            loss = (predicted - y) ** 2
            second = 1 - float(loss.mean()) / (float(np.var(y)) or np.nan)
        errors = np.array([loss[test].mean() for _, test in folds])
        scores.append(
            {
                "name": name,
                measure: float(loss.mean()),
                "standard_error": float(errors.std(ddof=1) / len(folds) ** 0.5),
                share: second,
                "seconds": seconds,
            }
        )
        if listener is not None:
            listener(done, len(makers))
    return sorted(scores, key=lambda score: score[measure])


def _for_trees(training: TrainingTable) -> Any:
    """Return the features for trees: dates in days, ordered categories by their codes, others as categories."""
    pandas, columns = import_pandas(), dict[str, Any]()
    for name, column in training.X.items():
        times = times_of(name, column)
        if times is not None:
            columns[name] = times.days()
        elif pandas.api.types.is_numeric_dtype(column):
            columns[name] = column.to_numpy(np.float64)
        else:
            kinds = column if hasattr(column, "cat") else column.astype("category")
            is_nominal = name not in (training.types["ordered"] or ()) and len(kinds.cat.categories) <= MOST_BINS
            columns[name] = kinds.cat.as_unordered() if is_nominal else kinds.cat.codes.to_numpy(np.float64)
    return pandas.DataFrame(columns)


def _estimators(training: TrainingTable, seed: int, jobs: int) -> dict[str, Any]:
    """Return the estimators to compare, by name; names of this package begin with `OURS`."""
    named: Any = {**training.types, "unseen": "unlike", "n_jobs": jobs}
    forest: Any = {"random_state": seed, "n_jobs": jobs}
    boosting: Any = {"categorical_features": "from_dtype", "random_state": seed}
    if training.classes:
        return {
            "NadarayaWatsonClassifier": NadarayaWatsonClassifier(**named),
            "KernelStackingClassifier": KernelStackingClassifier(NadarayaWatsonClassifier(**named)),
            "RandomForestClassifier": _one_hot(ensemble.RandomForestClassifier(**forest)),
            "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier(**boosting),
            "class frequencies": DummyClassifier(strategy="prior"),
        }
    return {
        "NadarayaWatsonRegressor": NadarayaWatsonRegressor(empty="nearest", **named),
        "LocalLinearRegressor": LocalLinearRegressor(empty="nearest", **named),
        "KernelStackingRegressor": KernelStackingRegressor(LocalLinearRegressor(empty="nearest", **named)),
        "RandomForestRegressor": _one_hot(ensemble.RandomForestRegressor(**forest)),
        "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(**boosting),
        "mean of y": DummyRegressor(),
    }


def _one_hot(forest: Any) -> Any:
    """Return a forest that reads categories as one column of zeros and ones each."""
    encoder = OneHotEncoder(handle_unknown="ignore")
    categories = make_column_selector(dtype_include="category")
    return make_pipeline(make_column_transformer((encoder, categories), remainder="passthrough"), forest)
