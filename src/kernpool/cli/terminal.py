"""Messages, progress bar and argument parser of the command line; errors can be lines of JSON.

Messages and progress go to standard error.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

from kernpool.execution.error_messages import did_you_mean

PATIENCE, INTERVAL = 0.5, 0.1  # seconds before a bar shows, and between two drawings of it
WIDTH = 30  # of a bar
STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1", "/proc/self/fd/0", "/proc/self/fd/1")


class UsageError(Exception):
    """Error for invalid or contradictory options on the command line (exit code 2)."""


def say(text: str) -> None:
    """Print a message to standard error."""
    if sys.stderr is not None:  # closed; print would take standard output instead
        print(text, file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def stream_name(name: str) -> str:
    """Return ``-`` for paths of standard input and output, such as ``/dev/stdin``; other names are unchanged.

    Examples
    --------
    >>> stream_name("/dev/stdout"), stream_name("table.csv")
    ('-', 'table.csv')
    """
    return "-" if name in STREAMS else name


def need_output(remedy: str) -> None:
    """Raise OSError if standard output is closed, before the computation starts.

    Parameters
    ----------
    remedy : str
        What to do instead, for the message.

    Raises
    ------
    OSError
        If standard output is closed.
    """
    if sys.stdout is None:
        raise OSError(f"standard output is closed, so there is nowhere to write to; {remedy}")


@contextmanager
def progress_bar(what: str, quiet: bool, unit: str = "rows") -> Iterator[None]:
    """Show a progress bar on a terminal during the `with` block, once the block has taken `PATIENCE` seconds.

    It shows then even at 0 %.
    """
    if quiet or not is_terminal():
        yield
        return
    from threading import Timer

    from kernpool.execution.progress import report_progress

    begin = Timer(PATIENCE, draw, [f"{what} [{'.' * WIDTH}] {0:4.0%}"])
    begin.daemon = True
    begin.start()
    with report_progress(bar(what, unit=unit)):
        try:
            yield
        finally:
            begin.cancel()
            begin.join()
            draw("")


def draw(line: str) -> None:
    """Replace the text of the current line of the terminal."""
    sys.stderr.write(f"\r\033[K{line}")
    sys.stderr.flush()


def bar(what: str, patience: float | None = None, unit: str = "") -> Callable[[int, int], None]:
    """Return a progress callback that draws a bar with the amount done, the total amount and the remaining time."""
    patience = PATIENCE if patience is None else patience
    started = shown = time.monotonic()
    before = 0.0

    def listener(done: int, total: int) -> None:
        nonlocal shown, started, before
        now, share = time.monotonic(), done / total
        if share < before:  # another piece of work has begun: its time is measured anew
            started = now
        before = share
        if now - started < patience or now - shown < INTERVAL:
            return
        shown = now
        left = (now - started) * (1 - share) / share if share else 0.0
        full = round(WIDTH * share)
        count = f" {done:,} of {total:,} {unit}," if unit else ""
        draw(f"{what} [{'#' * full}{'.' * (WIDTH - full)}] {share:4.0%},{count} {duration(left)} left")

    return listener


def duration(seconds: float) -> str:
    """Format a duration in seconds as text, such as 1 min 40 s.

    Examples
    --------
    >>> duration(8.4), duration(100), duration(7300)
    ('8 s', '1 min 40 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def json_line(what: str, text: str, command: str, code: int | None = None) -> str:
    """Return an error, a warning or a note as one line of JSON.

    Examples
    --------
    >>> json_line("error", "a.csv is empty", "fit", 1)
    '{"error": "a.csv is empty", "command": "fit", "exit_code": 1}'
    """
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
        """Raise ArgumentError for an invalid choice, with the closest valid one if there is any."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = _suggestion(str(value), known) or f" (choose from {', '.join(map(repr, known))})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


UNITS = {"": 1, "B": 1} | {
    name: base**power
    for power, letter in enumerate("KMGT", start=1)
    for name, base in ((f"{letter}IB", 1024), (f"{letter}B", 1000))
}
LEAST_MEMORY = 1 << 20


def parse_memory(text: str | None) -> int | None:
    """Return the number of bytes of a size such as 512MiB, 1.5GB or 2000000.

    Examples
    --------
    >>> parse_memory("1.5GB"), parse_memory("2 GiB")
    (1500000000, 2147483648)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Z]*)", text.strip().upper(), re.ASCII)
    if found is None or found[2] not in UNITS:
        raise UsageError(f"--memory must be a size such as 512MiB, 2GiB, 1.5GB or a number of bytes, got {text!r}")
    size = int(float(found[1]) * UNITS[found[2]])
    if size < LEAST_MEMORY:
        raise UsageError(f"--memory must be at least 1MiB, got {text!r}")
    return size


