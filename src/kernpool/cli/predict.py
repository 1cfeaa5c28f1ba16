"""`kernpool predict`: predictions for the rows of a table, in memory or in chunks."""

import argparse
from pathlib import Path

from kernpool.cli.out_of_core import load_for_tables, predict_in_chunks, report_notes
from kernpool.cli.prediction_columns import PredictionColumns
from kernpool.cli.tables import (
    beside_inputs,
    listed,
    print_json,
    query_rows,
    records_of,
    say_notes,
    say_notes_of_records,
)
from kernpool.cli.terminal import UsageError, need_output, parse_memory, progress_bar
from kernpool.data.atomic_files import refuse_existing
from kernpool.execution.threads import resolve_n_jobs
from kernpool.tables.file_formats import write_table
from kernpool.tables.table import table_format


def run_predict(options: argparse.Namespace) -> None:
    """Run `kernpool predict`: predict the rows of a table, and write the predictions."""
    memory = parse_memory(options.memory)
    try:
        resolve_n_jobs(options.jobs)
    except ValueError as error:
        raise UsageError(str(error)) from None
    asked = PredictionColumns.of(options)
    if options.out == "-":
        need_output("name a file with --out")
    else:
        table_format(options.out)
        refuse_existing(Path(options.out), options.force)
    if memory is not None or options.cluster is not None:
        predict_in_chunks(options, memory, asked)
        return
    model, header = load_for_tables(options)
    asked = asked.ready(model, options, header)
    X, table = query_rows(options, model, header)
    with progress_bar("predicting", options.quiet):
        columns = asked.columns(model, X, header["target"] or "prediction", model.predict)
    columns = beside_inputs(columns, table, header["target"] or "prediction", options)
    kept = () if options.keep is None else listed(options.keep) or table.names
    if not options.json:
        write_table(options.out, columns, force=options.force, kept=kept)
    elif options.out == "-":
        print_json(records_of(columns))
        say_notes_of_records(table, options)
    else:
        write_table(options.out, columns, force=options.force, kept=kept)
        print_json(
            {"out": options.out, "rows": len(X), "columns": list(columns), "notes": [*table.notes, *asked.notes]}
        )
    say_notes(table, options)
    report_notes(asked, options.quiet or options.json)
