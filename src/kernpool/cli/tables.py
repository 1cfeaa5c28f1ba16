"""Tables of the command line: reading them in memory or in chunks, choice of columns, inputs beside predictions.

Options describe how a table is written. Rows to fit and rows to predict are read here. An output that would replace
an input is refused before any work.
"""

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray
from kernpool.cli.table_files import MISSING, Table, input_format, read_table, table_format, without_codes
from kernpool.cli.terminal import given, refuse, say_notes
from kernpool.data import COLUMN_OPTIONS, TIME_KINDS, Chunks, MixedTable, TableError, Times, in_words
from kernpool.data.atomic_files import is_same_file
from kernpool.data.chunks.parquet import ParquetChunks
from kernpool.data.chunks.sources import NpyChunks
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.persistence import referred_files

IN_MEMORY = (
    "stack", "plot", "groups", "time", "smoothing", *COLUMN_OPTIONS, "keep", "proba", "na",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Training rows read from a table: features, target, clusters and times."""

    names: list[str]
    X: Any  # DataFrame or Chunks, which have the target too
    types: dict[str, list[str] | None]  # columns that are "unordered" and "ordered" categories
    target: AnyArray | None  # None for chunks
    classes: bool  # whether the target holds labels
    roles: dict[str, AnyArray]  # "groups", and "time" or other numbers by which rows are in order
    notes: list[str]  # what was assumed in reading them


def open_table(options: argparse.Namespace, name: str | None = None) -> Table:
    """Read the input table of a command, or the file with the given name."""
    how = text_format(options)
    return read_table(options.data, options.format, how) if name is None else read_table(name, None, how)


def text_format(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` for the options; raise UsageError if they conflict."""
    format = input_format(options.data, options.format)
    how = given(options, "sep", "decimal", "encoding")
    refuse(
        *(
            (
                format not in ("csv", "tsv") and vars(options).get("calibration") is None,
                f"--{name} says how text is written, and {options.data} is read as {format}; drop --{name}",
            )
            for name in how
        ),
        (
            "sep" in how and options.sep == options.decimal,
            f"--sep and --decimal are both {options.decimal!r}, and must differ",
        ),
    )
    how = {"encoding": "utf-8-sig", "na_values": [*MISSING]} | how
    if options.decimal is not None:
        how["thousands"] = "." if options.decimal == "," else ","
    if options.na is not None:
        how |= {"na_values": ["", *options.na], "keep_default_na": False}
    return how


def complete_rows(
    table: Table, names: Sequence[str], options: argparse.Namespace, features: Collection[str] = ()
) -> Table:
    """Return the table without rows that have missing cells in the named columns; without --missing drop, refuse.

    Columns in `features` may be left out instead.
    """
    table.need(names)
    missing = table.frame[[*names]].isna()
    if options.missing != "drop":
        for name in names:
            leave_out = ", or leave the column out with --features" * (name in features)
            remedy = f"drop such rows with --missing drop{leave_out}"
            table.refuse_cells(name, missing[name], "a missing cell", remedy)
        return table
    left = missing.any(axis=1)
    if left.all():
        worst = missing.mean().idxmax()
        raise TableError(
            f"{table.source}: all {len(left)} rows have missing cells in the columns that are used; column {worst!r} "
            f"misses {missing[worst].mean():.0%} of its cells: fill some of them in, or leave it out with --features"
        )
    if left.any():
        table.notes.append(f"{left.sum()} of {len(left)} rows have missing cells and are left out")
    return replace(table, frame=table.frame[~left])


def chosen_types(options: argparse.Namespace) -> dict[str, Any]:
    """Return the column types given by --unordered, --ordered and --dates; raise UsageError if they conflict."""
    unordered = options.unordered or []
    ordered: dict[str, list[str] | None] = {}
    for name, levels in (options.ordered or {}).items():
        order = [level.strip() for level in (levels or "").split(":")]
        refuse(
            (
                levels is not None and (len({*order} - {""}) < len(order) or len(order) < 2),
                f"--ordered {name}= must list two levels or more, each once, as small:medium:large; got {levels!r}",
            )
        )
        ordered[name] = None if levels is None else order
    dates = () if options.dates is None else options.dates or None
    both = ", ".join(repr(name) for name in unordered if name in ordered)
    twice = ", ".join(repr(name) for name in dates or () if name in ordered or name in unordered)
    refuse(
        (options.target in ordered, f"--ordered names the target {options.target!r}; name its classes in --unordered"),
        (both, f"--unordered and --ordered both name {both}; name it in only one of them"),
        (twice, f"{twice} is named in --dates, and in --unordered or --ordered; leave one of them out"),
    )
    return {"unordered": unordered, "ordered": ordered, "dates": dates}


def training_rows(options: argparse.Namespace) -> TrainingTable:
    """Read the features, the target, the clusters and the times of training rows; with --memory, open chunks."""
    if vars(options).get("memory") is not None:
        return _training_chunks(options)
    types = chosen_types(options)
    table = replace(open_table(options), **types)
    columns = given(options, "groups", "time")
    names = choose_features(table, options, columns.values())
    unused = sorted({*table.unordered, *table.ordered, *(table.dates or ())} - {*names, options.target})
    table.need(unused)
    what = "has a type (--unordered, --ordered or --dates) but is no feature; name it in --features too"
    refuse((unused, f"{', '.join(map(repr, unused))} {what}"))
    table = complete_rows(table, [*names, options.target, *columns.values()], options, names)
    X = table.features(names)
    target, classes = _target(table, options.target)
    roles: dict[str, AnyArray] = {}
    if "groups" in columns:
        roles["groups"] = np.asarray(table.levels(options.groups))
    if "time" in columns:
        remedy = "--time must name a column of numbers or of dates such as 2020-12-31"
        is_date = replace(table, unordered=(), ordered={}, dates=None).kind(options.time) == "dates"  # by its cells
        roles["time"] = table.days(options.time) if is_date else table.numbers(options.time, remedy)
    if len(table.frame) < 2:
        raise TableError(f"{table.source} has one row, and a curve needs two or more; add rows")
    say_notes(table.notes, options)
    categories = {kind: [name for name in names if name in types[kind]] or None for kind in ("unordered", "ordered")}
    return TrainingTable(names, X, categories, target, classes, roles, table.notes)


def _training_chunks(options: argparse.Namespace) -> TrainingTable:
    chunks = open_in_chunks(options, target=options.target, features=parse_features(options))
    names, kinds = list(chunks.names or ()), chunks.kinds or ()
    dates = [name for name, kind in zip(names, kinds, strict=False) if kind != "numeric"]
    asked = dates if options.dates == [] else options.dates or ()
    for name in asked:
        if name not in dates:
            raise TableError(f"{options.data}: --dates names {name!r}, which is no column of dates to predict from")
    for name in dates:
        if name not in asked:
            raise TableError(
                f"{options.data}: column {name!r} holds dates; say --dates {name} to read it as days since "
                "1970-01-01, or leave it out with --features"
            )
    left, notes = chunks.left_out, []
    if left:
        notes.append(f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise")
    if isinstance(chunks, ParquetChunks) and chunks.is_boolean(options.target):
        notes.append(
            f"column {options.target!r} holds booleans, whose mean is the probability of true; classes need no --memory"
        )
    say_notes(notes, options)
    return TrainingTable(names, chunks, {}, None, False, {}, notes)


def open_in_chunks(options: argparse.Namespace, *, target: str | list[str], features: list[str] | None) -> Chunks:
    """Open the input table in chunks: a Parquet or `.npy` file, or a folder of Parquet files."""
    needing = [name for name in IN_MEMORY if vars(options).get(name) not in (None, False)]
    needing += ["missing drop"] * (options.missing == "drop")
    text_format(options)
    path = Path(options.data)
    if options.data != "-" and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = {"npy": NpyChunks, "parquet": ParquetChunks}.get(input_format(options.data, options.format))
    refuse(
        (
            needing,
            f"--{' --'.join(needing)} needs the rows in memory; leave --memory out, or take a sample of the rows",
        ),
        (
            kind is None or options.data == "-",
            f"--memory reads Parquet and .npy files in chunks, and {options.data!r} is neither; convert it, or leave "
            "--memory out",
        ),
    )
    assert kind is not None
    chunks = kind(path, target=target, features=features, memory=options.memory)
    if not chunks.rows:
        raise TableError(f"{options.data} has no rows")
    return chunks


def _target(table: Table, name: str) -> tuple[AnyArray, bool]:
    """Return the target column as an array, and whether it holds class labels instead of numbers."""
    kind = table.kind(name, ", or name another column with --target")
    if kind == "dates":
        return table.days(name), False
    if kind == "numbers":
        if table.frame[name].dtype == bool:
            return table.frame[name].to_numpy(), True
        remedy = "correct it, or name the column in --unordered if it holds classes, or another one with --target"
        return table.numbers(name, remedy), False
    labels = table.levels(name)
    different = len(set(labels))
    if name not in table.unordered and different > max(20, len(labels) // 2):
        raise TableError(
            f"{table.source}: column {name!r} holds {different} different texts in {len(labels)} rows, which is no "
            f"column of classes; name another one with --target, or say --unordered {name}"
        )
    return np.asarray(labels), True


def choose_features(table: Table, options: argparse.Namespace, roles: Iterable[str] = ()) -> list[str]:
    """Return the names of the feature columns: those of --features, or all but the target and columns with a role."""
    others = [options.target, *roles]
    table.need(others)
    features = parse_features(options)
    if features is None:
        left = [name for name in table.labels if name not in others]
        if left:
            table.notes.append(
                f"{in_words(left)} labels of rows, and nothing is predicted from them; --features says otherwise"
            )
        features = [name for name in table.frame.columns if name not in (*others, *left)]
    table.need(features)
    known = " and ".join(map(repr, others))
    refuse((not features, f"--features must name at least one column, and {table.source} has none besides {known}"))
    return features


def parse_features(options: argparse.Namespace) -> list[str] | None:
    """Return the columns that --features names, or None, which stands for all without another role."""
    features: list[str] | None = options.features
    target, roles = options.target, {"groups": "clusters", "time": "times"}
    refuse(
        *(
            (vars(options).get(role) == target, f"--{role} names the target {target!r}; name the column of the {what}")
            for role, what in roles.items()
        ),
        (
            features and target in features,
            f"--features names the target {target!r} too; a column cannot predict itself",
        ),
        (
            features is not None and not 0 < len(features) == len(set(features)),
            f"--features must name at least one column, each once; got {features}",
        ),
    )
    return features


def query_rows(options: argparse.Namespace, model: KernelSmoother, header: dict[str, Any]) -> tuple[Any, Table]:
    """Read the rows to predict: return the feature columns that the model needs, and the table with all columns."""
    table = open_table(options)
    table.need(options.keep or ())
    table = complete_rows(table, header["features"], options)
    return table.queries(header["features"], model.encoding_), table


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
    table = complete_rows(open_table(options, options.calibration), [*header["features"], target], options)
    X = table.queries(header["features"], model.encoding_)
    y = table.numbers(target) if options.sets is None else _classes(table, target, model.classes_)
    notes = [f"{table.source}: {note}" for note in table.notes]
    say_notes(notes, options, records=True)
    return {"X_calibration": X, "y_calibration": y}


def _classes(table: Table, name: str, classes: AnyArray) -> AnyArray:
    """Return a column of a table as class labels, with the type and spelling of the model's class labels."""
    known = classes.tolist()
    labels = table.levels(name, known)
    new = [label not in known for label in labels]
    table.refuse_cells(name, new, "which is no class of the model", f"its classes are {', '.join(map(str, known))}")
    return np.array(labels, dtype=classes.dtype)


INPUTS = {"data": "DATA", "model": "MODEL", "calibration": "--calibration"}


def refuse_inputs_as_outputs(options: argparse.Namespace) -> None:
    """Raise UsageError if an output of a command would replace one of its inputs."""
    # it may be under another spelling or within a folder
    outputs = ("model", "plot") if options.command == "fit" else ("out",)
    for output, source in product(outputs, INPUTS.keys() - outputs):
        name, read = vars(options)[output], vars(options).get(source)
        refuse(
            (
                name not in (None, "-") and Path(name).exists() and read and _is_replaced(Path(read), Path(name)),
                f"--{output} {name} would replace what {INPUTS[source]} {read} is read from; write to another file or "
                "folder",
            )
        )


def _is_replaced(source: Path, output: Path) -> bool:
    """Return whether an output is the source, a file that it refers to, or in its folder of tables."""
    if source.is_dir() and source.resolve() in output.resolve().parents:
        return True
    return any(is_same_file(output, part) for part in [source, *referred_files(source)])


def beside_inputs(
    columns: dict[str, Any], table: Table, kept: Sequence[str], target: str, options: argparse.Namespace
) -> dict[str, Any]:
    """Return input columns that --keep copies, as written or as numbers (JSON, Parquet), and columns of predictions."""
    if target in kept:
        columns = {f"{target}_predicted{name.removeprefix(target)}": column for name, column in columns.items()}
    twice = ", ".join(repr(name) for name in kept if name in columns)
    refuse((twice, f"--keep has a column {twice}, as predictions do; name the others, as in --keep A,B"))
    as_text = not options.json and table_format(options.out) in ("csv", "tsv")
    decimal = (table.how or {}).get("decimal", ".")
    copies: dict[str, Any] = {}
    for name in kept:
        cells = table.as_written(name)
        if table.how is not None and not (as_text and decimal == "."):
            points = cells.str.replace(".", "").str.replace(",", ".") if decimal == "," else cells
            read = without_codes(points)
            cells = cells if read.dtype.kind not in "fiub" else read
        copies[name] = cells.reset_index(drop=True)
    return copies | columns
