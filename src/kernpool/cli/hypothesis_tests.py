"""`kernpool test`: hypothesis tests of a fit or a table.

Significance of columns, parametric specification, monotonicity, and equality of the curves of groups.
"""

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.prediction_columns import need_rows
from kernpool.cli.tables import open_table, say_notes, without_missing
from kernpool.cli.terminal import UsageError, need_output, parse_bandwidth, parse_features, progress_bar
from kernpool.data import TableError, unreadable
from kernpool.data.model_format import read_header
from kernpool.estimators.persistence import load_model
from kernpool.execution.threads import resolve_n_jobs
from kernpool.inference import TestResult, compare_curves, monotonicity_test, specification_test
from kernpool.tables.table import Advice, Table

Array = NDArray[np.float64]
Tested = tuple[TestResult, list[str]]  # the result, and notes on how the table was read

NUMBERS = Advice("correct or drop such rows", "tests of a table take numeric columns; choose others")


def run_test(options: argparse.Namespace) -> None:
    """Run `kernpool test`: test a hypothesis and print the result on standard output."""
    try:
        resolve_n_jobs(options.jobs)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.resamples < 1:
        raise UsageError(f"--resamples must be at least 1, such as 399, got {options.resamples}")
    if options.seed < 0:
        raise UsageError(f"--seed must not be negative, got {options.seed}")
    need_output("open it")
    with progress_bar("testing", options.quiet, unit=""):  # resamples, or rows while bandwidths are chosen
        result, notes = TESTS[options.test](options)
    print(json.dumps(described(options.test, result) | {"notes": notes}, indent=2) if options.json else result)


def described(test: str, result: TestResult) -> dict[str, Any]:
    """Return the result of a hypothesis test as a JSON-compatible dictionary.

    Examples
    --------
    >>> result = TestResult.of(2.0, np.array([0.5, 2.5, 1.0]), null="the curves are equal", bandwidth=np.array([0.25]))
    >>> list(described("curves", result).items())[2:4]
    [('statistic', 2.0), ('p_value', 0.5)]
    """
    return {
        "test": test,
        "null": result.null,
        "statistic": result.statistic,
        "p_value": result.p_value,
        "n_resamples": result.n_resamples,
        "bandwidth": result.bandwidth.tolist(),
    }


def _significance(options: argparse.Namespace) -> Tested:
    model = load_model(options.model)
    need_rows(model, options.model, "kernpool test")
    features = read_header(options.model)["features"]
    unknown = [name for name in options.column if name not in features]
    if unknown:
        known = ", ".join(map(repr, features))
        raise TableError(f"{options.model}: no column {unknown[0]!r}; it predicts from {known}")
    model.set_params(n_jobs=options.jobs)
    if model.encoding_ is None:
        model.feature_names_in_ = np.array(features, dtype=object)  # so that the null hypothesis names columns
    result = model.significance_test(
        options.column,
        method=options.method,
        kind=options.kind,
        n_resamples=options.resamples,
        random_state=options.seed,
    )
    return result, []


def _specification(options: argparse.Namespace) -> Tested:
    table = _table(options)
    result = specification_test(
        table.numbers(_features(table, options), NUMBERS),
        _numbers(table, options.target),
        kind=options.kind,
        **_shared(options),
    )
    return result, table.notes


def _monotonicity(options: argparse.Namespace) -> Tested:
    table = _table(options)
    features = _features(table, options)
    if len(features) > 1:
        raise UsageError(
            f"the monotonicity test takes one column; name it with --features, one of {', '.join(features)}"
        )
    result = monotonicity_test(
        _numbers(table, features[0]),
        _numbers(table, options.target),
        options.direction,
        kind=options.kind,
        **_shared(options),
    )
    return result, table.notes


def _curves(options: argparse.Namespace) -> Tested:
    table = _table(options)
    groups = table.labels(options.groups)
    result = compare_curves(
        table.numbers(_features(table, options, options.groups), NUMBERS),
        _numbers(table, options.target),
        groups,
        null=options.null,
        null_distribution=options.kind,
        **_shared(options),
    )
    return result, table.notes


TESTS = {
    "significance": _significance,
    "specification": _specification,
    "monotonicity": _monotonicity,
    "curves": _curves,
}


def _shared(options: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments that all hypothesis tests of a table take."""
    return {
        "bandwidth": None if options.bandwidth is None else parse_bandwidth(options.bandwidth),
        "n_resamples": options.resamples,
        "random_state": options.seed,
        "n_jobs": options.jobs,
    }


def _table(options: argparse.Namespace) -> Table:
    """Read the input table; with --missing drop, drop rows with missing cells in the columns that the test uses."""
    table = open_table(options)
    table.need([options.target])
    others = vars(options).get("groups")
    names = [*_features(table, options, *([others] if others else [])), options.target, *([others] if others else [])]
    table = without_missing(table, names, options)
    for name in names:
        if name != others and unreadable(table.columns[name]) is None:
            table.floats(name)  # which notes what is assumed
    say_notes(table, options)
    return table


def _features(table: Table, options: argparse.Namespace, *others: str) -> list[str]:
    """Return the names of the explanatory columns: those of --features, or all columns without another role."""
    table.need([options.target])
    features = parse_features(options.features, options.target) or table.others(options.target, *others)
    if not features:
        raise UsageError(f"--features must name at least one column, and {table.source} has no other")
    return features


def _numbers(table: Table, name: str) -> Array:
    return table.numbers([name], NUMBERS)[:, 0]
