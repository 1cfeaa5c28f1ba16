"""How good is what comes out of the box on real tables? Beside forests, boosting, Gaussian processes and others.

python benchmarks/tables.py --results R                   what is missing in R, one line of JSON per fit, then the page
python benchmarks/tables.py --results R --page            the page from what R holds
python benchmarks/tables.py --results R --half choose --models forest boosting --tables auto crime --seeds 3
python benchmarks/tables.py --results R --models "local linear" --redo    after a change; the last line of a fit counts

The peers take 17 minutes of one core.
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
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from table_data import HALF, TABLES, Table, read
from table_models import CLASSIFIERS, REGRESSORS, Model
from table_scores import class_scores, number_scores

TEST = 1 / 3
SEEDS = ((600, 10), (1200, 5), (3000, 3), (10**9, 2))  # splits, for tables of at most so many rows
KEPT = ("loo_error_", "expected_error", "bandwidth_note_")
MOST_ROWS_FOR_EXPECTED, SPLITS_FOR_EXPECTED = 1200, 5  # five searches more for each


def seeds_of(rows: int) -> int:
    return next(seeds for limit, seeds in SEEDS if rows <= limit)


def split(table: Table, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to test on, the same for all models; classes keep their shares."""
    splitter = (StratifiedShuffleSplit if table.classes else ShuffleSplit)(1, test_size=TEST, random_state=seed)
    return next(splitter.split(y[:, None], y))


def one_fit(table: Table, model: Model, X, y: np.ndarray, seed: int) -> dict:
    """Fit and test once; seconds include choosing whatever the model chooses."""
    train, test = split(table, y, seed)
    take = (lambda rows: X.iloc[rows]) if hasattr(X, "iloc") else (lambda rows: X[rows])
    X_train, X_test = take(train), take(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches that end at the ends of their boxes, on all sides
        started = time.process_time()
        fitted = model.make(X_train, y[train])
        fitted.fit(X_train, y[train])
        fit_seconds = time.process_time() - started
        started = time.process_time()
        answer = fitted.predict_proba(X_test) if table.classes else fitted.predict(X_test)
        seconds = {"fit_seconds": fit_seconds, "predict_seconds": time.process_time() - started}
    scores = class_scores(y[test], answer, fitted.classes_) if table.classes else number_scores(y[test], answer)
    wanted = [name for name in KEPT if model.ours]
    if seed >= SPLITS_FOR_EXPECTED or len(y) > MOST_ROWS_FOR_EXPECTED or not model.is_default:
        wanted = [name for name in wanted if name != "expected_error"]
    found = {name: getattr(fitted, name) for name in wanted if hasattr(fitted, name)}
    found = {name: value() if callable(value) else value for name, value in found.items()}
    numbers = {name: value if isinstance(value, str) else float(value) for name, value in found.items()}
    return scores | {name: round(value, 4) for name, value in seconds.items()} | numbers


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
    names = [name for name in TABLES if options.half in (None, HALF[name])]
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
            for seed in range(min(options.seeds or 10**9, model.splits, seeds_of(len(X)))):
                if (name, who, seed) in done:
                    continue
                record = {"table": name, "model": who, "seed": seed, "rows": len(X), "columns": X.shape[1]}
                try:
                    record |= one_fit(table, model, fed, y, seed)
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
    parser.add_argument("--half", choices=["choose", "report"])
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], metavar="TABLE")
    parser.add_argument("--models", nargs="+", choices=[*(REGRESSORS | CLASSIFIERS)], metavar="MODEL")
    parser.add_argument("--seeds", type=int, help="at most so many splits")
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
