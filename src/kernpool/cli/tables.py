"""Tables of the command line: reading them in memory or in chunks, choice of columns, inputs beside predictions.

Options describe how a table is written. Rows to fit and rows to predict are read here. An output that would replace
an input is refused before any work.
"""

import argparse
import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli import column_types
from kernpool.cli.table_files import MISSING, Table, as_separator, import_pandas, input_format, read_table, table_format
from kernpool.cli.terminal import UsageError, say_notes
from kernpool.data import TIME_KINDS, Chunks, MixedTable, TableError, Times, in_words
from kernpool.data.atomic_files import is_same_file
from kernpool.data.chunks.parquet import ParquetChunks
from kernpool.data.chunks.sources import NpyChunks
from kernpool.data.dates import times_of
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.persistence import referred_files

IN_MEMORY = (
    "plot", "groups", "time", "summary", "smoothing", "ordered", "unordered", "periodic", "geographic", "keep", "proba",
    "na",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Training rows read from a table: features, target, clusters and times."""

    names: list[str]
    X: Any  # DataFrame or Chunks, which have the target too
    unordered: list[str]
    ordered: list[str]
    target: NDArray[Any] | None  # None for chunks
    classes: bool  # whether the target holds labels
    groups: NDArray[Any] | None
    time: NDArray[Any] | None  # or other numbers by which rows are in order
    notes: list[str]  # what was assumed in reading them


def open_table(options: argparse.Namespace, name: str | None = None) -> Table:
    """Read the input table of a command, or the file with the given name."""
    how = text_format(options)
    _refuse_text_options(options)
    return read_table(options.data, options.format, how) if name is None else read_table(name, None, how)


def _refuse_text_options(options: argparse.Namespace) -> None:
    """Raise UsageError for options of text files, such as --sep, when no input is a text file."""
    format = input_format(options.data, options.format)
    if format in ("csv", "tsv") or getattr(options, "calibration", None) is not None:
        return
    for name in ("sep", "decimal", "encoding"):
        if getattr(options, name) is not None:
            said = f"--{name} says how text is written, and {options.data} is read as {format}"
            raise UsageError(f"{said}; drop --{name}")


def text_format(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` for the options; raise UsageError if any are invalid or conflict."""
    how: dict[str, Any] = {"encoding": options.encoding or "utf-8-sig"}
    try:
        codecs.lookup(how["encoding"])
        if options.sep is not None:
            how["sep"] = as_separator(options.sep)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except LookupError:
        raise UsageError(
            f"--encoding {options.encoding} is unknown; known are utf-8, latin-1, cp1252, utf-16, gb18030, ..."
        ) from None
    if options.decimal is not None:
        if how.get("sep") == options.decimal:
            raise UsageError(f"--sep and --decimal are both {options.decimal!r}, and must differ")
        how |= {"decimal": options.decimal, "thousands": "." if options.decimal == "," else ","}
    if options.na is None:
        return how | {"na_values": [*MISSING]}
    return how | {"na_values": ["", *options.na], "keep_default_na": False}


def without_missing(table: Table, names: Sequence[str], options: argparse.Namespace) -> Table:
    """Return the table without rows that have missing cells in the named columns, unless these are errors."""
    column_types.need(table, names)
    missing = table.frame[[*names]].isna()
    if options.missing in (None, "raise") or not missing.any(axis=None):
        return table
    left = missing.any(axis=1)
    if left.all():
        worst = missing.mean().idxmax()
        raise TableError(
            f"{table.source}: all {len(left)} rows have missing cells in the columns that are used; column {worst!r} "
            f"misses {missing[worst].mean():.0%} of its cells: fill some of them in, or leave it out with --features"
        )
    table.notes.append(f"{left.sum()} of {len(left)} rows have missing cells and are left out")
    return replace(table, frame=table.frame[~left])


def choice_of(options: argparse.Namespace) -> column_types.Choice:
    """Return the column types given by --unordered, --ordered and --dates; raise UsageError if they conflict."""
    unordered = options.unordered or []
    ordered: dict[str, list[str] | None] = {}
    for item in options.ordered or ():
        name, declared, levels = item.partition("=")
        order = [level.strip() for level in levels.split(":")] if declared else None
        if order is not None and (len(set(order)) < len(order) or len(order) < 2 or "" in order):
            raise UsageError(
                f"--ordered {name}= must list two levels or more, each once, as small:medium:large; got {levels!r}"
            )
        ordered[name.strip()] = order
    both = sorted(set(unordered) & set(ordered))
    if both:
        raise UsageError(f"--unordered and --ordered both name {both[0]!r}; name it in only one of them")
    dates = () if options.dates is None else options.dates or None
    twice = sorted({*unordered, *ordered} & set(dates or ()))
    if twice:
        raise UsageError(f"{twice[0]!r} is named in --dates, and in --unordered or --ordered; leave one of them out")
    return column_types.Choice(unordered, ordered, dates)


def training_rows(options: argparse.Namespace) -> TrainingTable:
    """Read the features, the target, the clusters and the times of training rows; with --memory, open chunks."""
    if vars(options).get("memory") is not None:
        return _training_chunks(options)
    choice = choice_of(options)
    table = open_table(options)
    names = choose_features(table, options)
    unused = sorted({*choice.unordered, *choice.ordered, *(choice.dates or ())} - {*names, options.target})
    column_types.need(table, unused)
    if unused:
        raise UsageError(
            f"{unused[0]!r} has a type (--unordered, --ordered or --dates) but is no feature; name it in --features too"
        )
    used = [*names, options.target, *_roles(options)]
    table = without_missing(table, used, options)
    column_types.refuse_missing(table, names, ", or leave the column out with --features")
    column_types.refuse_missing(table, used[len(names) :], "")
    X = column_types.features_of(table, names, choice)
    target, classes = _target(table, options.target, choice)
    group = None if options.groups is None else np.asarray(column_types.levels_of(table, options.groups))
    time = None if vars(options).get("time") is None else _times(table, options.time)
    if len(table.frame) < 2:
        raise TableError(f"{table.source} has one row, and a curve needs two or more; add rows")
    say_notes(table.notes, options)
    unordered, ordered = ([name for name in names if name in some] for some in (choice.unordered, choice.ordered))
    return TrainingTable(names, X, unordered, ordered, target, classes, group, time, table.notes)


def _training_chunks(options: argparse.Namespace) -> TrainingTable:
    chunks = open_in_chunks(options, target=options.target, features=parse_features(options))
    names, kinds = list(chunks.names or ()), chunks.kinds or ()
    dates = [name for name, kind in zip(names, kinds, strict=False) if kind != "numeric"]
    asked = dates if options.dates == [] else options.dates or []
    for name in dates:
        if name not in asked:
            raise TableError(
                f"{options.data}: column {name!r} holds dates; say --dates {name} to read it as days since "
                "1970-01-01, or leave it out with --features"
            )
    for name in asked:
        if name not in dates:
            raise TableError(f"{options.data}: --dates names {name!r}, which is no column of dates to predict from")
    left, notes = chunks.left_out, []
    if left:
        notes.append(f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise")
    if isinstance(chunks, ParquetChunks) and chunks.is_boolean(options.target):
        notes.append(
            f"column {options.target!r} holds booleans, whose mean is the probability of true; classes need no --memory"
        )
    say_notes(notes, options)
    return TrainingTable(names, chunks, [], [], None, False, None, None, notes)


def open_in_chunks(options: argparse.Namespace, *, target: str | list[str], features: list[str] | None) -> Chunks:
    """Open the input table in chunks: a Parquet or `.npy` file, or a folder of Parquet files."""
    needing = [name for name in IN_MEMORY if vars(options).get(name) not in (None, False)]
    needing += ["missing drop"] * (options.missing == "drop")
    if needing:
        raise UsageError(f"--{needing[0]} needs the rows in memory; leave --memory out, or take a sample of the rows")
    _refuse_text_options(options)
    path = Path(options.data)
    if options.data != "-" and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = "parquet" if path.is_dir() and options.format is None else input_format(options.data, options.format)
    if options.data == "-" or kind not in ("parquet", "npy"):
        raise UsageError(
            f"--memory reads Parquet and .npy files in chunks, and {options.data!r} is neither; convert it, or leave "
            "--memory out"
        )
    chunks = (NpyChunks if kind == "npy" else ParquetChunks)(
        path, target=target, features=features, memory=options.memory
    )
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    return chunks


def _target(table: Table, name: str, choice: column_types.Choice) -> tuple[NDArray[Any], bool]:
    """Return the target column as an array, and whether it holds class labels instead of numbers."""
    if name in choice.ordered:
        raise UsageError(f"--ordered names the target {name!r}; classes have no order here, so name it in --unordered")
    kind, named = column_types.kind_of(table, name), name in choice.unordered
    if kind == "dates" and not named:
        if choice.has_date(name):
            return _days(table, name), False
        raise TableError(f"{column_types.date_to_choose(table, name)}, or name another column with --target")
    if table.frame[name].dtype == bool and not named:
        return table.frame[name].to_numpy(), True
    if not named and kind != "levels":
        remedy = "correct it, or name the column in --unordered if it holds classes, or another one with --target"
        return column_types.numbers_of(table, name, remedy), False
    labels = column_types.levels_of(table, name)
    different = len(set(labels))
    if different == 1:
        raise TableError(f"{table.source}: column {name!r} has the one class {labels[0]!r}; a classifier needs two")
    if not named and different > max(20, len(labels) // 2):
        raise TableError(
            f"{table.source}: column {name!r} holds {different} different texts in {len(labels)} rows, which is no "
            f"column of classes; name another one with --target, or say --unordered {name}"
        )
    return np.asarray(labels), True


def _days(table: Table, name: str) -> NDArray[Any]:
    times = times_of(name, column_types.days_of(table, name))
    assert times is not None
    return times.days()


def _times(table: Table, name: str) -> NDArray[Any]:
    """Return a column by which rows are in order, as numbers or days."""
    kind = column_types.kind_of(table, name)
    if kind == "levels":
        raise TableError(
            f"{table.source}: --time must name a column of numbers or of dates such as 2020-12-31, and column {name!r} "
            "holds other text, whose order is not known; name another one"
        )
    return _days(table, name) if kind == "dates" else column_types.numbers_of(table, name)


def choose_features(table: Table, options: argparse.Namespace) -> list[str]:
    """Return the names of the feature columns: those of --features, or all columns without another role."""
    others = [options.target, *_roles(options)]
    column_types.need(table, others)
    features = parse_features(options)
    if features is None:
        left = [name for name in table.labels if name not in others]
        if left:
            table.notes.append(
                f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise"
            )
        features = [name for name in table.frame.columns if name not in (*others, *left)]
    column_types.need(table, features)
    if not features:
        known = " and ".join(map(repr, others))
        raise UsageError(f"--features must name at least one column, and {table.source} has none besides {known}")
    return features


def _roles(options: argparse.Namespace) -> list[str]:
    """Return the columns of clusters and times, which are no features unless they are named as such."""
    return [name for name in (vars(options).get("groups"), vars(options).get("time")) if name is not None]


def parse_features(options: argparse.Namespace) -> list[str] | None:
    """Return the columns that --features names, or None, which stands for all without another role."""
    for option, meaning in (("groups", "clusters"), ("time", "times")):
        if vars(options).get(option) == options.target:
            raise UsageError(f"--{option} names the target {options.target!r}; name the column of the {meaning}")
    features: list[str] | None = options.features
    if features is None:
        return None
    if options.target in features:
        raise UsageError(f"--features names the target {options.target!r} too; a column cannot predict itself")
    if not features or len(set(features)) < len(features):
        raise UsageError(f"--features must name at least one column, each once; got {features}")
    return features


def query_rows(options: argparse.Namespace, model: KernelSmoother, header: dict[str, Any]) -> tuple[Any, Table]:
    """Read the rows to predict: return the feature columns that the model needs, and the table with all columns."""
    table = open_table(options)
    column_types.need(table, options.keep or ())
    table = without_missing(table, header["features"], options)
    return column_types.queries_of(table, header["features"], model.encoding_), table


def query_chunks(options: argparse.Namespace, features: list[str]) -> tuple[int, Iterator[Any]]:
    """Open the rows to predict in chunks: return their number, and an iterator over the features of each chunk."""
    chunks = open_in_chunks(options, target=[], features=features)
    columns = list(zip(features, chunks.kinds or ["numeric"] * len(features), strict=True))
    return chunks.rows or 0, (
        MixedTable(
            {
                name: Times(kind, cells) if kind in TIME_KINDS else cells
                for (name, kind), cells in zip(columns, chunk.key.T, strict=True)
            }
        )
        for chunk in chunks
    )


def calibration_rows(options: argparse.Namespace, model: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Read the table of calibration rows, in the format that the options describe."""
    target = header["target"]
    if target is None:
        raise TableError(
            f"{options.model} has no name of its target column, which --calibration needs; save the model with target="
        )
    table = without_missing(open_table(options, options.calibration), [*header["features"], target], options)
    X = column_types.queries_of(table, header["features"], model.encoding_)
    column_types.refuse_missing(table, [target], "")
    y = column_types.numbers_of(table, target) if options.sets is None else _classes(table, target, model.classes_)
    notes = [f"{table.source}: {note}" for note in table.notes]
    say_notes(notes, options, records=True)
    return {"X_calibration": X, "y_calibration": y}


def _classes(table: Table, name: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return a column of a table as class labels, with the type and spelling of the model's class labels."""
    known = classes.tolist()
    labels = column_types.levels_of(table, name, known)
    new = table.frame[name].map(lambda _: False)
    new[:] = [label not in known for label in labels]
    column_types.refuse_cells(
        table, name, new, "which is no class of the model", f"its classes are {', '.join(map(str, known))}"
    )
    return np.array(labels, dtype=classes.dtype)


OUTPUTS = {"fit": {"model": "--model", "plot": "--plot"}}
OUTPUTS |= {command: {"out": "--out"} for command in ("predict", "explore")}
INPUTS = {"data": "DATA", "model": "MODEL", "calibration": "--calibration"}


def refuse_inputs_as_outputs(options: argparse.Namespace) -> None:
    """Raise UsageError if an output of a command would replace one of its inputs."""
    # it may be under another spelling or within a folder
    outputs = OUTPUTS.get(options.command, {})
    inputs = {name: said for name, said in INPUTS.items() if name not in outputs and vars(options).get(name)}
    for output, option in outputs.items():
        name = vars(options)[output]
        if name in (None, "-") or not Path(name).exists():
            continue
        for source, said in inputs.items():
            read = Path(vars(options)[source])
            if _is_replaced(read, Path(name)):
                raise UsageError(
                    f"{option} {name} would replace what {said} {read} is read from; write to another file or folder"
                )


def _is_replaced(source: Path, output: Path) -> bool:
    """Return whether an output is the source, a file that it refers to, or in its folder of tables."""
    if source.is_dir() and source.resolve() in output.resolve().parents:
        return True
    return any(is_same_file(output, part) for part in [source, *referred_files(source)])


def beside_inputs(columns: dict[str, Any], table: Table, target: str, options: argparse.Namespace) -> tuple[Any, int]:
    """Return a frame of the input columns that --keep copies and of the predictions, and how many are copied."""
    kept: dict[str, Any] = {}
    if options.keep is not None:
        as_text = not options.json and table_format(options.out) in ("csv", "tsv")
        kept = {name: _kept(table, name, as_text) for name in options.keep or table.frame.columns}
    if target in kept:
        columns = {f"{target}_predicted{name.removeprefix(target)}": column for name, column in columns.items()}
    twice = sorted(set(kept) & set(columns))
    if twice:
        raise UsageError(f"--keep has a column {twice[0]!r}, as predictions do; name the others, as in --keep A,B")
    return import_pandas().DataFrame(kept | columns), len(kept)


def _kept(table: Table, name: str, as_text: bool) -> Any:
    """Return the cells of an input column that is copied to the output: as written, or as numbers (JSON, Parquet)."""
    cells, decimal = table.as_written(name), (table.how or {}).get("decimal", ".")
    if table.how is not None and not (as_text and decimal == "."):
        points = cells.str.replace(".", "").str.replace(",", ".") if decimal == "," else cells
        read = column_types.without_codes(points)
        cells = cells if read.dtype.kind not in "fiub" else read
    return cells.reset_index(drop=True)
