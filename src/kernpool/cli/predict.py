"""`kernpool predict`: predictions for the rows of a table, in memory or in chunks.

Options add columns to the predictions: standard errors, intervals, quantiles, sets, probabilities and explanations.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.cli.info import load_named, need_method
from kernpool.cli.table_files import WRITTEN, Table, import_pandas, row_writer, table_format
from kernpool.cli.tables import beside_inputs, calibration_rows, query_chunks, query_rows
from kernpool.cli.terminal import given, in_options, need_output, print_json, refuse, say, say_notes
from kernpool.data.atomic_files import refuse_existing
from kernpool.estimators.model import check_parameters, holder_of
from kernpool.execution.progress import current_progress, draw, progress_bar, report_progress

Columns = dict[str, Array]

# The method of a model that answers an option.
ANSWERS = {
    "explain": "get_prediction",
    "se": "confidence_interval",
    "interval": "confidence_interval",
    "quantiles": "quantile",
    "sets": "predict_set",
    "proba": "predict_proba",
}


def run_predict(options: argparse.Namespace) -> None:
    """Run `kernpool predict`: predict the rows of a table, and write the predictions."""
    refuse_conflicts(options)
    if options.out == "-":
        need_output("name a file with --out")
    else:
        table_format(options.out, known=WRITTEN)
        refuse_existing(Path(options.out), options.force)
    model, header = _load(options)
    columns = PredictionColumns.of(options, model, header)
    names, rows, notes = _predict(options, columns, header)
    if options.json and options.out != "-":
        print_json({"out": options.out, "rows": rows, "columns": names, "notes": [*notes, *columns.notes]})
    for note in () if options.quiet or options.json else columns.notes:
        say(f"guarantee  {note}")


def _load(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Load a saved model and apply the options to it; return the model and its header."""
    model, header = load_named(options.model, memory=options.memory)
    local = holder_of(model)
    local.set_params(**given(options, "n_jobs", "unseen", "empty"))
    check_parameters(local)
    local._freeze()
    return model, header


def _predict(
    options: argparse.Namespace, columns: PredictionColumns, header: dict[str, Any]
) -> tuple[list[str], int, list[str]]:
    """Predict a table, at once or by chunks, and write it; return names of columns, number of rows and notes."""
    table: Table | None = None
    kept: Sequence[str] = ()
    notes, names = list[str](), list[str]()
    if options.memory is None:
        X, table = query_rows(options, holder_of(columns.model), header)
        rows, blocks, notes = len(X), iter([X]), table.notes
        kept = () if options.keep is None else options.keep or [*table.frame]
    else:
        rows, blocks = query_chunks(options, header["features"])
    as_records, read = options.json and options.out == "-", list[int]()
    out = row_writer(options.out, force=options.force, kept=kept)
    with progress_bar("predicting", options.quiet), nullcontext(_print_records) if as_records else out as write:
        for predicted in _predicted(blocks, rows, columns, read):
            whole = predicted if table is None else beside_inputs(predicted, table, kept, columns.target, options)
            frame, names = import_pandas().DataFrame(whole), [*whole]
            if options.out == "-" and current_progress() is not None:
                draw("")  # the bar gives way to the rows, which may be on the same terminal
            write(frame)
    source = holder_of(columns.model).source_
    total = 0 if source is None or table is not None else (source.rows or 0) * len(read)
    if sum(read) < total:
        passes = "" if len(read) == 1 else f" in {len(read)} passes over them"
        notes.append(f"{sum(read)} of {total} training rows were read{passes}")
    say_notes(notes, options, records=as_records)
    return names, rows, notes


def _print_records(frame: Any) -> None:
    print_json(frame.astype(object).to_dict("records"))


