"""Talking to people at a terminal: messages and a progress bar, both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE, INTERVAL = 0.5, 0.1  # seconds before a bar shows, and between two drawings of it
WIDTH = 30  # of a bar
STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1", "/proc/self/fd/0", "/proc/self/fd/1")


class UsageError(Exception):
    """The command line asks for something that cannot be meant."""


def say(text: str) -> None:
    """Print for people, not for the next program in the pipe."""
    if sys.stderr is not None:  # closed; print would take standard output instead
        print(text, file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """Whether somebody sees what is said."""
    return sys.stderr is not None and sys.stderr.isatty()


def stream_name(name: str) -> str:
    """Return ``-`` for the other names of standard input and output, and all other names as they are.

    Examples
    --------
    >>> stream_name("/dev/stdout"), stream_name("table.csv")
    ('-', 'table.csv')
    """
    return "-" if name in STREAMS else name


def need_output(remedy: str) -> None:
    """Refuse a standard output that is closed, before the long work.

    Parameters
    ----------
    remedy : str
        What to do instead.

    Raises
    ------
    OSError
        If it is.
    """
    if sys.stdout is None:
        raise OSError(f"standard output is closed, so there is nowhere to write to; {remedy}")


@contextmanager
def progress_bar(what: str, quiet: bool, unit: str = "rows") -> Iterator[None]:
    """Show a bar on a terminal once work has taken `PATIENCE`, even if none of it is done yet."""
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
    """Write a line over the one before."""
    sys.stderr.write(f"\r\033[K{line}")
    sys.stderr.flush()


def bar(what: str, patience: float | None = None, unit: str = "") -> Callable[[int, int], None]:
    """Return a listener that draws `what`, a bar, how many units are done of how many, and the time left."""
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
    """Return a time for people.

    Examples
    --------
    >>> duration(8.4), duration(100), duration(7300)
    ('8 s', '1 min 40 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
