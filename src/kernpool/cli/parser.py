"""A parser whose errors are lines of JSON if that is asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


def json_line(what: str, text: str, command: str, code: int | None = None) -> str:
    """Return an error or a warning as one line of JSON.

    Examples
    --------
    >>> json_line("error", "a.csv is empty", "fit", 1)
    '{"error": "a.csv is empty", "command": "fit", "exit_code": 1}'
    """
    return json.dumps({what: text, "command": command} | ({} if code is None else {"exit_code": code}))


TAKERS = ("--keep", "--dates")  # with names of columns, or alone


class Parser(argparse.ArgumentParser):
    """As `argparse.ArgumentParser`, for commands that may be asked to answer in JSON."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and remember what was given, which decides how errors are told."""
        self._given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit with 2."""
        taker = next((option for option in TAKERS if option in self._given), None)
        if taker is not None and message.startswith("the following arguments are required: "):
            message += f"; {taker} takes the name that follows: write it after all others, or {taker}=A,B"
        if "--json" not in self._given:
            super().error(message)
        name = self.prog.removeprefix("kernpool").strip()
        self.exit(2, json_line("error", message, name, 2) + "\n")
