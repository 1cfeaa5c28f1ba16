"""Messages, argument parser and results as JSON of the command line.

Messages go to standard error; errors can be lines of JSON. Messages of the library are given in the words
of the command line: options for arguments, names of columns for their numbers.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class UsageError(Exception):
    """Error for invalid or contradictory options on the command line (exit code 2)."""


def refuse(*conflicts: tuple[object, str]) -> None:
    """Raise UsageError with the text of the first conflict of options that holds."""
    for holds, text in conflicts:
        if holds:
            raise UsageError(text)


def say(text: str) -> None:
    """Print a message to standard error."""
    if sys.stderr is not None:  # closed; print would take standard output instead
        print(text, file=sys.stderr, flush=True)


def need_output(remedy: str) -> None:
    """Raise OSError if standard output is closed, before the computation starts."""
    if sys.stdout is None:
        raise OSError(f"standard output is closed, so there is nowhere to write to; {remedy}")


def json_line(what: str, text: str, command: str, code: int | None = None) -> str:
    """Return an error, a warning or a note as one line of JSON."""
    return json.dumps({what: text, "command": command} | ({} if code is None else {"exit_code": code}))


TAKERS = ("--keep", "--dates")  # options whose value, names of columns, may be left out


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with suggestions for misspelled options, and errors as JSON with ``--json``."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, and store them, because they decide whether errors are printed as JSON."""
        self._given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print a usage error in one line with a pointer to the help, and exit with code 2."""
        taker = next((option for option in TAKERS if option in self._given), None)
        if taker is not None and message.startswith("the following arguments are required: "):
            message += f"; {taker} takes the name that follows: write it after all others, or {taker}=A,B"
        commands = self._commands()
        command = next((commands[word] for word in self._given if word in commands), self)
        names, known = (word.partition("=")[0] for word in self._given), command._option_string_actions
        wrong = next((name for name in names if name.startswith("--") and name not in known), None)
        if wrong is not None and not message.startswith("argument "):
            message = f"unrecognized arguments: {wrong}{_suggestion(wrong, known, 0.8)}"
        if "--json" in self._given:
            name = self.prog.removeprefix("kernpool").strip()
            self.exit(2, json_line("error", message, name, 2) + "\n")
        end = " " if message.endswith("?") else "; "
        self.exit(2, f"{command.prog}: {message}{end}{command.prog} --help shows the options\n")

    def _commands(self) -> dict[str, Parser]:
        actions = self._subparsers._group_actions if self._subparsers is not None else ()
        return {} if not actions else dict(actions[0].choices or {})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for an invalid choice, with the closest valid one if there is any."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = _suggestion(str(value), known) or f" (choose from {', '.join(map(repr, known))})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")


def _suggestion(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


# Arguments of the library, and the options of the command line that they are given by.
ARGUMENTS = {
    "n_jobs": "jobs",
    "n_resamples": "resamples",
    "random_state": "seed",
    "level": "interval",
    "levels": "quantiles",
    "language": "lang",
}
# Remedies of the library in the words of the command line, by command; the first is for empty windows.
EMPTY = r"; [^;]*\bempty=[^;]*"
WORDS = {
    "": {
        "drop it before fit and predict": "leave it out with --features",
        "kernpool.save_model writes": "kernpool fit --model FILE writes",
        r"\bmust be None\b": "must be left out",
        "^k must": "--neighbors must",
        r"^unknown kernel ('.*?');": r"--kernel \1 is unknown;",
        r"(\bmethod='[\w+]+') or '([\w+]+)'": r"\1 or \2",
        r"\bX_calibration( and y_calibration)?": "--calibration",
        r"fit (it to arrays, such as )?a sample (of (the rows|them))?( in memory)?, with bandwidth=model.bandwidth_": (
            "fit a sample of the rows without --memory, with the --bandwidth that kernpool info shows"
        ),
    },
    "fit": {
        EMPTY: "; use a larger --bandwidth, or a kernel of infinite support",
        r" \(DataFrame\.drop_duplicates of pandas\)": "",
        r"; pass the times of the rows, fit\(X, y, time=times\)": "; name their column with --time",
        "use NadarayaWatsonRegressor for numbers, .*": "leave it out of --unordered for numbers",
        r"^window=Nearest\(\)": "--neighbors",
        "use window='fixed', or": "leave --neighbors out, or say",
    },
    "predict": {
        EMPTY: "; fit again with a larger --bandwidth, or say --empty nearest, mean, nan or zero",
        r", or degree=1 \(for intervals: method='robust'\)": "",
        r"; drop such rows, or use SimpleImputer.*": "; drop such rows with --missing drop",
        "leave variance out, or use 'sandwich'": "leave --variance out, or say --variance sandwich",
        "drop duplicates or give groups=": "drop duplicates, or fit again with --groups",
        r" with groups 'jackknife\+',": "",
    },
    "explore": {
        "explore a model of some of them: .*": "fit a sample of the rows without --memory, with the --bandwidth that "
        "kernpool info shows",
    },
    "test": {"^columns holds ('.*'), and .*, or ": r"no column \1; it predicts from "},
}


def in_options(options: argparse.Namespace, text: str) -> str:
    """Return a message of the library in one line, with Python parameters replaced by command-line options."""
    for pattern, words in (WORDS[""] | WORDS.get(options.command, {})).items():
        text = re.sub(pattern, words, text)
    known = {argument: name for argument, name in ARGUMENTS.items() if name in vars(options)}
    known |= {name: name for name in vars(options)}
    if vars(options).get("sets") is not None:
        known["level"] = "sets"
    names = "|".join(known)
    text = re.sub(rf"^({names})(?= (must|has|holds|names|are|is)\b)", lambda found: f"--{known[found[1]]}", text)
    return re.sub(
        rf"(?<![-.\w])({names})=(?:True\b|'([\w+]+)'|([\d.]*\d)|(?=[\s,;)]))",
        lambda found: f"--{known[found[1]]} {found[2] or found[3] or ''}".rstrip(),
        text.replace("\n", " "),
    )


def describe(error: BaseException) -> str:
    """Return the message of an exception for the user; for a system error, the file name and the reason."""
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end]
        return (
            f"standard output in {error.encoding} has no letters {text!r}; write to a file with --out, or set "
            "PYTHONIOENCODING=utf-8"
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return str(error) or type(error).__name__


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the named arguments whose options the user has given, for a function with defaults of its own."""
    values = {name: vars(options).get(ARGUMENTS.get(name, name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def plain_json(what: Any) -> Any:
    """Convert a result to values that JSON can hold: arrays to lists, NaN to null, infinity to text."""
    if hasattr(what, "__dataclass_fields__"):  # importing `dataclasses` takes as long as all else here
        return {name: plain_json(getattr(what, name)) for name in what.__dataclass_fields__}
    if isinstance(what, dict):
        return {str(name): plain_json(value) for name, value in what.items()}
    if isinstance(what, list | tuple):
        return [plain_json(value) for value in what]
    if hasattr(what, "tolist"):
        return plain_json(what.tolist())
    if isinstance(what, float):
        return what if math.isfinite(what) else None if math.isnan(what) else str(what)
    return what if what is None or isinstance(what, str | int | bool) else str(what)


def print_json(what: Any) -> None:
    """Print a result as JSON on standard output; NaN becomes null."""
    print(json.dumps(plain_json(what), indent=2, ensure_ascii=False))


def say_notes(notes: Iterable[str], options: argparse.Namespace, *, records: bool = False) -> None:
    """Print notes on how a table was read, unless --quiet is set."""
    # with --json they are lines of JSON if the result is records, and otherwise part of the result
    for text in () if options.quiet else notes:
        if not options.json:
            say(f"note       {text}")
        elif records:
            say(json_line("note", text, options.command))
