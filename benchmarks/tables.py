"""How good is what comes out of the box on real tables? Beside forests, boosting, Gaussian processes and others.

python benchmarks/tables.py --results R                   what is missing in R, one line of JSON per fit, then the page
python benchmarks/tables.py --results R --page            the page from what R holds
python benchmarks/tables.py --results R --half choose --models forest boosting --tables auto crime --seeds 3
python benchmarks/tables.py --results R --redo --models stacking "local linear" "Nadaraya-Watson"    after a change of
                                                         these; the last line of a fit is the one on the page
python benchmarks/tables.py --results R --half report --scores            leave out the slow check of `expected_error`
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from measure import finish
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from table_data import TABLES, Table, read
from table_models import CLASSIFIERS, REGRESSORS, Model
from table_scores import class_scores, number_scores

TEST = 1 / 3
SMALL = 1200  # rows up to which a table has five splits, and not two, and up to which expected errors are checked
SPLITS_OF_ERRORS = 3  # ten fits more for each
FOLDS = 5
KEPT = ("loo_error_", "bandwidth_note_")


def seeds_of(table: Table, rows: int) -> int:
    return table.splits or (5 if rows <= SMALL else 2)


def says_error(model: Model, rows: int, seed: int) -> bool:
    return model.says_error and rows <= SMALL and seed < SPLITS_OF_ERRORS


def split(table: Table, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to test on, the same for all models; classes keep their shares."""
    splitter = (StratifiedShuffleSplit if table.classes else ShuffleSplit)(1, test_size=TEST, random_state=seed)
    return next(splitter.split(y[:, None], y))


def one_fit(table: Table, model: Model, X, y: np.ndarray, seed: int, errors: bool) -> dict:
    """Fit and test once; seconds include choosing whatever the model chooses."""
    train, test = split(table, y, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches that end at the ends of their boxes, on all sides
        started = time.process_time()
        fitted = model.make(_take(X, train), y[train])
        fitted.fit(_take(X, train), y[train])
        fit_seconds = time.process_time() - started
        started = time.process_time()
        found = _scored(table, fitted, _take(X, test), y[test])
        seconds = {"fit_seconds": fit_seconds, "predict_seconds": time.process_time() - started}
        kept = {name: getattr(fitted, name) for name in KEPT if model.ours and hasattr(fitted, name)}
        if errors:
            kept["expected_error"] = fitted.expected_error()
            kept["nested_error"] = nested_error(table, model, _take(X, train), y[train])
    numbers = {name: value if isinstance(value, str) else float(value) for name, value in kept.items()}
    return found | {name: round(value, 4) for name, value in seconds.items()} | numbers


def nested_error(table: Table, model: Model, X, y: np.ndarray) -> float:
    """Squared error, or Brier score, of five folds, each predicted by a model that chooses without it."""
    folds = (StratifiedKFold if table.classes else KFold)(FOLDS, shuffle=True, random_state=0)
    name, total = "brier" if table.classes else "mse", 0.0
    for train, test in folds.split(y[:, None], y):
        fitted = model.make(_take(X, train), y[train]).fit(_take(X, train), y[train])
        total += len(test) * _scored(table, fitted, _take(X, test), y[test])[name]
    return total / len(y)


def _take(X, rows: np.ndarray):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _scored(table: Table, fitted, X, y: np.ndarray) -> dict:
    if table.classes:
        return class_scores(y, fitted.predict_proba(X), fitted.classes_)
    return number_scores(y, fitted.predict(X))


def load(path: Path) -> dict[tuple[str, str, int], dict]:
    """Every fit's last line."""
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    return {(record["table"], record["model"], record["seed"]): record for record in records}


def measure(options: argparse.Namespace) -> None:
    """Run what is asked for and not in the results yet."""
    path, done = options.results, {} if options.redo else load(options.results)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name, table in TABLES.items() if options.half in (None, table.half)]
    for name in (name for name in names if name in (options.tables or names)):
        table = TABLES[name]
        models = CLASSIFIERS if table.classes else REGRESSORS
        X, y = read(table)
        for who, model in models.items():
            if who not in (options.models or models) or not model.installed():
                continue
            fed = model.encode(X)
            if not model.takes(*fed.shape):
                continue
            for seed in range(min(options.seeds or 10**9, seeds_of(table, len(X)))):
                errors = not options.scores and says_error(model, len(X), seed)
                old = done.get((name, who, seed))
                if old is not None and ("failed" in old or "nested_error" in old or not errors):
                    continue
                record = {"table": name, "model": who, "seed": seed, "rows": len(X), "columns": X.shape[1]}
                try:
                    record |= one_fit(table, model, fed, y, seed, errors)
                except Exception as error:
                    record["failed"] = f"{type(error).__name__}: {error}"
                with open(path, "a", encoding="utf-8") as lines:
                    lines.write(json.dumps(record) + "\n")
                shown = record.get("failed") or f"{record.get('r2', record.get('log_loss')):.4f}"
                print(f"{name:15s} {who:22s} {seed:3d} {shown} {record.get('fit_seconds', 0):8.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(tempfile.gettempdir()) / "kernpool-tables.jsonl"
    parser.add_argument("--results", type=Path, default=default, help=f"appended to and read; default: {default}")
    parser.add_argument("--half", choices=["choose", "report", "fresh"])
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], metavar="TABLE")
    parser.add_argument("--models", nargs="+", choices=[*(REGRESSORS | CLASSIFIERS)], metavar="MODEL")
    parser.add_argument("--seeds", type=int, help="at most so many splits")
    parser.add_argument("--scores", action="store_true", help="without `expected_error` and nested cross-validation")
    parser.add_argument("--redo", action="store_true", help="fit again what the results hold")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.page or not (options.half or options.tables or options.models or options.seeds):
        from table_report import write

        if not options.page:
            measure(options)
        finish(write(load(options.results)))
    else:
        measure(options)


if __name__ == "__main__":
    main()
