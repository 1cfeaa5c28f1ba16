"""Columns that `kernpool predict` adds to predictions, and their names.

`UncertaintyColumns` adds standard errors and intervals of the curve. `ExpectationColumns` adds quantiles, prediction
intervals and prediction sets of a new observation. `PredictionColumns` combines both. The summary of a fit is here
too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.options import INTERVAL_METHODS, SET_METHODS
from kernpool.cli.tables import open_table, read_queries, say_notes, say_notes_of_records, without_missing
from kernpool.cli.terminal import UsageError, parse_levels
from kernpool.conformal.methods import METHODS
from kernpool.data.array_validation import COUNTED, TableError
from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.model import source_of
from kernpool.estimators.regressors import KernelRegressor, NadarayaWatsonRegressor
from kernpool.inference import ClassSummary, Summary, as_level
from kernpool.tables.column_types import levels_in
from kernpool.tables.table import Advice, Table

Array = NDArray[np.float64]


@dataclass(frozen=True)
class UncertaintyColumns:
    """Standard errors and confidence intervals that `kernpool predict` adds to predictions.

    Parameters
    ----------
    error : bool
        Whether to add standard errors.
    level : float or None
        Confidence level of intervals for the curve.
    simultaneous : bool
        Whether the intervals form a simultaneous band.
    variance : str
        Estimator of the error variance.
    """

    error: bool
    level: float | None
    simultaneous: bool
    variance: str

    @classmethod
    def of(cls, options: argparse.Namespace) -> UncertaintyColumns:
        """Build `UncertaintyColumns` from the options of ``kernpool predict``; raise UsageError if they conflict."""
        if options.groups is not None:
            raise UsageError(
                "--groups is an option of kernpool fit: --se and --interval of a model fitted with it are "
                "cluster-robust; fit again with --groups, and leave it out here"
            )
        interval = options.interval
        if options.simultaneous and interval is None:
            raise UsageError("--simultaneous is for intervals: say --interval 0.95 too")
        for name, given in (("simultaneous", options.simultaneous), ("variance", options.variance is not None)):
            if given and options.method is not None:
                raise UsageError(
                    f"--{name} is for confidence intervals of the curve, and --method for prediction intervals; leave "
                    "one of them out"
                )
        if options.variance is not None and interval is None and not options.se:
            raise UsageError("--variance is for standard errors and confidence limits: say --se or --interval 0.95 too")
        if interval is not None:
            checked_level("--interval", interval)
        if options.simultaneous and options.memory is not None:
            raise UsageError(
                "--simultaneous needs all rows of DATA at once, and --memory reads a part at a time; leave --memory out"
            )
        of_curve = interval if options.method is None else None
        return cls(options.se, of_curve, options.simultaneous, options.variance or "local")

    @property
    def asked(self) -> list[str]:
        """Options given by the user that ask for standard errors or confidence intervals."""
        return ["--se"] * self.error + ["--interval"] * (self.level is not None)

    def added_columns(self, model: Any, query: Array) -> dict[str, Array]:
        """Return standard errors and confidence intervals at the queries, keyed by the suffix of the column name.

        The model must hold its training rows.
        """
        columns: dict[str, Array] = {}
        if self.error:
            columns["se"] = model.get_prediction(query, variance=self.variance).standard_error
        if self.level is not None:
            found = model.confidence_interval(
                query, level=self.level, variance=self.variance, simultaneous=self.simultaneous
            )
            columns |= {"center": found.center, "lower": found.lower, "upper": found.upper}
        return columns


def checked_level(option: str, level: float) -> None:
    """Raise UsageError, naming the option, if a confidence level is invalid."""
    try:
        as_level(level)
    except ValueError as error:
        text = str(error).replace("level=", f"{option} ").replace("level ", f"{option} ")
        raise UsageError(text) from None


def need_rows(model: Any, folder: str, what: str) -> None:
    """Raise TypeError unless a model is a regressor with its training rows in memory.

    Parameters
    ----------
    model : object
        From `load_model`.
    folder : str
        Folder of the model, for the message.
    what : str
        Options that need the rows, for the message.

    Raises
    ------
    TypeError
        If the model is not a regressor, or was fitted in chunks.
    """
    if not isinstance(model, KernelRegressor):
        raise TypeError(f"{what} is for regressors, and {folder} holds a {type(model).__name__}")
    if source_of(model) is not None:
        bandwidth = ",".join(f"{h:.6g}" for h in model.bandwidth_)
        raise TypeError(
            f"{folder} was fitted in chunks and holds no rows, which {what} needs; fit a sample of the rows without "
            f"--memory, with --bandwidth {bandwidth}"
        )


def named_summary(model: Any, features: Sequence[str]) -> Summary | ClassSummary:
    """Return the summary of a fitted model, with the column names of the table."""
    summary: Summary | ClassSummary = model.summary()
    if model.encoding_ is not None:  # which knows them
        return summary
    named = [replace(column, name=name) for column, name in zip(summary.columns, features, strict=True)]
    return replace(summary, columns=tuple(named))


INPUTS = Advice("correct or drop such rows", "calibration rows have numbers in this column, as those of the fit")
OUTPUTS = Advice("correct or drop such rows", "calibration rows need their outputs, as numbers")
# Methods that draw for one evaluation point after the other, so that chunks would get other draws than the whole
# table; and a method without draws to use instead.
DRAWS_BY_PLACE = {"aps": "lac", "raps": "lac"}


@dataclass(frozen=True, eq=False)
class ExpectationColumns:
    """Quantiles, prediction intervals and prediction sets that `kernpool predict` adds to predictions.

    Parameters
    ----------
    quantiles : tuple of float
        Quantile orders.
    level : float or None
        Coverage of prediction intervals.
    sets : float or None
        Coverage of prediction sets.
    method : str
        Method of prediction intervals or sets.
    calibration : str or None
        File of calibration rows.
    seed : int
        Random seed, for methods that draw.
    rows : tuple of two arrays, or None
        Inputs and outputs of the calibration rows, once the file was read.
    """

    quantiles: tuple[float, ...]
    level: float | None
    sets: float | None
    method: str
    calibration: str | None
    seed: int
    rows: tuple[Array, NDArray[Any]] | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> ExpectationColumns:
        """Build `ExpectationColumns` from the options of ``kernpool predict``; raise UsageError if they conflict."""
        quantiles = () if options.quantiles is None else parse_levels(options.quantiles)
        sets, method = options.sets, options.method
        level = options.interval if method is not None and sets is None else None
        if sets is not None and options.interval is not None:
            raise UsageError("--interval is for regressors, and --sets for classifiers; ask for one of them")
        if method is not None and options.interval is None and sets is None:
            raise UsageError("--method is for prediction intervals and sets: say --interval 0.9 or --sets 0.9 too")
        asked = level is not None or sets is not None
        for name in ("calibration", "seed"):
            if getattr(options, name) is not None and not asked:
                raise UsageError(
                    f"--{name} is for prediction intervals and prediction sets: say --interval 0.9 "
                    f"--method {'split' if name == 'calibration' else 'cv+'}, or --sets 0.9, too"
                )
        if options.seed is not None and options.seed < 0:
            raise UsageError(f"--seed must not be negative, got {options.seed}")
        if sets is not None:
            checked_level("--sets", sets)
            method = method or "lac"
            _check_method(method, SET_METHODS, "--sets")
        if level is not None:
            _check_method(method, INTERVAL_METHODS, "--interval")
            _check_calibration(method, options.calibration)
        if options.memory is not None and method in DRAWS_BY_PLACE:
            raise UsageError(
                f"--method {method} draws for all rows of DATA in turn, and --memory shows a part of them at a time; "
                f"leave --memory out, or use --method {DRAWS_BY_PLACE[method]}"
            )
        return cls(quantiles, level, sets, method or "", options.calibration, options.seed or 0)

    @property
    def asked(self) -> list[str]:
        """Options given by the user that ask for quantiles, prediction intervals or prediction sets."""
        given = ((self.quantiles, "--quantiles"), (self.level, "--interval"), (self.sets, "--sets"))
        return [name for value, name in given if value not in (None, ())]

    def ready(self, model: Any, options: argparse.Namespace, header: dict[str, Any]) -> ExpectationColumns:
        """Check that the model supports the requested columns; return this record with its calibration rows read.

        Parameters
        ----------
        model : estimator
            The loaded model.
        options : argparse.Namespace
            Options of the command: folder of the model, format of tables.
        header : dict
            Content of the model's ``model.json``.
        """
        folder = options.model
        if self.sets is not None and not isinstance(model, NadarayaWatsonClassifier):
            raise TypeError(f"--sets is for classifiers, and {folder} holds a {type(model).__name__}")
        counted = (
            isinstance(model, NadarayaWatsonRegressor) and source_of(model) is not None
        )  # quantiles, chunk by chunk
        if self.level is not None or (self.quantiles and not counted):
            need_rows(model, folder, " and ".join(self.asked))
        if self.calibration is None:
            return self
        target = header["target"]
        if target is None:
            raise TableError(
                f"{folder} has no name of its target column, which --calibration needs; save the model with target="
            )
        table = open_table(options, self.calibration)
        table = without_missing(table, [*header["features"], target], options)
        X = read_queries(table, model, header, INPUTS)
        y = table.numbers([target], OUTPUTS)[:, 0] if self.sets is None else _classes(table, target, model.classes_)
        said = replace(table, notes=[f"{table.source}: {note}" for note in table.notes])
        (say_notes_of_records if options.json else say_notes)(said, options)
        return replace(self, rows=(X, y))

    def added_columns(self, model: Any, query: Array) -> tuple[dict[str, Array], list[str]]:
        """Return quantiles, prediction intervals and sets at the queries, and their coverage guarantees.

        The columns are keyed by the suffix of their names.
        """
        columns: dict[str, Array] = {}
        notes: list[str] = []
        if self.quantiles:
            found = model.quantile(query, list(self.quantiles))
            columns |= {f"q{level}": found[..., k] for k, level in enumerate(self.quantiles)}
        options: dict[str, Any] = {"method": self.method, "random_state": self.seed}
        if self.rows is not None:
            options |= {"X_calibration": self.rows[0], "y_calibration": self.rows[1]}
        if self.level is not None:
            interval = model.prediction_interval(query, level=self.level, **options)
            columns |= {"new_lower": interval.lower, "new_upper": interval.upper}
            notes.append(interval.guarantee.replace("X_calibration", "--calibration"))
        if self.sets is not None:
            chosen = model.predict_set(query, self.sets, **options)
            inside = chosen.member.astype(np.float64).T
            columns |= {f"in_{label}": one for label, one in zip(chosen.classes, inside, strict=True)}
            notes.append(chosen.guarantee)
        return columns, notes


def _check_method(method: str, known: tuple[str, ...], option: str) -> None:
    if method not in known:
        raise UsageError(f"--method {method} is not for {option}, which has {', '.join(known)}")


def _check_calibration(method: str, calibration: str | None) -> None:
    """Raise UsageError if --calibration is missing but the method needs it, or given but the method does not use it."""
    record = METHODS.get(method)
    rows = "any" if record is None else record.rows
    if rows == "other" and calibration is None:
        raise UsageError(
            f"--method {method} needs rows that the model was not fitted to: name their table with --calibration, or "
            "use --method adaptive or full, which take those of the fit"
        )
    if rows == "own" and calibration is not None:
        raise UsageError(
            f"--method {method} uses leave-one-out of the training rows, and has no use for --calibration; use "
            "--method split or adaptive"
        )


def _classes(table: Table, name: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return a column of a table as class labels, with the type and spelling of the model's class labels."""
    known = classes.tolist()
    labels = levels_in(table, name, known)
    row = next((row for row, label in enumerate(labels) if label not in known), None)
    if row is not None:
        raise TableError(
            f"{table.place(row, name)} holds {labels[row]!r}, which is no class of the model ({COUNTED}); its classes "
            f"are {', '.join(map(str, known))}"
        )
    return np.array(labels, dtype=classes.dtype)


