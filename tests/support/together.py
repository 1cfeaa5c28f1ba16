"""Calls that begin at once in threads of their own, which take turns as often as the interpreter can."""

import sys
import threading
from contextlib import contextmanager


@contextmanager
def often():
    """Let threads take turns a thousand times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(*functions):
    """Call functions at once; raise the first of their errors."""
    barrier, errors = threading.Barrier(len(functions)), []

    def begin(function):
        barrier.wait(timeout=60)
        try:
            function()
        except BaseException as error:  # raised again below
            errors.append(error)

    threads = [threading.Thread(target=begin, args=[function]) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
