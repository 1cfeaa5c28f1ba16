"""Commands on tables that do not fit into memory: rows are read in chunks, predictions are written as they come."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.beside import Beside, Columns, Predict
from kernpool.cli.parsing import parse_features
from kernpool.cli.terminal import UsageError, progress_bar, say
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.opening import NpyChunks, open_chunks
from kernpool.data.chunks.parquet import ParquetChunks
from kernpool.data.folders import read_header
from kernpool.data.tables import Advice, TableError, read_table, table_format
from kernpool.data.writers import row_writer
from kernpool.estimators.extrapolation import limits_of
from kernpool.estimators.fitted import scale_of
from kernpool.estimators.regression import KernelRegressor
from kernpool.estimators.saving import MODELS, load_model, save_model
from kernpool.estimators.smoother import KernelSmoother
from kernpool.execution.progress import current_progress, report_progress

Array = NDArray[np.float64]
Answer = Callable[[Array], Columns]

QUERIES = Advice(
    "correct or drop such rows: the model predicts from this column",
    "convert it first: the model predicts from numbers in this column",
)


def fit_in_chunks(model: KernelRegressor, options: argparse.Namespace, memory: int) -> None:
    """Fit a file by reference, report, save."""
    if options.plot is not None:
        raise UsageError("--plot needs the rows in memory; leave --memory out, or draw a sample of the rows")
    if options.groups is not None:
        raise UsageError(
            "--groups needs the rows in memory, where whole clusters can be left out; leave --memory out, or fit some "
            "clusters of the rows"
        )
    if options.summary:
        raise UsageError("--summary needs the rows in memory; leave --memory out, or fit a sample of the rows")
    features = parse_features(options.features, options.target)
    chunks = open_table(options.data, options.format, memory, target=options.target, features=features)
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    with progress_bar("fitting", options.quiet):
        model.fit(chunks)
    model.set_params(n_jobs=None)  # the machine that loads the model has other processors
    if options.model is not None:
        save_model(model, options.model, target=options.target, force=options.force)
    if not options.quiet:
        names = chunks.names or ()
        say(f"rows       {chunks.rows}, read in chunks")
        say(f"columns    {', '.join(names)}")
        say(f"kernel     {model.kernel}")
        say(f"bandwidth  {', '.join(f'{name} {h:.6g}' for name, h in zip(names, model.bandwidth_, strict=True))}")
        say(f"           {model.bandwidth_note_}")
        if hasattr(model, "loo_error_"):
            say(f"leave-one-out mean squared error  {model.loo_error_:.6g} (of the rows searched on)")
        if options.model is not None:
            say(f"model      {options.model}, which refers to {options.data}")


def load_for_tables(options: argparse.Namespace, memory: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Return a model that predicts from columns of numbers, as the options want it to, and its header."""
    model = load_model(options.model, memory=memory)
    if not isinstance(model, KernelSmoother):
        raise TypeError(
            f"{options.model} holds a {type(model).__name__}, which predicts no tables here; load it in Python with "
            "load_model"
        )
    header = read_header(options.model, MODELS)
    if model.encoding_ is not None:
        pairs = zip(model.encoding_.categorical, model.encoding_.levels, strict=True)
        text = [repr(header["features"][i]) for i, levels in pairs if any(isinstance(level, str) for level in levels)]
        if text:
            raise TableError(
                f"{options.model} has categorical columns of text, {', '.join(text)}, and tables are read as numbers "
                "here; load it in Python with load_model, and predict a frame"
            )
    model.set_params(n_jobs=options.jobs, **({} if options.empty is None else {"empty": options.empty}))
    model.__dict__.pop("feature_names_in_", None)  # columns are chosen by their names here, and come without them
    return model, header


