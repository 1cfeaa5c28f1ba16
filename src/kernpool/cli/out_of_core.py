"""`kernpool fit` and `predict` out of core: rows are read in chunks, predictions are written block by block.

Predictions are made here, or by the workers of a Dask cluster.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.prediction_columns import Columns, Predict, PredictionColumns
from kernpool.cli.tables import IN_MEMORY, form_of, listed, plain_json, read_queries
from kernpool.cli.terminal import UsageError, parse_features, progress_bar, say
from kernpool.data import TIME_KINDS, Chunks, MixedTable, TableError, Times, in_words
from kernpool.data.chunks.parquet import ParquetChunks
from kernpool.data.chunks.sources import NpyChunks
from kernpool.data.model_format import read_header
from kernpool.estimators.fitted_model import pool_at
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.persistence import load_model, save_model
from kernpool.estimators.regressors import KernelRegressor
from kernpool.execution.progress import current_progress, report_progress
from kernpool.tables.file_formats import input_format, read_table, row_writer

Array = NDArray[np.float64]
Answer = Callable[[Array], Columns]


def fit_in_chunks(model: KernelRegressor, options: argparse.Namespace, memory: int) -> None:
    """Fit a model to a file read in chunks, print the report and save the model."""
    if options.plot is not None:
        raise UsageError("--plot needs the rows in memory; leave --memory out, or draw a sample of the rows")
    if options.groups is not None:
        raise UsageError(
            "--groups needs the rows in memory, where whole clusters can be left out; leave --memory out, or fit some "
            "clusters of the rows"
        )
    if options.summary:
        raise UsageError("--summary needs the rows in memory; leave --memory out, or fit a sample of the rows")
    refuse_in_chunks(options)
    features = parse_features(options.features, options.target)
    chunks = open_table(options.data, options.format, memory, target=options.target, features=features)
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    dates = _dates_of(chunks, options)
    with progress_bar("fitting", options.quiet):
        model.fit(chunks)
    model.set_params(n_jobs=None)  # the machine that loads the model has other processors
    if options.model is not None:
        save_model(model, options.model, target=options.target, force=options.force)
    report = {
        "estimator": type(model).__name__,
        "rows": chunks.rows,
        "columns": list(chunks.names or ()),
        "kernel": model.kernel,
        "bandwidth": dict(zip(chunks.names or (), model.bandwidth_.tolist(), strict=True)),
        "note": model.bandwidth_note_,
        "loo_error": vars(model).get("loo_error_"),
        "notes": notes_of(chunks, options.target),
    } | ({"dates": dates} if dates else {})
    if options.json:
        print(json.dumps(plain_json(report | ({"model": options.model} if options.model else {})), indent=2))
    elif not options.quiet:
        _say_fit(report, options)


def _say_fit(report: dict[str, Any], options: argparse.Namespace) -> None:
    say(f"rows       {report['rows']}, read in chunks")
    say(f"columns    {', '.join(report['columns'])}")
    if "dates" in report:
        say(f"dates      {', '.join(report['dates'])}, in days since 1970-01-01")
    say(f"kernel     {report['kernel']}")
    say(f"bandwidth  {', '.join(f'{name} {h:.6g}' for name, h in report['bandwidth'].items())}")
    say(f"           {report['note']}")
    if report["loo_error"] is not None:
        say(f"leave-one-out mean squared error  {report['loo_error']:.6g} (of the rows searched on)")
    if options.model is not None:
        say(f"model      {options.model}, which refers to {options.data}")
    for note in report["notes"]:
        say(f"note       {note}")


def notes_of(chunks: Chunks, target: str) -> list[str]:
    """Return notes on how data in chunks were read: row labels that were dropped, and a boolean target."""
    left, notes = chunks.left_out, []
    if left:
        notes.append(f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise")
    if isinstance(chunks, ParquetChunks) and chunks.is_boolean(target):
        notes.append(
            f"column {target!r} holds booleans, whose mean is the probability of true; classes need no --memory"
        )
    return notes


def _dates_of(chunks: Chunks, options: argparse.Namespace) -> list[str]:
    """Return the names of the date and duration columns; raise TableError unless --dates names or allows them."""
    kinds = zip(chunks.names or (), chunks.kinds or (), strict=False)
    found = [name for name, kind in kinds if kind != "numeric"]
    asked = found if options.dates == "" else listed(options.dates or "")
    wrong = [name for name in found if name not in asked]
    if wrong:
        raise TableError(
            f"{options.data}: column {wrong[0]!r} holds dates; say --dates {wrong[0]} to read it as days since "
            "1970-01-01, or leave it out with --features"
        )
    other = [name for name in asked if name not in found]
    if other:
        raise TableError(f"{options.data}: --dates names {other[0]!r}, which is no column of dates to predict from")
    return found


def refuse_in_chunks(options: argparse.Namespace) -> None:
    """Raise UsageError for options that need all rows in memory."""
    for name in IN_MEMORY:
        if vars(options).get(name) not in (None, False):
            raise UsageError(f"--{name} needs the rows in memory, here; leave --memory (or --cluster) out")
    if options.missing == "drop":
        raise UsageError("--missing drop needs the rows in memory; leave --memory (or --cluster) out")


def load_for_tables(options: argparse.Namespace, memory: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a saved model for the prediction of tables and apply the options to it; return the model and its header."""
    model = load_model(options.model, memory=memory)
    if not isinstance(model, KernelSmoother):
        raise TypeError(
            f"{options.model} holds a {type(model).__name__}, which predicts no tables here; load it in Python with "
            "load_model"
        )
    header = read_header(options.model)
    if options.unseen is not None:
        model.set_params(unseen=options.unseen)
    model.set_params(n_jobs=options.jobs, **({} if options.empty is None else {"empty": options.empty}))
    model.__dict__.pop("feature_names_in_", None)  # columns are chosen by their names here, and come without them
    return model, header


