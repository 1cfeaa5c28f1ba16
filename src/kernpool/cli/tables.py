"""Tables of the command line: reading, choice of columns, cells copied to the output, and results as JSON.

Options describe how a table is written. Rows to fit and rows to predict are read here. An output that would replace
an input is refused before any work.
"""

import argparse
import codecs
import dataclasses
import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.terminal import UsageError, json_line, parse_features, progress_bar, say, split_names
from kernpool.data.array_validation import TableError
from kernpool.data.atomic_files import is_same_file
from kernpool.data.model_format import ModelFileError, files_of, read_header, referred_files
from kernpool.data.number_parsing import (
    MISSING,
    as_objects,
    is_blank,
    is_boolean,
    is_code,
    is_string,
    is_time,
    time_words,
    unreadable,
)
from kernpool.tables import column_types
from kernpool.tables.file_formats import input_format, read_table
from kernpool.tables.table import Advice, Table, or_a_value, table_format
from kernpool.tables.text_files import TextFormat, as_separator

FEATURES = Advice(
    "correct it, leave the column out with --features, or name it in --unordered if it holds codes",
    "leave it out with --features",
    "drop such rows with --missing drop, or leave the column out with --features",
)
TARGET = Advice("correct it, or name the column in --unordered if it holds classes", "name another one with --target")
IN_MEMORY = ("smoothing", "ordered", "unordered", "keep", "proba", "na")


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Training rows read from a table: features, target and clusters.

    Parameters
    ----------
    names : list of str
        Columns to predict from.
    features : column_types.Features
        Their cells.
    target : ndarray of shape (n,)
        Numbers, or labels.
    classes : bool
        Whether they are labels.
    groups : ndarray of shape (n,) or None
        Clusters.
    notes : list of str
        What was assumed in reading them.
    """

    names: list[str]
    features: column_types.Features
    target: NDArray[Any]
    classes: bool
    groups: NDArray[Any] | None
    notes: list[str]


def open_table(options: argparse.Namespace, name: str | None = None) -> Table:
    """Read the input table of a command, or the file with the given name."""
    form = form_of(options)
    source, format = (options.data, options.format) if name is None else (name, None)
    _refuse_text_options(options)
    with progress_bar("reading", options.quiet, unit="lines"):
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
    blanks = MISSING if options.na is None else frozenset(("", *(name.lower() for name in listed(options.na))))
    return TextFormat(separator, options.decimal, options.encoding, blanks)


def without_missing(table: Table, names: Sequence[str], options: argparse.Namespace) -> Table:
    """Return the table; with --missing drop, without rows that have missing cells in the named columns.

    A note says how many rows are dropped.
    """
    if options.missing != "drop":
        return table
    missing = table.missing(names)
    if not missing.any():
        return table
    if missing.all():
        share = {name: float(table.missing([name]).mean()) for name in names}
        worst = max(share, key=lambda name: share[name])
        raise TableError(
            f"{table.source}: all {table.rows} rows have missing cells in the columns that are used; column {worst!r} "
            f"misses {'all' if share[worst] == 1 else f'{share[worst]:.0%}'} of its cells: leave it out with --features"
        )
    kept = table.take(np.flatnonzero(~missing))
    kept.notes.append(f"{missing.sum()} of {table.rows} rows have missing cells and are left out")
    for name in names:
        if column_types.kind_of(kept, name) == "levels":
            cells = as_objects(table.columns[name])
            marks = Counter(cell for cell in cells if isinstance(cell, str) and cell and is_blank(cell, table.blanks))
            for mark, count in marks.items():
                kept.notes.append(f"column {name!r} holds {mark!r} in {count} of these rows{or_a_value(mark)}")
    return kept


def say_notes(table: Table | TrainingTable, options: argparse.Namespace) -> None:
    """Print the notes on how a table was read, unless --quiet is set or the JSON result contains the notes."""
    for text in table.notes if not (options.quiet or options.json) else ():
        say(f"note       {text}")


def say_notes_of_records(table: Table, options: argparse.Namespace) -> None:
    """Print the notes on how a table was read as JSON lines on standard error, unless --quiet is set.

    It is for results that are records without notes.
    """
    for text in () if options.quiet else table.notes:
        say(json_line("note", text, options.command))


def listed(text: str) -> list[str]:
    """Split the value of an option into names at commas; a name that contains a comma is quoted."""
    return split_names(text)


def choice_of(options: argparse.Namespace) -> column_types.Choice:
    """Return the column types given by --unordered, --ordered and --dates; raise UsageError if they conflict."""
    unordered = [] if options.unordered is None else listed(options.unordered)
    ordered: dict[str, list[str] | None] = {}
    for item in [] if options.ordered is None else listed(options.ordered):
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
    dates = () if options.dates is None else listed(options.dates) or None
    twice = sorted({*unordered, *ordered} & set(dates or ()))
    if twice:
        raise UsageError(f"{twice[0]!r} is named in --dates, and in --unordered or --ordered; leave one of them out")
    return column_types.Choice(unordered, ordered, dates)


def training_rows(options: argparse.Namespace) -> TrainingTable:
    """Read the features, the target and the clusters of the training rows from the input table."""
    choice = choice_of(options)
    table = open_table(options)
    names = choose_features(table, options.target, options.features, options.groups)
    unused = sorted(choice.named() - {*names, options.target})
    table.need(unused)
    if unused:
        raise UsageError(
            f"{unused[0]!r} has a type (--unordered, --ordered or --dates) but is no feature; name it in --features too"
        )
    groups = [] if options.groups is None else [options.groups]
    table = without_missing(table, [*names, options.target, *groups], options)
    features = column_types.features_of(table, names, _without(choice, options.target), FEATURES)
    if options.features is None:
        column_types.note_row_numbers(table, names, features.X)
    target, classes = _target(table, options.target, choice)
    group = table.labels(options.groups) if groups else None
    if table.rows < 2:
        raise TableError(f"{table.source} has one row, and a curve needs two or more; add rows")
    say_notes(table, options)
    return TrainingTable(names, features, target, classes, group, table.notes)


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
        column_types.note_doubts(table, name)
        return numbers, False
    if name not in choice.unordered:
        column_types.refuse_measures(table, name)
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


def choose_features(table: Table, target: str, listed: str | None, groups: str | None = None) -> list[str]:
    """Return the names of the feature columns: those of --features, or all columns without another role."""
    table.need([target])
    features = parse_features(listed, target) or table.others(target, groups)
    if not features:
        others = repr(target) if groups is None else f"{target!r} and {groups!r}"
        raise UsageError(f"--features must name at least one column, and {table.source} has none besides {others}")
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
    table.need(header["features"])
    kept = [] if not options.keep else listed(options.keep)
    table.need(kept)
    table = without_missing(table, header["features"], options)
    return read_queries(table, model, header), table


def read_queries(table: Table, model: Any, header: dict[str, Any], advice: Advice = QUERIES) -> Any:
    """Return the feature columns of a table with the types that they had when the model was fitted."""
    unseen = vars(model).get("unseen", "raise")
    return column_types.queries_of(table, header["features"], model.encoding_, advice, unseen=unseen)


def beside_inputs(columns: dict[str, Any], table: Table, target: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the input columns that --keep copies, followed by the columns of predictions.

    If one of these inputs has the name Y of the target, the predictions are renamed Y_predicted.
    """
    if options.keep is None:
        return columns
    as_text = not options.json and (options.out == "-" or table_format(options.out) in ("csv", "tsv"))
    kept = {name: _cells(table, name, as_text) for name in listed(options.keep) or table.names}
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
        read, sign = table.floats(name), table.sign(name)
    except TableError:  # 1,234 is ambiguous, and copied as it is
        return found
    if not np.isfinite(read).all() or (as_text and sign == "."):
        return found
    return read.astype(np.int64) if all(cell.lstrip("+-").isdecimal() for cell in found) else read


