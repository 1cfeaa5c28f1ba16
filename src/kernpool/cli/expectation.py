"""What to expect of the next value: quantiles, prediction intervals and sets of classes beside predictions."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.asking import INTERVAL_METHODS, SET_METHODS
from kernpool.cli.kept import read_queries
from kernpool.cli.parsing import parse_levels
from kernpool.cli.tables import open_table, say_notes, say_notes_of_records, without_missing
from kernpool.cli.terminal import UsageError
from kernpool.cli.uncertainty import checked_level, need_rows
from kernpool.conformal.intervals import METHODS
from kernpool.data.codes import levels_in
from kernpool.data.tables import COUNTED, Advice, Table, TableError
from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.nadaraya_watson import NadarayaWatsonRegressor

Array = NDArray[np.float64]

INPUTS = Advice("correct or drop such rows", "calibration rows have numbers in this column, as those of the fit")
OUTPUTS = Advice("correct or drop such rows", "calibration rows need their outputs, as numbers")
# Of places in turn: a part of them at a time would have other draws than the whole.
DRAWS_BY_PLACE = {"rlcp": "localized", "aps": "lac", "raps": "lac"}


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is written beside predictions of the next value.

    Parameters
    ----------
    quantiles : tuple of float
        Levels of quantiles.
    level : float or None
        Of prediction intervals.
    sets : float or None
        Level of sets of classes.
    method : str
        How intervals or sets are found.
    calibration : str or None
        File of further rows, which calibrate.
    seed : int
        Of methods that draw.
    rows : tuple of two arrays, or None
        Inputs and outputs of that file, once it was read.
    """

    quantiles: tuple[float, ...]
    level: float | None
    sets: float | None
    method: str
    calibration: str | None
    seed: int
    rows: tuple[Array, NDArray[Any]] | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> Expectation:
        """Read options of ``kernpool predict``; what cannot be meant is a usage error."""
        quantiles = () if options.quantiles is None else parse_levels(options.quantiles)
        sets, method = options.sets, options.method
        level = options.interval if method is not None and sets is None else None
        if sets is not None and options.interval is not None:
            raise UsageError("--interval is for regressors, and --sets for classifiers; ask for one of them")
        if method is not None and options.interval is None and sets is None:
            raise UsageError("--method is of prediction intervals and of sets: say --interval 0.9 or --sets 0.9 too")
        asked = level is not None or sets is not None
        for name in ("calibration", "seed"):
            if getattr(options, name) is not None and not asked:
                raise UsageError(
                    f"--{name} is of prediction intervals and of sets: say --interval 0.9 --method "
                    f"{'split' if name == 'calibration' else 'rlcp'}, or --sets 0.9, too"
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
        """The options that ask for something."""
        given = ((self.quantiles, "--quantiles"), (self.level, "--interval"), (self.sets, "--sets"))
        return [name for value, name in given if value not in (None, ())]

    def ready(self, model: Any, options: argparse.Namespace, header: dict[str, Any]) -> Expectation:
        """Refuse a model that cannot say what is asked, and read the rows that calibrate.

        Parameters
        ----------
        model : estimator
            Loaded.
        options : argparse.Namespace
            Where the model is from, and how tables are written.
        header : dict
            Its ``model.json``.
        """
        folder = options.model
        if self.sets is not None and not isinstance(model, NadarayaWatsonClassifier):
            raise TypeError(f"--sets is for classifiers, and {folder} holds a {type(model).__name__}")
        counted = isinstance(model, NadarayaWatsonRegressor) and "chunks_" in vars(model)  # quantiles, chunk by chunk
        if self.level is not None or (self.quantiles and not counted):
            need_rows(model, folder, " and ".join(self.asked))
        if self.calibration is None:
            return self
        target = header["target"]
        if target is None:
            raise TableError(
                f"{folder} does not know what its output is called, so that --calibration has no column for it; save "
                "the model with target="
            )
        table = open_table(options, self.calibration)
        table = without_missing(table, [*header["features"], target], options)
        X = read_queries(table, model, header, INPUTS)
        y = table.numbers([target], OUTPUTS)[:, 0] if self.sets is None else _classes(table, target, model.classes_)
        said = replace(table, notes=[f"{table.source}: {note}" for note in table.notes])
        (say_notes_of_records if options.json else say_notes)(said, options)
        return replace(self, rows=(X, y))

    def beside(self, model: Any, query: Array) -> tuple[dict[str, Array], list[str]]:
        """Return columns for the ends of names, and what is guaranteed of them."""
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
            notes.append(_in_options(interval.guarantee))
        if self.sets is not None:
            chosen = model.predict_set(query, self.sets, **options)
            inside = chosen.member.astype(np.float64).T
            columns |= {f"in_{label}": one for label, one in zip(chosen.classes, inside, strict=True)}
            notes.append(_in_options(chosen.guarantee))
        return columns, notes


def _in_options(sentence: str) -> str:
    """Return a guarantee with the options for what functions call ``X_calibration`` and ``method=``.

    Examples
    --------
    >>> _in_options("give X_calibration and y_calibration, or method='rlcp'")
    'give --calibration, or --method rlcp'
    """
    sentence = re.sub(r"\bmethod='([\w+]+)'", r"--method \1", sentence)
    return re.sub(r"\bX_calibration( and y_calibration)?", "--calibration", sentence)


def _check_method(method: str, known: tuple[str, ...], option: str) -> None:
    if method not in known:
        raise UsageError(f"--method {method} is not for {option}, which has {', '.join(known)}")


def _check_calibration(method: str, calibration: str | None) -> None:
    """Refuse methods without the rows that they need, and rows that a method has no use for."""
    record = METHODS.get(method)
    rows = "any" if record is None else record.rows
    if rows == "other" and calibration is None:
        raise UsageError(
            f"--method {method} needs rows that the model was not fitted to: name their table with --calibration, or "
            "use --method adaptive or full, which take those of the fit"
        )
    if rows == "own" and calibration is not None:
        raise UsageError(
            f"--method {method} takes the rows of the fit, left out one by one, and has no use for --calibration; use "
            "--method split or adaptive"
        )


def _classes(table: Table, name: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return a column of classes as a model has them."""
    known = classes.tolist()
    labels = levels_in(table, name, known)
    row = next((row for row, label in enumerate(labels) if label not in known), None)
    if row is not None:
        raise TableError(
            f"{table.place(row, name)} holds {labels[row]!r}, which is no class of the model ({COUNTED}); its classes "
            f"are {', '.join(map(str, known))}"
        )
    return np.array(labels, dtype=classes.dtype)