def _predicted(blocks: Iterator[Any], rows: int, columns: PredictionColumns, read: list[int]) -> Iterator[Columns]:
    """Yield the output columns of each block of queries, and report progress over all rows."""
    start, listener = 0, current_progress() or (lambda _, __: None)
    for block in blocks:
        before, size = start, len(block)
        read.append(0)

        def report(done: int, total: int) -> None:
            read[-1] = max(read[-1], done)
            listener(before + size * done // total, rows)  # noqa: B023  # called before the next turn

        with report_progress(report):
            predicted = columns.at(block)
        yield predicted
        start += size


def refuse_conflicts(options: argparse.Namespace) -> None:
    """Raise UsageError for options of `kernpool predict` that conflict, or have no effect without another one."""
    interval, method, sets = options.interval is not None, options.method, options.sets is not None
    curve, new = interval and method is None, sets or (interval and method is not None)
    orders = np.atleast_1d(options.quantiles or ())
    refuse(
        (
            options.explain is not None and options.explain < 1,
            f"--explain must be a number of training rows from 1 on, got {options.explain}",
        ),
        (
            options.out == "-" and options.json and options.memory is not None,
            "--json prints records, which need the rows in memory; name a file with --out",
        ),
        (sets and interval, "--interval is for regressors, and --sets for classifiers; ask for one of them"),
        (
            len(np.unique(orders)) < len(orders),
            f"--quantiles must differ, as each is one column; got {options.quantiles}",
        ),
        (method and not new, "--method is for prediction intervals and sets: say --interval 0.9 or --sets 0.9 too"),
        (
            options.simultaneous and not curve,
            "--simultaneous is for confidence intervals of the curve: say --interval 0.95, without --method",
        ),
        (
            options.variance and not (curve or options.se),
            "--variance is for standard errors and confidence intervals of the curve: say --se, or --interval 0.95 "
            "without --method",
        ),
        (
            (options.calibration or options.seed is not None) and not new,
            "--calibration and --seed are for prediction intervals and sets: say --interval 0.9 --method split, or "
            "--sets 0.9, too",
        ),
        (
            options.simultaneous and options.memory is not None,
            "--simultaneous needs all rows of DATA at once, and --memory reads a part at a time; leave --memory out",
        ),
        (
            options.memory is not None and method == "aps",
            "--method aps draws for all rows of DATA in turn, and --memory shows a part of them at a time; leave "
            "--memory out, or use --method lac",
        ),
    )


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """All columns that `kernpool predict` writes, those of predictions included."""

    options: argparse.Namespace
    model: Any
    target: str
    calibration: dict[str, Any]  # arguments of prediction_interval and predict_set
    notes: list[str] = field(default_factory=list)  # coverage guarantees, each once

    @classmethod
    def of(cls, options: argparse.Namespace, model: Any, header: dict[str, Any]) -> PredictionColumns:
        """Check that the model has the requested columns, and read the calibration rows."""
        for name, method in ANSWERS.items():
            if vars(options)[name] not in (None, False):
                need_method(model, method, f"--{name}", options.model)
        rows = {} if options.calibration is None else calibration_rows(options, holder_of(model), header)
        return cls(options, model, header["target"] or "prediction", rows)

    def at(self, query: Array) -> Columns:
        """Return predictions and all added columns by name, such as y, y_se and y_q0.5."""
        # predictions come last: invalid options are refused before
        added = self._curve(query) | self._observation(query) | self._explanation(query)
        predicted = self.model.predict(query)
        outputs = {self.target: predicted}
        if predicted.ndim == 2:
            outputs = {f"{self.target}_{i}": output for i, output in enumerate(predicted.T)}
        columns: Columns = {}
        for i, (name, output) in enumerate(outputs.items()):
            columns[name] = output
            columns |= {f"{name}_{end}": cells if cells.ndim == 1 else cells[:, i] for end, cells in added.items()}
        return columns

    def _curve(self, query: Array) -> Columns:
        """Return probabilities of classes, standard errors and confidence intervals of the curve."""
        options, model = self.options, self.model
        columns: Columns = {}
        if options.proba:
            columns |= {f"p_{label}": p for label, p in zip(model.classes_, model.predict_proba(query).T, strict=True)}
        how = given(options, "variance")
        if options.se:
            columns["se"] = model.confidence_interval(query, method="naive", **how).standard_error
        if options.interval is not None and options.method is None:
            if options.simultaneous:
                how["simultaneous"] = True
            found = model.confidence_interval(query, level=options.interval, **how)
            columns |= {"center": found.center, "lower": found.lower, "upper": found.upper}
        return columns

    def _observation(self, query: Array) -> Columns:
        """Return quantiles, prediction intervals and prediction sets of a new observation; note their guarantees."""
        options, model = self.options, self.model
        columns: Columns = {}
        if options.quantiles is not None:
            orders = np.atleast_1d(options.quantiles)
            found = model.quantile(query, orders)
            columns |= {f"q{order}": found[..., k] for k, order in enumerate(orders.tolist())}
        how = given(options, "method") | self.calibration
        if holder_of(model) is model:
            how["random_state"] = options.seed or 0
        if options.interval is not None and options.method is not None:
            interval = model.prediction_interval(query, level=options.interval, **how)
            columns |= {"new_lower": interval.lower, "new_upper": interval.upper}
            self._note(interval.guarantee)
        if options.sets is not None:
            chosen = model.predict_set(query, options.sets, **how)
            inside = chosen.member.astype(np.int64).T
            columns |= {f"in_{label}": one for label, one in zip(chosen.classes, inside, strict=True)}
            self._note(chosen.guarantee)
        return columns

    def _explanation(self, query: Array) -> Columns:
        """Return the training rows of largest weight, with contributions and influence; NaN where there is none."""
        if self.options.explain is None:
            return {}
        found = self.model.get_prediction(query).explain(self.options.explain)
        if found.classes is not None:
            at = np.arange(len(found)), slice(None), np.searchsorted(found.classes, found.predicted)
            found = replace(found, contribution=found.contribution[at], influence=found.influence[at])
        columns = {"n_eff": found.effective_rows}
        of_rows = {"row": found.label, "weight": found.weight}
        of_rows |= {"contribution": found.contribution, "influence": found.influence}
        for place in range(found.row.shape[1]):
            for name, cells in of_rows.items():
                columns[f"{name}_{place + 1}"] = np.where(found.row[:, place] < 0, np.nan, cells[:, place])
        return columns

    def _note(self, guarantee: str) -> None:
        text = in_options(self.options, guarantee)
        if text not in self.notes:
            self.notes.append(text)