def predict_in_chunks(options: argparse.Namespace, memory: int | None, asked: Beside) -> None:
    """Predict some rows at a time, here or on a cluster."""
    if options.cluster is not None and not re.fullmatch(r"\w+://\S+", options.cluster):
        raise UsageError(f"--cluster must be the address of a Dask scheduler, tcp://host:port, got {options.cluster!r}")
    model, header = load_for_tables(options, memory)
    asked = asked.ready(model, options.model, header)
    rows, blocks = open_queries(options.data, options.format, memory, header["features"])
    target = header["target"] or "prediction"
    with predictor(model, options.cluster) as predict, progress_bar("predicting", options.quiet):
        predicted = _predicted(blocks, rows, lambda query: asked.columns(model, query, target, predict))
        first = next(predicted)
        with row_writer(options.out, list(first), rows, force=options.force) as write:
            write(np.column_stack(list(first.values())))
            for block in predicted:
                write(np.column_stack(list(block.values())))
    report_notes(asked, options.quiet)


def report_notes(asked: Beside, quiet: bool) -> None:
    """Say what is guaranteed of what was written."""
    for note in () if quiet else asked.notes:
        say(f"guarantee  {note}")


def _predicted(blocks: Iterator[Array], rows: int, answer: Answer) -> Iterator[Columns]:
    """Predict block by block, and report the rows."""
    start, listener = 0, current_progress()
    for block in blocks:
        before, size = start, len(block)
        if listener is None:
            yield answer(block)
        else:
            tell = listener
            with report_progress(lambda done, total: tell(before + size * done // total, rows)):  # noqa: B023
                predicted = answer(block)
            yield predicted
        start += size


def open_queries(name: str, format: str | None, memory: int | None, features: list[str]) -> tuple[int, Iterator[Array]]:
    """Return how many queries there are, and blocks of them; one block if memory is no matter."""
    if memory is None:
        query = read_table(name, format).numbers(features, QUERIES)
        return len(query), iter([query])
    chunks = open_table(name, format, memory, target=[], features=features)
    if not chunks.rows:
        raise TableError(f"{name} has no rows")
    return chunks.rows, (chunk.key for chunk in chunks)


def open_table(
    name: str, format: str | None, memory: int, *, target: str | list[str], features: list[str] | None
) -> Chunks:
    """Open a Parquet or `.npy` file, or a folder of Parquet files, in chunks."""
    path = Path(name)
    if name != "-" and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = "parquet" if path.is_dir() and format is None else table_format(name, format)
    if name == "-" or kind not in ("parquet", "npy"):
        raise UsageError(
            f"--memory reads Parquet and .npy files in chunks, and {name!r} is neither; convert it, or leave "
            "--memory out"
        )
    return (NpyChunks if kind == "npy" else ParquetChunks)(path, target=target, features=features, memory=memory)


@contextmanager
def predictor(model: Any, cluster: str | None) -> Iterator[Predict]:
    """Yield what predicts: the model itself, or the workers of a cluster."""
    if cluster is None:
        yield model.predict
        return
    if not isinstance(model, KernelRegressor) or model.encoding_ is not None:
        raise TypeError("--cluster is for regressors of numeric columns; predict here, without --cluster")
    if any(scale_of(model).ranked if hasattr(model, "key_") else ()) or limits_of(model) is not None:
        raise TypeError("--cluster knows neither ranks of columns nor clipped planes; predict here, without --cluster")
    dask = import_module("kernpool.dask")  # which loads Dask
    chunks = vars(model).get("chunks_")
    if chunks is None:
        chunks = open_chunks(model.key_, model.value_, model.key_weight_)
    with closing(dask.connect(cluster)) as client:

        def predict(query: Array) -> Array:
            pooled: Array = dask.pool(
                query,
                chunks,
                client=client,
                kernel=model.kernel,
                bandwidth=model.bandwidth_,
                composition=model.composition,
                degree=model._degree,
                empty=model.empty,
                tol=model.tol,
                algorithm=model.algorithm,
            )
            return pooled

        yield predict
