"""A parser whose errors are lines of JSON if that is asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
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
        """Say what is wrong in one line, with where the options are listed, and exit with 2."""
        taker = next((option for option in TAKERS if option in self._given), None)
        if taker is not None and message.startswith("the following arguments are required: "):
            message += f"; {taker} takes the name that follows: write it after all others, or {taker}=A,B"
        unknown, commands = message.removeprefix("unrecognized arguments: "), self._commands()
        command = next((commands[word] for word in self._given if word in commands), self)
        if unknown != message:
            message += _suggestion(unknown.split()[0].partition("=")[0], command._option_string_actions)
        if "--json" in self._given:
            name = self.prog.removeprefix("kernpool").strip()
            self.exit(2, json_line("error", message, name, 2) + "\n")
        end = " " if message.endswith("?") else "; "
        self.exit(2, f"{command.prog}: {message}{end}{command.prog} --help shows the options\n")

    def _commands(self) -> dict[str, Parser]:
        actions = self._subparsers._group_actions if self._subparsers is not None else ()
        return {} if not actions else dict(actions[0].choices or {})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices, with the closest one, if there is any."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = _suggestion(str(value), known) or f" (choose from {', '.join(map(repr, known))})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""
