"""`kernpool compile`: compiled loops cached in advance."""

import argparse

from kernpool.cli.terminal import need_output, print_json, say
from kernpool.execution.progress import current_progress, progress_bar


def run_compile(options: argparse.Namespace) -> None:
    """Run `kernpool compile`: fill the cache of compiled loops and report its content."""
    need_output("open it")
    from kernpool.estimators.compile_ahead import COLUMNS, compile_ahead

    with progress_bar("compiling", options.quiet, unit="tasks"):
        found = compile_ahead(
            options.kernels,
            options.columns or COLUMNS,
            processes=options.processes,
            progress=current_progress(),
        )
    if options.json:
        print_json(found._asdict())
    elif not options.quiet:
        say(
            f"{found.versions} compiled loops, {found.new} of them new, {found.size / 2**20:.0f} MiB in "
            f"{found.folder}: "
            "for this version and this kind of processor"
        )
