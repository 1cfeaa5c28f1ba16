"""Outputs that would replace an input: refused before any work, with --force too."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from kernpool.cli.terminal import UsageError
from kernpool.data.files import is_same_file
from kernpool.data.folders import ModelFileError, files_of, read_json, referred_files

OUTPUTS = {"fit": {"model": "--model", "plot": "--plot"}, "predict": {"out": "--out"}, "explore": {"out": "--out"}}
INPUTS = {"data": "DATA", "model": "MODEL", "calibration": "--calibration"}


def refuse_inputs_as_outputs(options: argparse.Namespace) -> None:
    """Raise if an output is an input of the same command, however both are spelled, or a file of one.

    Parameters
    ----------
    options : argparse.Namespace
        Of any command.

    Raises
    ------
    UsageError
        If an output is the table, the calibration table or the model; a file in a folder of tables; a file of the
        model, or one that holds its rows. Of a model folder that is replaced the files of the old model count, and not
        the rows that it refers to, which stay.
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
    """Return the files of a model folder; none of other folders."""
    with suppress(ModelFileError):
        return files_of(folder)
    return []
