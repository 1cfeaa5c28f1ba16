"""Arguments of the commands that set a machine up: compiled loops, and completion in a shell."""

from __future__ import annotations

from typing import Any

from kernpool.cli.table_options import add_json


def add_compile(commands: Any) -> None:
    """Add `kernpool compile`."""
    command = commands.add_parser(
        "compile",
        help="compile loops ahead of their first use, for a machine or an image",
        description="Fill the cache of compiled loops, so that nobody waits for the compiler later: some minutes for "
        "everything. NUMBA_CACHE_DIR says where it is; the default is beside the installed modules.",
    )
    command.add_argument("--kernels", metavar="A,B", help="only these (default: all)")
    command.add_argument("--columns", metavar="1,2", help="numbers of columns (default: 1,2,3,4,5,8,11,16)")
    command.add_argument("--processes", type=int, metavar="N", help="that compile at a time (default: one a processor)")
    command.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(command)
    command.set_defaults(run="compiling:run_compile")


def add_completion(commands: Any) -> None:
    """Add `kernpool completion`."""
    completion = commands.add_parser(
        "completion",
        help="write a script that completes commands and options in a shell",
        description='Write a completion script to standard output; for bash: eval "$(kernpool completion bash)".',
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="for which shell")
    completion.set_defaults(run="completing:run_completion", json=False)
