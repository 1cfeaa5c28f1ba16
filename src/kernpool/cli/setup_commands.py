"""`kernpool compile` and `kernpool completion`: compiled loops cached in advance, and a shell completion script.

A completion script lets the shell complete commands and options without starting Python.
"""

import argparse
import sys
from importlib import import_module

from kernpool.cli.options import build_parser
from kernpool.cli.terminal import UsageError, need_output, print_json, say, split_names
from kernpool.execution.notices import bar, is_terminal


def run_compile(options: argparse.Namespace) -> None:
    """Run `kernpool compile`: fill the cache of compiled loops and report its content."""
    need_output("open it")
    if options.processes is not None and options.processes < 1:
        raise UsageError(f"--processes must be at least 1, got {options.processes}")
    show = is_terminal() and not options.quiet
    from kernpool.estimators.compile_ahead import COLUMNS, compile_ahead

    found = compile_ahead(
        None if options.kernels is None else split_names(options.kernels),
        COLUMNS if options.columns is None else _numbers(options.columns),
        processes=options.processes,
        progress=bar("compiling", unit="tasks") if show else None,
    )
    if show:
        sys.stderr.write("\r\033[K")
    if options.json:
        print_json(found._asdict())
    elif not options.quiet:
        say(
            f"{found.versions} compiled loops, {found.new} of them new, {found.size / 2**20:.0f} MiB in "
            f"{found.folder}: "
            "for this version and this kind of processor"
        )


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--columns must be numbers of columns such as 1,2,3, got {text!r}") from None


FILES = ("data", "model", "out", "plot", "calibration")


def run_completion(options: argparse.Namespace) -> None:
    """Run `kernpool completion`: print the completion script of a shell."""
    need_output("open it")
    print(completion(options.shell))


def completion(shell: str) -> str:
    """Return the script that completes commands and options of `kernpool` in a shell.

    Parameters
    ----------
    shell : {"bash", "zsh", "tcsh"}
        Shell that the script is for.

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
    """Mark the arguments of a parser and all its commands that are file names, so that shells complete them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.dest in FILES:
            action.complete = files  # type: ignore[attr-defined]  # what shtab looks for
