"""Options about tables: how they are written and what their columns are. Only the standard library, as in `main.py`."""

from __future__ import annotations

import argparse

FORMATS = ["csv", "tsv", "parquet", "npy"]


def add_json(command: argparse.ArgumentParser) -> None:
    """Add the option that makes results, errors and warnings readable for programs."""
    command.add_argument(
        "--json",
        action="store_true",
        help="print results as JSON on standard output; errors and warnings are lines of JSON on standard error",
    )


def add_table_options(command: argparse.ArgumentParser, *, levels: bool = False) -> None:
    """Add options for reading DATA, and for what its columns are if these are chosen by this command."""
    reading = command.add_argument_group("how DATA is written (what is not given is found, and said)")
    reading.add_argument("--format", choices=FORMATS, help="of DATA (default: by suffix; .gz, .bz2, .xz, .zst unpack)")
    reading.add_argument("--sep", metavar="CHAR", help="between columns: comma, semicolon, tab, pipe, space, or any")
    reading.add_argument(
        "--decimal", choices=[",", "."], metavar="SIGN", help="sign of decimals, , or .; the other separates thousands"
    )
    reading.add_argument("--encoding", metavar="NAME", help="of text, such as utf-8, latin-1, cp1252, utf-16, gb18030")
    reading.add_argument(
        "--na",
        metavar="A,B",
        help="what missing cells hold, in addition to nothing, as in --na=-999,x (default: NA, NaN, N/A, n.a., null, "
        "none, -, ., ?)",
    )
    reading.add_argument(
        "--missing",
        default="error",
        choices=["error", "drop"],
        help="rows with missing cells in the columns that are used: an error, or dropped and counted (default: error)",
    )
    if not levels:
        return
    kinds = command.add_argument_group("what columns are (default: numbers, and levels where there is text)")
    kinds.add_argument(
        "--unordered", metavar="A,B", help="columns of levels without order, such as codes; Y for classes"
    )
    kinds.add_argument(
        "--ordered", metavar="A,B", help="columns of levels with order: years, or text as in size=small:medium:large"
    )
    kinds.add_argument(
        "--dates",
        nargs="?",
        const="",
        metavar="A,B",
        help="read dates (2020-12-31, 2020-12-31T06:00Z) as days since 1970-01-01; of all columns without names",
    )
