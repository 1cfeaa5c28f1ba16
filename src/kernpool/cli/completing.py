"""`kernpool completion`: a script by which a shell completes commands and options, without starting Python."""

from __future__ import annotations

import argparse
from importlib import import_module

from kernpool.cli.arguments import build_parser
from kernpool.cli.terminal import need_output

FILES = ("data", "model", "out", "plot", "calibration")


def run_completion(options: argparse.Namespace) -> None:
    """Print the script of a shell."""
    need_output("open it")
    print(completion(options.shell))


def completion(shell: str) -> str:
    """Return the script of a shell.

    Parameters
    ----------
    shell : {"bash", "zsh", "tcsh"}
        Which.

    Raises
    ------
    ImportError
        If shtab, which writes it, is not installed.
    """
    try:
        shtab = import_module("shtab")
    except ImportError as error:
        raise ImportError(
            'completion scripts need shtab, which is not installed; install it with: pip install "kernpool[completion]"'
        ) from error
    parser = build_parser()
    _complete_files(parser, shtab.FILE)
    return str(shtab.complete(parser, shell))


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Say which arguments are files, in all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.dest in FILES:
            action.complete = files  # type: ignore[attr-defined]  # what shtab looks for
