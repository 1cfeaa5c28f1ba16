"""Progress of long work: callbacks for callers, a progress bar, and a notice that loops are being compiled.

Callers follow fits and predictions by `report_progress`, without a parameter of the estimator. Bars and notices show on
terminals and in notebooks only: at the command line after half a second, of a `fit` in Python after ten. Nothing but
the standard library is imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Timer, current_thread, main_thread
from typing import Any

Progress = Callable[[int, int], Any]

PATIENCE, INTERVAL = 0.5, 0.1  # seconds before a bar shows, and between two drawings of it
LONG = 10.0  # seconds of a fit in Python before a bar shows
WIDTH = 30  # of a bar
COMPILING = "kernpool: compiling loops, once for this machine and version"

_listener: ContextVar[Progress | None] = ContextVar("kernpool_progress", default=None)
_silent: ContextVar[bool] = ContextVar("kernpool_silent", default=False)


def current_progress() -> Progress | None:
    """Return the progress callback that `report_progress` set in this context, or None."""
    return _listener.get()


def progress_between(progress: Progress | None, start: int, stop: int, total: int) -> Progress | None:
    """Return a callback that turns progress in a part of the work, from `start` to `stop`, into that of the whole."""
    # None if there is no callback. What is done may be more than was expected.
    if progress is None:
        return None
    return lambda done, of: progress(start + (stop - start) * min(done, of) // max(of, 1), total)


@contextmanager
def report_progress(listener: Progress) -> Iterator[None]:
    """Call ``listener(done, total)`` during every ``fit`` and ``predict`` inside the ``with`` block.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> model, seen = NadarayaWatsonRegressor(), []
    >>> with report_progress(lambda done, total: seen.append((done, total))):
    ...     _ = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    >>> len(seen) > 64
    True
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def silence() -> Iterator[None]:
    """Show no notices during the `with` block."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_watched() -> bool:
    """Return whether somebody sees notices: on a terminal or in a notebook, in the main thread of the main process."""
    processes = sys.modules.get("multiprocessing")  # a third of the time of --help; a worker has it imported
    main = processes is None or processes.current_process().name == "MainProcess"
    notebook = sys.modules.get("IPython")
    shell = None if notebook is None else notebook.get_ipython()
    is_seen = is_terminal() or type(shell).__name__ == "ZMQInteractiveShell"
    return main and current_thread() is main_thread() and not _silent.get() and is_seen


@contextmanager
def progress_bar(what: str, quiet: bool = False, unit: str = "rows", patience: float | None = None) -> Iterator[None]:
    """Show a progress bar during the `with` block, once it has taken `patience` seconds, by default `PATIENCE`.

    Where progress is reported already, as by an outer bar, it shows nothing.
    """
    # It shows then even at 0 %.
    if quiet or current_progress() is not None or not is_watched():
        yield
        return
    patience, started = PATIENCE if patience is None else patience, time.monotonic()
    begin = Timer(patience, draw, [f"{what} [{'.' * WIDTH}] {0:4.0%}"])
    begin.daemon = True
    begin.start()
    with report_progress(bar(what, patience, unit)):
        try:
            yield
        finally:
            begin.cancel()
            begin.join()
            if time.monotonic() - started >= patience:  # otherwise nothing has been drawn
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
    """Format a duration in seconds as text, such as 1 min 40 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


class CompileNotice:
    """Says, once in a process, that loops are being compiled: after a second of it in all."""

    def __init__(self) -> None:
        self._left = 1.0  # seconds of patience; less than zero once it has been said

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count the `with` block as compiling."""
        if self._left < 0.0 or not is_watched():
            yield
            return
        timer, started = Timer(self._left, self._say), time.monotonic()
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._left = min(self._left, max(0.0, self._left - time.monotonic() + started))

    def _say(self) -> None:
        self._left = -1.0
        draw(f"{COMPILING}\n")
