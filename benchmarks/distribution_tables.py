"""How good are whole distributions on real tables? Quantiles beside forests of quantiles, boosting and NGBoost.

python benchmarks/distribution_tables.py --results R                   what is missing in R, then the page
python benchmarks/distribution_tables.py --results R --page            the page from what R holds
python benchmarks/distribution_tables.py --results R --half report --models boosting --seeds 1 --tables auto

The tables, their halves and splits are those of `tables.py`, cut to 600 rows, and two splits of each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from distribution_models import DISTRIBUTIONS
from distribution_scores import LEVELS, quantile_scores
from measure import finish
from table_data import Table, read
from table_list import HALF, TABLES
from table_models import Model
from tables import load, split

SEEDS, ROWS = 2, 600
NUMBERS = {name: table for name, table in TABLES.items() if not table.classes}


def some(table: Table) -> tuple:
    """At most so many rows, the same for everybody."""
    X, y = read(table)
    if len(y) <= ROWS:
        return X, y
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:ROWS])
    return X.iloc[rows].reset_index(drop=True), y[rows]


def one_fit(table: Table, model: Model, X, y: np.ndarray, seed: int) -> dict:
    """Fit and ask for quantiles once; seconds are of a core and include choosing whatever the model chooses."""
    train, test = split(table, y, seed)
    take = (lambda rows: X.iloc[rows]) if hasattr(X, "iloc") else (lambda rows: X[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches that end at the ends of their boxes, on all sides
        started = time.process_time()
        fitted = model.make(take(train), y[train])
        fitted.fit(take(train), y[train])
        fit_seconds = time.process_time() - started
        started = time.process_time()
        quantile = fitted.quantile(take(test), LEVELS)
        seconds = {"fit_seconds": fit_seconds, "predict_seconds": time.process_time() - started}
    scores = quantile_scores(y[test], np.asarray(quantile, dtype=float), y[train])
    return scores | {name: round(value, 4) for name, value in seconds.items()}


def measure(options: argparse.Namespace) -> None:
    """Run what is asked for and not in the results yet.

    One split after the other, and in each the half that reports first: what is there when it is stopped is a page.
    """
    path, done = options.results, {} if options.redo else load(options.results)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(NUMBERS, key=lambda name: HALF[name] != "report")
    names = [name for name in names if options.half in (None, HALF[name]) and name in (options.tables or names)]
    models = {who: DISTRIBUTIONS[who] for who in options.models or DISTRIBUTIONS if DISTRIBUTIONS[who].installed()}
    for seed, name in product(range(options.seeds), names):
        X, y = some(NUMBERS[name])
        for who, model in models.items():
            fed = model.encode(X)
            if (name, who, seed) in done or not model.takes(*fed.shape):
                continue
            record = {"table": name, "model": who, "seed": seed, "rows": len(X), "columns": X.shape[1]}
            try:
                record |= one_fit(NUMBERS[name], model, fed, y, seed)
            except Exception as error:
                record["failed"] = f"{type(error).__name__}: {error}"
            with open(path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(record) + "\n")
            shown = record.get("failed") or f"{record['relative']:.4f}"
            print(f"{name:15s} {who:22s} {seed:3d} {shown} {record.get('fit_seconds', 0):8.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(tempfile.gettempdir()) / "kernpool-distributions.jsonl"
    parser.add_argument("--results", type=Path, default=default, help=f"appended to and read; default: {default}")
    parser.add_argument("--half", choices=["choose", "report"])
    parser.add_argument("--tables", nargs="+", choices=[*NUMBERS], metavar="TABLE")
    parser.add_argument("--models", nargs="+", choices=[*DISTRIBUTIONS], metavar="MODEL")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"splits, by default {SEEDS}")
    parser.add_argument("--redo", action="store_true", help="fit again what the results hold")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.page or not (options.half or options.tables or options.models or options.seeds != SEEDS):
        from distribution_report import write

        if not options.page:
            measure(options)
        finish(write(load(options.results)))
    else:
        measure(options)


if __name__ == "__main__":
    main()
