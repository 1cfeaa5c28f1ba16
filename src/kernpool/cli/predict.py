"""`kernpool predict`: predictions for the rows of a table, in memory or in chunks, here or on a Dask cluster."""

import argparse
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from kernpool.cli.prediction_columns import Columns, Predict, PredictionColumns, refuse_conflicts
from kernpool.cli.table_files import import_pandas, row_writer, table_format
from kernpool.cli.tables import beside_inputs, query_chunks, query_rows
from kernpool.cli.terminal import UsageError, need_output, parse_memory, print_json, say, say_notes
from kernpool.data.atomic_files import refuse_existing
from kernpool.estimators.fitted_model import pool_elsewhere
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.model import source_of
from kernpool.estimators.parameter_validation import check_parameters
from kernpool.estimators.persistence import load_model, read_header
from kernpool.estimators.regressors import KernelRegressor
from kernpool.execution.notices import progress_bar
from kernpool.execution.progress import current_progress, report_progress
from kernpool.pooling import ChunkPairs


def run_predict(options: argparse.Namespace) -> None:
    """Run `kernpool predict`: predict the rows of a table, and write the predictions."""
    memory = parse_memory(options.memory)
    refuse_conflicts(options)
    if options.cluster is not None and not re.fullmatch(r"\w+://\S+", options.cluster):
        raise UsageError(f"--cluster must be the address of a Dask scheduler, tcp://host:port, got {options.cluster!r}")
    if options.out == "-":
        need_output("name a file with --out")
        if options.json and memory is not None:
            raise UsageError("--json prints records, which need the rows in memory; name a file with --out")
    else:
        table_format(options.out)
        refuse_existing(Path(options.out), options.force)
    model, header = _load(options, memory)
    columns = PredictionColumns.of(options, model, header)
    with _predictor(model, options.cluster) as predict:
        if memory is None:
            names, rows, notes = _predict_rows(options, columns, header, predict)
        else:
            names, rows, notes = _predict_chunks(options, columns, memory, header, predict)
    if options.json and options.out != "-":
        print_json({"out": options.out, "rows": rows, "columns": names, "notes": [*notes, *columns.notes]})
    for note in () if options.quiet or options.json else columns.notes:
        say(f"guarantee  {note}")


def _load(options: argparse.Namespace, memory: int | None) -> tuple[Any, dict[str, Any]]:
    """Load a saved model and apply the options to it; return the model and its header."""
    model = load_model(options.model, memory=memory)
    if not isinstance(model, KernelSmoother):
        raise TypeError(
            f"{options.model} holds a {type(model).__name__}, which predicts no tables here; load it in Python with "
            "load_model"
        )
    model.set_params(
        n_jobs=options.jobs, **{name: vars(options)[name] for name in ("unseen", "empty") if vars(options)[name]}
    )
    check_parameters(model)
    model._freeze()
    if model.encoding_ is None or model.encoding_.is_plain:
        model.__dict__.pop("feature_names_in_", None)  # columns are chosen by their names here, and come without them
    return model, read_header(options.model)


def _predict_rows(
    options: argparse.Namespace, columns: PredictionColumns, header: dict[str, Any], predict: Predict
) -> tuple[list[str], int, list[str]]:
    """Predict a table in memory; return names of columns, number of rows and notes."""
    X, table = query_rows(options, columns.model, header)
    with progress_bar("predicting", options.quiet):
        predicted = columns.at(X, predict)
    found, kept = beside_inputs(predicted, table, columns.target, options)
    if options.json and options.out == "-":
        print_json(found.astype(object).to_dict("records"))
        say_notes(table.notes, options, records=True)
    else:
        with row_writer(options.out, len(found), force=options.force, kept=found.columns[:kept]) as write:
            write(found)
        say_notes(table.notes, options)
    return [*found], len(found), table.notes


def _predict_chunks(
    options: argparse.Namespace, columns: PredictionColumns, memory: int, header: dict[str, Any], predict: Predict
) -> tuple[list[str], int, list[str]]:
    """Predict a table block by block, and write each block."""
    rows, blocks = query_chunks(options, memory, header["features"])
    source, read, frame = source_of(columns.model), list[int](), import_pandas().DataFrame
    with progress_bar("predicting", options.quiet):
        predicted = _predicted(blocks, rows, columns, predict, read)
        first = next(predicted)
        with row_writer(options.out, rows, force=options.force) as write:
            write(frame(first))
            for block in predicted:
                write(frame(block))
    notes = []
    if isinstance(source, ChunkPairs) and options.cluster is None and sum(read) < (source.rows or 0) * len(read):
        passes = "" if len(read) == 1 else f" in {len(read)} passes over them"
        notes.append(f"{sum(read)} of {(source.rows or 0) * len(read)} training rows were read{passes}")
    say_notes(notes, options)
    return list(first), rows, notes


def _predicted(
    blocks: Iterator[Any], rows: int, columns: PredictionColumns, predict: Predict, read: list[int]
) -> Iterator[Columns]:
    """Yield the output columns of each block of queries, and report progress over all rows."""
    start, listener = 0, current_progress() or (lambda _, __: None)
    for block in blocks:
        before, size = start, len(block)
        read.append(0)

        def report(done: int, total: int) -> None:
            read[-1] = max(read[-1], done)
            listener(before + size * done // total, rows)  # noqa: B023  # called before the next turn

        with report_progress(report):
            predicted = columns.at(block, predict)
        yield predicted
        start += size


@contextmanager
def _predictor(model: Any, cluster: str | None) -> Iterator[Predict]:
    """Yield the function that computes predictions: the model's own, or one that runs on a Dask cluster."""
    if cluster is None:
        yield model.predict
        return
    encoding = getattr(model, "encoding_", None)
    if not isinstance(model, KernelRegressor) or not (encoding is None or encoding.numbers_alone):
        raise TypeError("--cluster is for regressors of columns of numbers and dates; predict here, without --cluster")
    dask = import_module("kernpool.dask")  # which loads Dask
    with closing(dask.connect(cluster)) as client:
        yield lambda query: pool_elsewhere(model, query, lambda chunks: dask.open_partitions(chunks, client=client))