def parse_degree(text: str) -> int:
    """Parse the degree of the local polynomial: 0 (local constant) or 1 (local linear).

    Examples
    --------
    >>> parse_degree("1")
    1
    """
    if text not in ("0", "1"):
        quadratic = "; kernpool.pool(..., degree=2) in Python fits local quadratics" if text == "2" else ""
        raise argparse.ArgumentTypeError(f"must be 0 (local constant) or 1 (local linear), got {text!r}{quadratic}")
    return int(text)


def split_names(text: str) -> list[str]:
    """Split a comma-separated list of names; a name that contains a comma is quoted.

    Examples
    --------
    >>> split_names('a, "b,c"')
    ['a', 'b,c']
    """
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise UsageError(f"names are separated by commas, as in A,B; got {text!r} ({error})") from None


def parse_features(listed: str | None, target: str) -> list[str] | None:
    """Return the list of feature columns that --features names, or None if the option is not given.

    None stands for all other columns.
    """
    if listed is None:
        return None
    # Read as a line of CSV, so that a name with a comma can stand in quotes.
    features = split_names(listed)
    if target in features:
        raise UsageError(f"--features names the target {target!r} too; a column cannot predict itself")
    if not features or len(set(features)) < len(features):
        raise UsageError(f"--features must name at least one column, each once; got {features}")
    return features


def parse_bandwidth(text: str, names: Sequence[str] = ()) -> str | float | list[float]:
    """Parse a bandwidth: the name of a selection rule, a number, or a list of numbers.

    Examples
    --------
    >>> parse_bandwidth("0.5"), parse_bandwidth("0.5,2"), parse_bandwidth("loo", ["loo", "aicc"])
    (0.5, [0.5, 2.0], 'loo')
    """
    if text in names:
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        known = f"one of {', '.join(names)}, " if names else ""
        raise UsageError(
            f"--bandwidth must be {known}a number, or numbers separated by commas; got {text!r}; "
            f"{did_you_mean(text, names)}".rstrip("; ")
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers


def parse_numbers(option: str, text: str) -> list[float]:
    """Parse the value of an option that is a comma-separated list of numbers.

    Examples
    --------
    >>> parse_numbers("--smoothing", "0.5, 2")
    [0.5, 2.0]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be a number, or numbers separated by commas; got {text!r}") from None


def parse_levels(text: str) -> tuple[float, ...]:
    """Parse a comma-separated list of quantile orders, numbers from 0 to 1, in the sequence given.

    Examples
    --------
    >>> parse_levels(".1, .5,.9")
    (0.1, 0.5, 0.9)
    """
    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--quantiles must be numbers separated by commas, such as 0.1,0.5,0.9; got {text!r}"
        ) from None
    wrong = [level for level in levels if not 0.0 <= level <= 1.0]
    if wrong:
        hint = f"; {wrong[0]:g} percent is {wrong[0] / 100:g}" if 1.0 < wrong[0] <= 100.0 else ""
        raise UsageError(f"--quantiles must lie between 0 and 1, got {wrong[0]:g}{hint}")
    if len(set(levels)) < len(levels):
        raise UsageError(f"--quantiles must differ from each other, got {text!r}")
    return levels
