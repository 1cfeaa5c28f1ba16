"""`kernpool compile`: compiled loops cached in advance."""

import argparse
import sys

from kernpool.cli.terminal import need_output, print_json, refuse, say
from kernpool.execution.progress import bar, is_terminal


def run_compile(options: argparse.Namespace) -> None:
    """Run `kernpool compile`: fill the cache of compiled loops and report its content."""
    need_output("open it")
    refuse((options.processes == 0, "--processes must be at least 1, got 0"))
    show = is_terminal() and not options.quiet
    from kernpool.estimators.compile_ahead import COLUMNS, compile_ahead

    found = compile_ahead(
        options.kernels,
        options.columns or COLUMNS,
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