def records_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert columns to a list of one dictionary per row."""
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain_json(what: Any) -> Any:
    """Convert a result to values that JSON can hold: arrays to lists, NaN to null, infinity to text.

    The text of infinity is as for ``--bandwidth``.

    Examples
    --------
    >>> plain_json({"h": np.array([0.5, np.nan, np.inf])})
    {'h': [0.5, None, 'inf']}
    """
    if dataclasses.is_dataclass(what) and not isinstance(what, type):
        return {field.name: plain_json(getattr(what, field.name)) for field in dataclasses.fields(what)}
    if isinstance(what, dict):
        return {str(name): plain_json(value) for name, value in what.items()}
    if isinstance(what, list | tuple):
        return [plain_json(value) for value in what]
    if hasattr(what, "tolist"):
        return plain_json(what.tolist())
    if isinstance(what, float):
        return what if math.isfinite(what) else None if math.isnan(what) else str(what)
    return what if what is None or isinstance(what, str | int | bool) else str(what)


OUTPUTS = {"fit": {"model": "--model", "plot": "--plot"}, "predict": {"out": "--out"}, "explore": {"out": "--out"}}
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
        model, or one that holds its rows. If the output is an existing model folder, only the files of the old model
        are replaced; the rows that it refers to stay, and may be an input.
    """
    outputs = OUTPUTS.get(options.command, {})
    inputs = {name: said for name, said in INPUTS.items() if name not in outputs and vars(options).get(name)}
    for output, option in outputs.items():
        name = vars(options)[output]
        if name in (None, "-") or not Path(name).exists():
            continue
        replaced = [Path(name), *_model_files(Path(name))] if output == "model" else [Path(name)]
        for source, said in inputs.items():
            read = Path(vars(options)[source])
            if any(_is_part(file, read) for file in replaced):
                raise UsageError(
                    f"{option} {name} would replace what {said} {read} is read from; write to another file or folder"
                )


def _is_part(output: Path, source: Path) -> bool:
    files = _model_files(source)
    rows = referred_files(read_header(source)) if files else []
    if any(is_same_file(output, file) for file in (source, *files, *rows)):
        return True
    return not files and source.is_dir() and source.resolve() in output.resolve().parents


def _model_files(folder: Path) -> list[Path]:
    """Return the paths of the files of a saved model; an empty list for other folders."""
    with suppress(ModelFileError):
        return files_of(folder)
    return []


def print_json(what: Any) -> None:
    """Print a result as JSON on standard output; NaN becomes null."""
    print(json.dumps(plain_json(what), indent=2, ensure_ascii=False))