Columns = dict[str, Array]
Predict = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """All columns that `kernpool predict` writes in addition to predictions.

    Parameters
    ----------
    uncertainty : UncertaintyColumns
        Standard errors and confidence intervals of the curve.
    expectation : ExpectationColumns
        Quantiles, prediction intervals and prediction sets.
    probabilities : bool
        Whether to add class probabilities.
    notes : list of str
        Coverage guarantees of the columns written so far, each once.
    """

    uncertainty: UncertaintyColumns
    expectation: ExpectationColumns
    probabilities: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, options: argparse.Namespace) -> PredictionColumns:
        """Build `PredictionColumns` from the options of ``kernpool predict``; raise UsageError if they conflict."""
        found = cls(UncertaintyColumns.of(options), ExpectationColumns.of(options), options.proba)
        asked = found.uncertainty.asked + found.expectation.asked
        if asked and options.cluster is not None:
            raise UsageError(f"{' and '.join(asked)} cannot be had from a cluster; predict here, without --cluster")
        return found

    def ready(self, model: Any, options: argparse.Namespace, header: dict[str, Any]) -> PredictionColumns:
        """Check that the model supports the requested columns; return this record with its calibration rows read."""
        folder = options.model
        if self.uncertainty.asked:
            need_rows(model, folder, " or ".join(self.uncertainty.asked))
        if self.probabilities and not hasattr(model, "predict_proba"):
            raise TypeError(f"--proba is for classifiers, and {folder} holds a {type(model).__name__}")
        return replace(self, expectation=self.expectation.ready(model, options, header))

    def columns(self, model: Any, query: Array, target: str, predict: Predict) -> Columns:
        """Return predictions and all added columns by name, such as y, y_se and y_q0.5.

        For several outputs they are y_0, y_0_se, ...

        Parameters
        ----------
        model : KernelSmoother
            Fitted model.
        query : ndarray of shape (m, d)
            Evaluation points.
        target : str
            Name of the output.
        predict : callable
            Prediction function of the model, here or on a cluster.
        """
        predicted = predict(query)
        beside = self.uncertainty.added_columns(model, query)
        expected, notes = self.expectation.added_columns(model, query)
        beside |= expected
        self.notes.extend(note for note in notes if note not in self.notes)
        if self.probabilities:
            shares = model.predict_proba(query).T
            beside = {f"p_{label}": share for label, share in zip(model.classes_, shares, strict=True)} | beside
        if predicted.ndim == 1:
            return {target: predicted} | {f"{target}_{end}": column for end, column in beside.items()}
        columns: Columns = {}
        for i, output in enumerate(predicted.T):
            columns[f"{target}_{i}"] = output
            columns |= {f"{target}_{i}_{end}": column[:, i] for end, column in beside.items()}
        return columns
