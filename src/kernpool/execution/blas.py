"""Matrix products on one thread, because the threads that work on blocks already take the processors."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_users, _limits = 0, None  # callers inside, and the handle that restores the limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the BLAS libraries to one thread while any caller is inside.

    The setting belongs to the process. The first caller sets the limit and the last one restores it: with a limit per
    caller, two overlapping callers would leave it at one forever.
    """
    global _users, _limits
    import scipy.linalg  # noqa: F401  # the library that compiled loops call has to be loaded to be limited
    from threadpoolctl import threadpool_limits

    with _lock:
        _users += 1
        if _users == 1:
            _limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


def _forget(*_: Any) -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
    os.register_at_fork(after_in_child=_forget)
