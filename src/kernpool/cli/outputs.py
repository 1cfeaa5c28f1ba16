"""Outputs of commands: inputs that must not be replaced, and columns of the input that are kept."""

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.cli.terminal import UsageError, split_names
from kernpool.data.array_validation import TableError
from kernpool.data.atomic_files import is_same_file
from kernpool.data.model_format import ModelFileError, files_of, read_json, referred_files
from kernpool.data.number_parsing import as_objects, is_code, is_string, is_time, time_words, unreadable
from kernpool.tables.table import Table, table_format

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
    rows = referred_files(read_json(source)) if files else []
    if any(is_same_file(output, file) for file in (source, *files, *rows)):
        return True
    return not files and source.is_dir() and source.resolve() in output.resolve().parents


def _model_files(folder: Path) -> list[Path]:
    """Return the paths of the files of a saved model; an empty list for other folders."""
    with suppress(ModelFileError):
        return files_of(folder)
    return []


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
