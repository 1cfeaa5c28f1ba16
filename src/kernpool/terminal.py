"""Talking to people at a terminal: messages and a progress bar, both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """The command line asks for something that cannot be meant."""


def say(text: str) -> None:
    """Print for people, not for the next program in the pipe."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[None]:
    """Show a bar on a terminal once work has taken half a second."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from kernpool.progress import report_progress

    with report_progress(bar(what)):
        try:
            yield
        finally:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def bar(what: str, patience: float = 0.5) -> Callable[[int, int], None]:
    """Return a listener that draws `what`, a bar, and the time left."""
    started = shown = time.monotonic()

    def listener(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - started < patience or now - shown < 0.1:
            return
        shown = now
        share = done / total
        left = (now - started) * (1 - share) / share if share else 0.0
        full = round(30 * share)
        sys.stderr.write(f"\r\033[K{what} [{'#' * full}{'.' * (30 - full)}] {share:4.0%}, {left:.0f} s left")
        sys.stderr.flush()

    return listener
