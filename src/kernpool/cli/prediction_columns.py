"""Columns that `kernpool predict` adds to predictions: standard errors, intervals, quantiles, sets, probabilities."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.column_types import levels_of, numbers_of, queries_of, refuse_cells, refuse_missing
from kernpool.cli.info import need_method
from kernpool.cli.table_files import Table
from kernpool.cli.tables import open_table, without_missing
from kernpool.cli.terminal import UsageError, given, in_options, parse_numbers, say_notes
from kernpool.data import TableError

Array = NDArray[np.float64]
Columns = dict[str, Array]
Predict = Callable[[Array], Array]

# The method of a model that answers an option.
ANSWERS = {
    "explain": "get_prediction",
    "se": "confidence_interval",
    "interval": "confidence_interval",
    "quantiles": "quantile",
    "sets": "predict_set",
    "proba": "predict_proba",
}
# Methods that draw for one evaluation point after the other, so that chunks would get other draws than the whole
# table; and a method without draws to use instead.
DRAWS_BY_PLACE = {"aps": "lac"}


def refuse_conflicts(options: argparse.Namespace) -> None:
    """Raise UsageError for options of `kernpool predict` that conflict, or have no effect without another one."""
    interval, method, sets = options.interval is not None, options.method, options.sets is not None
    curve, new = interval and method is None, sets or (interval and method is not None)
    asked = [f"--{name}" for name in ANSWERS if vars(options)[name] not in (None, False) and name != "proba"]
    for wrong, text in (
        (
            options.explain is not None and options.explain < 1,
            f"--explain must be a number of training rows from 1 on, got {options.explain}",
        ),
        (sets and interval, "--interval is for regressors, and --sets for classifiers; ask for one of them"),
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
            asked and options.cluster is not None,
            f"{' and '.join(asked)} cannot be had from a cluster; predict here, without --cluster",
        ),
        (
            options.simultaneous and options.memory is not None,
            "--simultaneous needs all rows of DATA at once, and --memory reads a part at a time; leave --memory out",
        ),
        (
            options.memory is not None and method in DRAWS_BY_PLACE,
            f"--method {method} draws for all rows of DATA in turn, and --memory shows a part of them at a time; leave "
            f"--memory out, or use --method {DRAWS_BY_PLACE.get(method)}",
        ),
    ):
        if wrong:
            raise UsageError(text)


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """All columns that `kernpool predict` writes, those of predictions included."""

    options: argparse.Namespace
    model: Any
    target: str
    calibration: dict[str, NDArray[Any]]  # arguments of prediction_interval and predict_set
    notes: list[str] = field(default_factory=list)  # coverage guarantees, each once

    @classmethod
    def of(cls, options: argparse.Namespace, model: Any, header: dict[str, Any]) -> PredictionColumns:
        """Check that the model has the requested columns, and read the calibration rows."""
        for name, method in ANSWERS.items():
            if vars(options)[name] not in (None, False):
                need_method(model, method, f"--{name}", options.model)
        rows = {} if options.calibration is None else _calibration_rows(options, model, header)
        return cls(options, model, header["target"] or "prediction", rows)

    def at(self, query: Array, predict: Predict) -> Columns:
        """Return predictions and all added columns by name, such as y, y_se and y_q0.5."""
        # predictions come last: invalid options are refused before
        added = self._curve(query) | self._observation(query) | self._explanation(query)
        predicted = predict(query)
        if predicted.ndim == 1:
            return {self.target: predicted} | {f"{self.target}_{end}": column for end, column in added.items()}
        columns: Columns = {}
        for i, output in enumerate(predicted.T):
            columns[f"{self.target}_{i}"] = output
            columns |= {f"{self.target}_{i}_{end}": column[:, i] for end, column in added.items()}
        return columns

    def _curve(self, query: Array) -> Columns:
        """Return probabilities of classes, standard errors and confidence intervals of the curve."""
        options, model = self.options, self.model
        columns: Columns = {}
        if options.proba:
            columns |= {f"p_{label}": p for label, p in zip(model.classes_, model.predict_proba(query).T, strict=True)}
        variance = given(options, "variance")
        if options.se:
            columns["se"] = model.get_prediction(query, **variance).standard_error
        if options.interval is not None and options.method is None:
            found = model.confidence_interval(
                query, level=options.interval, simultaneous=options.simultaneous, **variance
            )
            columns |= {"center": found.center, "lower": found.lower, "upper": found.upper}
        return columns

    def _observation(self, query: Array) -> Columns:
        """Return quantiles, prediction intervals and prediction sets of a new observation; note their guarantees."""
        options, model = self.options, self.model
        columns: Columns = {}
        if options.quantiles is not None:
            orders = np.atleast_1d(parse_numbers(options.quantiles, "--quantiles"))
            if len(set(orders.tolist())) < len(orders):
                raise UsageError(f"--quantiles must differ, as each is one column; got {options.quantiles}")
            found = model.quantile(query, orders)
            columns |= {f"q{order}": found[..., k] for k, order in enumerate(orders.tolist())}
        how = given(options, "method") | self.calibration | {"random_state": options.seed or 0}
        if options.interval is not None and options.method is not None:
            interval = model.prediction_interval(query, level=options.interval, **how)
            columns |= {"new_lower": interval.lower, "new_upper": interval.upper}
            self._note(interval.guarantee)
        if options.sets is not None:
            chosen = model.predict_set(query, options.sets, **how)
            inside = chosen.member.astype(np.float64).T
            columns |= {f"in_{label}": one for label, one in zip(chosen.classes, inside, strict=True)}
            self._note(chosen.guarantee)
        return columns

    def _explanation(self, query: Array) -> Columns:
        """Return the training rows of largest weight, with contributions and influence; masked where there is none."""
        if self.options.explain is None:
            return {}
        found = self.model.get_prediction(query).explain(self.options.explain)
        if found.classes is not None:
            at = np.arange(len(found)), slice(None), np.searchsorted(found.classes, found.predicted)
            found = replace(found, contribution=found.contribution[at], influence=found.influence[at])
        shape = (len(found), *found.contribution.shape[2:])
        columns = {"n_eff": found.effective_rows}
        for place in range(found.row.shape[1]):
            parts = {"row": found.row, "weight": found.weight}
            parts |= {"contribution": found.contribution, "influence": found.influence}
            none = found.row[:, place] < 0
            for name, of in parts.items():
                cells: Any = np.ma.array(of[:, place], dtype=np.float64, copy=True)
                cells[none] = np.nan  # in a .npy file; masked cells of the others are empty
                cells[none] = np.ma.masked
                columns[f"{name}_{place + 1}"] = cells
        if len(shape) == 1:
            return columns
        return {name: of if of.ndim > 1 else np.repeat(of[:, None], shape[1], axis=1) for name, of in columns.items()}

    def _note(self, guarantee: str) -> None:
        text = in_options(self.options, guarantee)
        if text not in self.notes:
            self.notes.append(text)


def _calibration_rows(options: argparse.Namespace, model: Any, header: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Read the table of calibration rows, in the format that the options describe."""
    target = header["target"]
    if target is None:
        raise TableError(
            f"{options.model} has no name of its target column, which --calibration needs; save the model with target="
        )
    table = without_missing(open_table(options, options.calibration), [*header["features"], target], options)
    X = queries_of(table, header["features"], model.encoding_)
    refuse_missing(table, [target], "")
    y = numbers_of(table, target) if options.sets is None else _classes(table, target, model.classes_)
    notes = [f"{table.source}: {note}" for note in table.notes]
    say_notes(notes, options, records=True)
    return {"X_calibration": X, "y_calibration": y}


def _classes(table: Table, name: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return a column of a table as class labels, with the type and spelling of the model's class labels."""
    known = classes.tolist()
    labels = levels_of(table, name, known)
    new = table.frame[name].map(lambda _: False)
    new[:] = [label not in known for label in labels]
    refuse_cells(table, name, new, "which is no class of the model", f"its classes are {', '.join(map(str, known))}")
    return np.array(labels, dtype=classes.dtype)