def predict_in_chunks(options: argparse.Namespace, memory: int | None, asked: PredictionColumns) -> None:
    """Predict a table block by block, in this process or on a Dask cluster, and write each block."""
    if options.cluster is not None and not re.fullmatch(r"\w+://\S+", options.cluster):
        raise UsageError(f"--cluster must be the address of a Dask scheduler, tcp://host:port, got {options.cluster!r}")
    refuse_in_chunks(options)
    if options.json and options.out == "-":
        raise UsageError("--json prints predictions as records, which need the rows in memory; name a file with --out")
    model, header = load_for_tables(options, memory)
    _refuse_levels(model, options.model)
    asked = asked.ready(model, options, header)
    rows, blocks = open_queries(options, model, memory, header["features"])
    target = header["target"] or "prediction"
    with predictor(model, options.cluster) as predict, progress_bar("predicting", options.quiet):
        predicted = _predicted(blocks, rows, lambda query: asked.columns(model, query, target, predict))
        first = next(predicted)
        with row_writer(options.out, list(first), rows, force=options.force) as write:
            write(np.column_stack(list(first.values())))
            for block in predicted:
                write(np.column_stack(list(block.values())))
    if options.json:
        described = {"out": options.out, "rows": rows, "columns": list(first), "notes": asked.notes}
        print(json.dumps(described, indent=2))
    report_notes(asked, options.quiet or options.json)


def _refuse_levels(model: Any, folder: str) -> None:
    """Raise TableError if a model has categorical columns of text, as data in chunks are read as numbers."""
    if model.encoding_ is not None:
        levels = (*model.encoding_.levels, *model.encoding_.pairs)
        if any(isinstance(level, str) for some in levels for level in some):
            raise TableError(
                f"{folder} has categorical columns of text, and chunks are read as numbers; leave --memory (or "
                "--cluster) out"
            )


def report_notes(asked: PredictionColumns, quiet: bool) -> None:
    """Print the coverage guarantees of the prediction intervals or sets that were written, unless `quiet`."""
    for note in () if quiet else asked.notes:
        say(f"guarantee  {note}")


def _predicted(blocks: Iterator[Array], rows: int, answer: Answer) -> Iterator[Columns]:
    """Yield the output columns of each block of queries, and report progress over all rows."""
    start, listener = 0, current_progress()
    for block in blocks:
        before, size = start, len(block)
        if listener is None:
            yield answer(block)
        else:
            tell = listener
            # Called before the next turn.
            with report_progress(lambda done, total: tell(before + size * done // total, rows)):  # noqa: B023
                predicted = answer(block)
            yield predicted
        start += size


def open_queries(
    options: argparse.Namespace, model: Any, memory: int | None, features: list[str]
) -> tuple[int, Iterator[Any]]:
    """Return the number of queries and an iterator over blocks of queries; a single block if `memory` is None."""
    if memory is None:
        table = read_table(options.data, options.format, form_of(options))
        query = read_queries(table, model, {"features": features})
        return len(query), iter([query])
    chunks = open_table(options.data, options.format, memory, target=[], features=features)
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    kinds, encoding = chunks.kinds, model.encoding_
    if kinds is None and (encoding is None or not encoding.dates):
        return chunks.rows, (chunk.key for chunk in chunks)
    columns = list(zip(features, kinds or ("numeric",) * len(features), strict=True))
    return chunks.rows, (
        MixedTable(
            {
                name: Times(kind, cells) if kind in TIME_KINDS else cells
                for (name, kind), cells in zip(columns, chunk.key.T, strict=True)
            }
        )
        for chunk in chunks
    )


def open_table(
    name: str, format: str | None, memory: int, *, target: str | list[str], features: list[str] | None
) -> Chunks:
    """Open a Parquet or `.npy` file, or a folder of Parquet files, in chunks."""
    path = Path(name)
    if name != "-" and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = "parquet" if path.is_dir() and format is None else input_format(name, format)
    if name == "-" or kind not in ("parquet", "npy"):
        raise UsageError(
            f"--memory reads Parquet and .npy files in chunks, and {name!r} is neither; convert it, or leave "
            "--memory out"
        )
    return (NpyChunks if kind == "npy" else ParquetChunks)(path, target=target, features=features, memory=memory)


@contextmanager
def predictor(model: Any, cluster: str | None) -> Iterator[Predict]:
    """Yield the function that computes predictions: the model's own, or one that runs on a Dask cluster."""
    if cluster is None:
        yield model.predict
        return
    encoding = getattr(model, "encoding_", None)
    if not isinstance(model, KernelRegressor) or not (encoding is None or encoding.numbers_alone):
        raise TypeError("--cluster is for regressors of columns of numbers and dates; predict here, without --cluster")
    dask = import_module("kernpool.dask")  # which loads Dask
    with closing(dask.connect(cluster)) as client:
        yield lambda query: pool_at(
            model, query, model._report_rank, lambda chunks: dask.open_partitions(chunks, client=client)
        )
