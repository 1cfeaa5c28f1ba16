"""Tables of the command line: reading them in memory or in chunks, choice of columns, inputs beside predictions.

Options describe how a table is written. Rows to fit and rows to predict are read here. An output that would replace
an input is refused before any work.
"""

import argparse
import codecs
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.terminal import UsageError, parse_memory, say_notes, split_names
from kernpool.data import MISSING, TIME_KINDS, Chunks, MixedTable, TableError, Times, in_words, unreadable
from kernpool.data.atomic_files import is_same_file
from kernpool.data.chunks.parquet import ParquetChunks
from kernpool.data.chunks.sources import NpyChunks
from kernpool.data.number_parsing import as_objects, is_blank, is_boolean, is_code, is_string, is_time, time_words
from kernpool.estimators.persistence import referred_files
from kernpool.tables import column_types
from kernpool.tables.file_formats import TextFormat, as_separator, input_format, read_table
from kernpool.tables.table import Advice, Table, or_a_value, table_format

FEATURES = Advice(
    "correct it, leave the column out with --features, or name it in --unordered if it holds codes",
    "leave it out with --features",
    "drop such rows with --missing drop, or leave the column out with --features",
)
TARGET = Advice("correct it, or name the column in --unordered if it holds classes", "name another one with --target")
IN_MEMORY = (
    "plot", "groups", "time", "summary", "smoothing", "ordered", "unordered", "periodic", "geographic", "keep", "proba",
    "na",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Training rows read from a table: features, target, clusters and times.

    Parameters
    ----------
    names : list of str
        Columns to predict from.
    features : column_types.Features
        Their cells; of a file that is read in chunks, ``X`` is `Chunks`, which have the target too.
    target : ndarray of shape (n,) or None
        Numbers, or labels; None for chunks.
    classes : bool
        Whether they are labels.
    groups, time : ndarray of shape (n,) or None
        Clusters; times of the rows, or other numbers by which they are in order.
    notes : list of str
        What was assumed in reading them.
    """

    names: list[str]
    features: column_types.Features
    target: NDArray[Any] | None
    classes: bool
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    notes: list[str]


def open_table(options: argparse.Namespace, name: str | None = None) -> Table:
    """Read the input table of a command, or the file with the given name."""
    form = form_of(options)
    source, format = (options.data, options.format) if name is None else (name, None)
    _refuse_text_options(options)
    return read_table(source, format, form)


def _refuse_text_options(options: argparse.Namespace) -> None:
    """Raise UsageError for options of text files, such as --sep, when no input is a text file."""
    format = input_format(options.data, options.format)
    if format in ("csv", "tsv") or getattr(options, "calibration", None) is not None:
        return
    for name in ("sep", "decimal", "encoding"):
        if getattr(options, name) is not None:
            said = f"--{name} says how text is written, and {options.data} is read as {format}"
            raise UsageError(f"{said}; drop --{name}")


def form_of(options: argparse.Namespace) -> TextFormat:
    """Return the format of text files that the options describe; raise UsageError if any are invalid or conflict."""
    try:
        separator = None if options.sep is None else as_separator(options.sep)
        if options.encoding is not None:
            codecs.lookup(options.encoding)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except LookupError:
        raise UsageError(
            f"--encoding {options.encoding} is unknown; known are utf-8, latin-1, cp1252, utf-16, gb18030, ..."
        ) from None
    if separator is not None and separator == options.decimal == ".":
        raise UsageError("--sep and --decimal are both '.', and must differ; leave one of them out")
    blanks = MISSING if options.na is None else frozenset(("", *(name.lower() for name in split_names(options.na))))
    return TextFormat(separator, options.decimal, options.encoding or "utf-8-sig", blanks)


def without_missing(table: Table, names: Sequence[str], options: argparse.Namespace) -> Table:
    """Return the table without rows that have missing cells in the named columns, unless these are errors.

    A note says how many rows are dropped.
    """
    if options.missing in (None, "raise"):
        return table
    missing = table.missing(names)
    if not missing.any():
        return table
    if missing.all():
        share = {name: float(table.missing([name]).mean()) for name in names}
        worst = max(share, key=lambda name: share[name])
        needed = "features" not in vars(options) or worst in (options.target, *_roles(options))
        raise TableError(
            f"{table.source}: all {table.rows} rows have missing cells in the columns that are used; column {worst!r} "
            f"misses {'all' if share[worst] == 1 else f'{share[worst]:.0%}'} of its cells: "
            f"{'fill some of them in' if needed else 'leave it out with --features'}"
        )
    kept = table.take(np.flatnonzero(~missing))
    kept.notes.append(f"{missing.sum()} of {table.rows} rows have missing cells and are left out")
    _note_marks(table, names)
    return kept


def _note_marks(table: Table, names: Sequence[str]) -> None:
    """Add a note to a table for each text, such as NA, that is read as a missing category."""
    for name in names:
        if column_types.kind_of(table, name) == "levels":
            cells = as_objects(table.columns[name])
            marks = Counter(cell for cell in cells if isinstance(cell, str) and cell and is_blank(cell, table.blanks))
            for mark, count in marks.items():
                table.notes.append(f"column {name!r} holds {mark!r} in {count} of these rows{or_a_value(mark)}")


def choice_of(options: argparse.Namespace) -> column_types.Choice:
    """Return the column types given by --unordered, --ordered and --dates; raise UsageError if they conflict."""
    unordered = [] if options.unordered is None else split_names(options.unordered)
    ordered: dict[str, list[str] | None] = {}
    for item in [] if options.ordered is None else split_names(options.ordered):
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
    dates = () if options.dates is None else split_names(options.dates) or None
    twice = sorted({*unordered, *ordered} & set(dates or ()))
    if twice:
        raise UsageError(f"{twice[0]!r} is named in --dates, and in --unordered or --ordered; leave one of them out")
    return column_types.Choice(unordered, ordered, dates)


def training_rows(options: argparse.Namespace) -> TrainingTable:
    """Read the features, the target, the clusters and the times of training rows; with --memory, open chunks."""
    memory = parse_memory(vars(options).get("memory"))
    if memory is not None:
        return _training_chunks(options, memory)
    choice = choice_of(options)
    table = open_table(options)
    names = choose_features(table, options)
    unused = sorted(choice.named() - {*names, options.target})
    table.need(unused)
    if unused:
        raise UsageError(
            f"{unused[0]!r} has a type (--unordered, --ordered or --dates) but is no feature; name it in --features too"
        )
    table = without_missing(table, [*names, options.target, *_roles(options)], options)
    features = column_types.features_of(table, names, _without(choice, options.target), FEATURES)
    if options.features is None:
        column_types.note_row_numbers(table, names, features.X)
    target, classes = _target(table, options.target, choice)
    group = None if options.groups is None else table.labels(options.groups)
    time = None if vars(options).get("time") is None else _times(table, options.time)
    if table.rows < 2:
        raise TableError(f"{table.source} has one row, and a curve needs two or more; add rows")
    say_notes(table.notes, options)
    return TrainingTable(names, features, target, classes, group, time, table.notes)


def _training_chunks(options: argparse.Namespace, memory: int) -> TrainingTable:
    chunks = open_in_chunks(options, memory, target=options.target, features=parse_features(options))
    names, kinds = list(chunks.names or ()), chunks.kinds or ()
    dates = [name for name, kind in zip(names, kinds, strict=False) if kind != "numeric"]
    asked = dates if options.dates == "" else split_names(options.dates or "")
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
    return TrainingTable(names, column_types.Features(chunks, [], [], dates), None, False, None, None, notes)


def open_in_chunks(
    options: argparse.Namespace, memory: int, *, target: str | list[str], features: list[str] | None
) -> Chunks:
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
    chunks = (NpyChunks if kind == "npy" else ParquetChunks)(path, target=target, features=features, memory=memory)
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    return chunks


def _without(choice: column_types.Choice, name: str) -> column_types.Choice:
    unordered = [other for other in choice.unordered if other != name]
    ordered = {other: levels for other, levels in choice.ordered.items() if other != name}
    return column_types.Choice(unordered, ordered, choice.dates and [other for other in choice.dates if other != name])


def _target(table: Table, name: str, choice: column_types.Choice) -> tuple[NDArray[Any], bool]:
    """Return the target column as an array, and whether it holds class labels instead of numbers."""
    if name in choice.ordered:
        raise UsageError(f"--ordered names the target {name!r}; classes have no order here, so name it in --unordered")
    kind = column_types.kind_of(table, name)
    if kind == "dates" and (choice.dates is None or name in choice.dates):
        return column_types.times_in(table, name).days(), False
    if kind == "dates" and name not in choice.unordered:
        raise TableError(f"{column_types.date_to_choose(table, name)}, or name another column with --target")
    if name not in choice.unordered and kind != "levels" and not is_boolean(table.columns[name]):
        numbers = column_types.moderate_numbers(table, name, TARGET)
        return numbers, False
    labels = column_types.levels_in(table, name)
    different = len(set(labels))
    if different == 1:
        raise TableError(f"{table.source}: column {name!r} has the one class {labels[0]!r}; a classifier needs two")
    if name not in choice.unordered and different > max(20, len(labels) // 2):
        raise TableError(
            f"{table.source}: column {name!r} holds {different} different texts in {len(labels)} rows, which is no "
            f"column of classes; name another one with --target, or say --unordered {name}"
        )
    return np.asarray(labels), True


def _times(table: Table, name: str) -> NDArray[Any]:
    """Return a column by which rows are in order, as numbers or days."""
    kind = column_types.kind_of(table, name)
    if kind == "levels":
        raise TableError(
            f"{table.source}: --time must name a column of numbers or of dates such as 2020-12-31, and column {name!r} "
            "holds other text, whose order is not known; name another one"
        )
    return column_types.times_in(table, name).days() if kind == "dates" else table.numbers([name])[:, 0]


def choose_features(table: Table, options: argparse.Namespace) -> list[str]:
    """Return the names of the feature columns: those of --features, or all columns without another role."""
    others = [options.target, *_roles(options)]
    table.need(others)
    features = parse_features(options) or table.others(*others)
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
    if options.features is None:
        return None
    features = split_names(options.features)
    if options.target in features:
        raise UsageError(f"--features names the target {options.target!r} too; a column cannot predict itself")
    if not features or len(set(features)) < len(features):
        raise UsageError(f"--features must name at least one column, each once; got {features}")
    return features


QUERIES = Advice(
    "correct it: the model predicts from numbers in this column",
    "convert it first: the model predicts from numbers in this column",
    "drop such rows with --missing drop: the model predicts from this column",
)


def query_rows(options: argparse.Namespace, model: Any, header: dict[str, Any]) -> tuple[Any, Table]:
    """Read the rows to predict: return the feature columns that the model needs, and the table with all columns.

    With --missing drop, rows with missing features are in neither.
    """
    table = open_table(options)
    features = header["features"]
    table.need(features)
    kept = [] if not options.keep else split_names(options.keep)
    table.need(kept)
    table = without_missing(table, features, options)
    return read_queries(table, model, header), table


def read_queries(table: Table, model: Any, header: dict[str, Any], advice: Advice = QUERIES) -> Any:
    """Return the feature columns of a table with the types that they had when the model was fitted."""
    unseen = vars(model).get("unseen", "raise")
    return column_types.queries_of(table, header["features"], model.encoding_, advice, unseen=unseen)


def query_chunks(options: argparse.Namespace, memory: int, features: list[str]) -> tuple[int, Iterator[Any]]:
    """Open the rows to predict in chunks: return their number, and an iterator over the features of each chunk."""
    chunks = open_in_chunks(options, memory, target=[], features=features)
    if chunks.kinds is None:
        return chunks.rows or 0, (chunk.key for chunk in chunks)
    columns = list(zip(features, chunks.kinds, strict=True))
    return chunks.rows or 0, (
        MixedTable(
            {
                name: Times(kind, cells) if kind in TIME_KINDS else cells
                for (name, kind), cells in zip(columns, chunk.key.T, strict=True)
            }
        )
        for chunk in chunks
    )


OUTPUTS = {"fit": {"model": "--model", "plot": "--plot"}}
OUTPUTS |= {command: {"out": "--out"} for command in ("predict", "explore")}
INPUTS = {"data": "DATA", "model": "MODEL", "calibration": "--calibration"}


def refuse_inputs_as_outputs(options: argparse.Namespace) -> None:
    """Raise UsageError if an output of a command would replace one of its inputs.

    It may be under another spelling or within a folder.

    Parameters
    ----------
    options : argparse.Namespace
        Options of any command.

    Raises
    ------
    UsageError
        If an output is the table, the calibration table or the model; a file in a folder of tables; a file of the
        model, or one that holds its rows.
    """
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


def beside_inputs(columns: dict[str, Any], table: Table, target: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the input columns that --keep copies, followed by the columns of predictions.

    If one of these inputs has the name Y of the target, the predictions are renamed Y_predicted.
    """
    if options.keep is None:
        return columns
    as_text = not options.json and (options.out == "-" or table_format(options.out) in ("csv", "tsv"))
    kept = {name: _cells(table, name, as_text) for name in split_names(options.keep) or table.names}
    if target in kept:
        columns = {f"{target}_predicted{name.removeprefix(target)}": column for name, column in columns.items()}
    twice = sorted(set(kept) & set(columns))
    if twice:
        raise UsageError(f"--keep has a column {twice[0]!r}, as predictions do; name the others, as in --keep A,B")
    return kept | columns


def _cells(table: Table, name: str, as_text: bool) -> Any:
    """Return the cells of an input column that is copied to the output: numbers, or text as written.

    Text that is numbers becomes numbers if the output has types, or if they have decimal commas.
    """
    cells = table.columns[name]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells
    if is_time(cells):
        return time_words(cells)
    found: list[Any] = [
        cell if isinstance(cell, str | int | float | type(None)) else str(cell) for cell in as_objects(cells)
    ]
    if not is_string(cells) or unreadable(cells) is not None or (as_text and not any("," in cell for cell in found)):
        return found
    if any(map(is_code, found)):
        return found
    try:
        read, sign = table.floats(name), table.decimal or "."
    except TableError:  # 1,234 is ambiguous, and copied as it is
        return found
    if not np.isfinite(read).all() or (as_text and sign == "."):
        return found
    return read.astype(np.int64) if all(cell.lstrip("+-").isdecimal() for cell in found) else read


def records_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert columns to a list of one dictionary per row."""
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
