"""Matrix products on one thread, because the threads that work on blocks already take the processors."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
    with _lock:
        _users += 1
        if _users == 1:
            _limits = _blas().limit(limits=1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


@cache
def _blas() -> Any:
    """Return the BLAS libraries of this process, found once: looking through all that is loaded takes a millisecond.

    Those that are loaded later are others' own; compiled loops call that of SciPy.
    """
    import scipy.linalg  # noqa: F401  # has to be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _forget(*_: Any) -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
    os.register_at_fork(after_in_child=_forget)
