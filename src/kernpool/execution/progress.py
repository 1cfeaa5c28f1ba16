"""Progress callbacks, by which callers follow long fits and predictions without a parameter of the estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Progress = Callable[[int, int], Any]

_listener: ContextVar[Progress | None] = ContextVar("kernpool_progress", default=None)


def current_progress() -> Progress | None:
    """Return the progress callback that `report_progress` set in this context, or None."""
    return _listener.get()


def progress_of_part(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """Return a callback that turns progress in one of several equal parts into progress of the whole."""
    # None if there is no callback.
    if progress is None:
        return None
    return lambda done, total: progress(part * total + done, parts * total)


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
