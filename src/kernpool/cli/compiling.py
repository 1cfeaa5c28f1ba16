"""`kernpool compile`: the cache of compiled loops, filled before anybody waits for it."""

from __future__ import annotations

import argparse
import json
import sys

from kernpool.cli.parsing import split_names
from kernpool.cli.terminal import UsageError, bar, is_terminal, need_output, say


def run_compile(options: argparse.Namespace) -> None:
    """Compile, and say what there is now."""
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
        print(json.dumps({**found._asdict(), "folder": str(found.folder)}))
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
