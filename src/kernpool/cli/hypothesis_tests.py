"""`kernpool test`: hypothesis tests of a fit or a table.

Significance of columns, and parametric specification.
"""

import argparse

import numpy as np

from kernpool.cli.info import load_named, need_method
from kernpool.cli.tables import choose_features, complete_rows, open_table
from kernpool.cli.terminal import given, need_output, print_json, say_notes
from kernpool.execution import progress_bar
from kernpool.inference import SignificanceTable, TestResult, specification_test

RESAMPLING = ("n_resamples", "random_state")  # arguments of all tests
PRINTED = ("null", "statistic", "p_value", "n_resamples", "bandwidth", "smoothing")  # of a result, as JSON
Tested = tuple[TestResult | SignificanceTable, list[str]]  # the result, and notes on how the table was read


def run_test(options: argparse.Namespace) -> None:
    """Run `kernpool test`: test a hypothesis and print the result on standard output."""
    need_output("open it")
    test = _significance if options.test == "significance" else _of_table
    with progress_bar("testing", options.quiet, unit=""):  # resamples, or rows while bandwidths are chosen
        result, notes = test(options)
    if not options.json:
        print(result)
        return
    results = result.results if isinstance(result, SignificanceTable) else {"": result}
    facts = {column: {name: getattr(test, name) for name in PRINTED} for column, test in results.items()}
    print_json({"test": options.test, **facts.get("", {"columns": facts}), "notes": notes})


def _significance(options: argparse.Namespace) -> Tested:
    model, _ = load_named(options.model)
    need_method(model, "significance_test", "kernpool test", options.model)
    model.set_params(n_jobs=options.jobs)
    return model.significance_test(options.column, **given(options, "method", *RESAMPLING)), []


def _of_table(options: argparse.Namespace) -> Tested:
    """Test the curve of a table; with --missing drop, without rows that miss cells in the columns that are used."""
    table = open_table(options)
    features = choose_features(table, options)
    numbers = [*features, options.target]
    table = complete_rows(table, numbers, options, features)
    say_notes(table.notes, options)
    *X, y = (table.numbers(name, "tests of a table take numeric columns; choose others") for name in numbers)
    return specification_test(np.column_stack(X), y, **given(options, "bandwidth", "n_jobs", *RESAMPLING)), table.notes
