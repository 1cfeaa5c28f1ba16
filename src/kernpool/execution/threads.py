"""Work on the processor: blocks on Python threads, interruptible and reproducible, and the width of vectors.

`OrderedSum` adds terms in the order of their numbers, not of their arrival, so that the bits of a sum do not depend
on the threads. `blas_threads` limits the threads of the BLAS libraries, because the threads that work on blocks already
occupy the processors.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from operator import index
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress, progress_between

# Work on one block: a generator that pauses after every piece of at most about 50 ms, so that it can be stopped there.
Work = Callable[[slice], Iterator[None]]


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Convert `n_jobs` into a number of threads, as scikit-learn does."""
    if n_jobs is None and "joblib" not in sys.modules:
        return 1  # joblib cannot have been configured without being loaded
    count = None if n_jobs is None else _as_count(n_jobs)
    if count is not None and count > 0:
        return count
    from joblib import effective_n_jobs

    return int(effective_n_jobs(count))


def _as_count(n_jobs: Any) -> int:
    try:
        count = 0 if isinstance(n_jobs, bool) else index(n_jobs)
    except TypeError:
        count = 0
    if count == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or a negative one, where -1 is all processors and -2 "
            f"all but one; got {abbreviate(n_jobs)}"
        )
    return count


def cut(length: int, size: int) -> list[slice]:
    """Cut ``range(length)`` into slices of at most `size`."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


EVEN_ROWS = 4  # queries that loops take at once


def cut_evenly(length: int, size: int) -> list[slice]:
    """Cut ``range(length)`` into slices of about `size`, balanced between threads."""
    # If there are enough rows, the number of slices is a power of two or a multiple of eight; slices begin at multiples
    # of `EVEN_ROWS`. Where the last of 16 slices is short, one of two threads waits a twentieth of the time.
    parts = max(1, -(-length // size))
    parts = -(-parts // 8) * 8 if parts > 4 else 1 << (parts - 1).bit_length()
    unit = min(EVEN_ROWS, size)
    units = -(-length // unit)
    ends = [min(length, unit * -(-units * i // parts)) for i in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends) if stop > start]


def run_blocks(work: Work, blocks: Sequence[slice], n_jobs: int, progress: Progress | None) -> None:
    """Run a function on every block of rows, on several threads."""
    total, done = sum(block.stop - block.start for block in blocks), 0
    if n_jobs == 1 or len(blocks) == 1:
        for block in blocks:
            for _ in work(block):
                pass
            done += block.stop - block.start
            if progress is not None:
                progress(done, total)
        return
    # Simple queues and a plain list are all that the threads share. The locks of concurrent.futures are Python objects:
    # a Ctrl-C that arrives inside one leaves it locked, and the call never ends (seen with as_completed).
    waiting: SimpleQueue[slice] = SimpleQueue()
    reports: SimpleQueue[int | BaseException | None] = SimpleQueue()
    stopped: list[bool] = []
    for block in blocks:
        waiting.put(block)

    def run() -> None:
        try:
            while not stopped:
                block = waiting.get_nowait()
                for _ in work(block):
                    if stopped:
                        return
                reports.put(block.stop - block.start)
        except Empty:
            pass
        except BaseException as error:  # raised in the thread of the caller
            reports.put(error)
        finally:
            reports.put(None)

    # Threads belong to this call and not to the process, so that a fork inherits none.
    threads = [threading.Thread(target=run, name=f"kernpool-{i}", daemon=True) for i in range(min(n_jobs, len(blocks)))]
    try:
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            report = reports.get()
            if isinstance(report, BaseException):
                raise report
            if report is None:
                running -= 1
                continue
            done += report
            if progress is not None:
                progress(done, total)
    finally:  # Ctrl-C, an exception of `work` or of `progress`: the other threads end after their current piece
        stopped.append(True)
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def run_passes(passes: Sequence[tuple[Work, Sequence[slice]]], n_jobs: int, progress: Progress | None) -> None:
    """Run several passes over blocks of rows one after the other, with one progress count for all of them."""
    total, before = sum(block.stop - block.start for _, blocks in passes for block in blocks), 0
    for work, blocks in passes:
        after = before + sum(block.stop - block.start for block in blocks)
        run_blocks(work, blocks, n_jobs, progress and progress_between(progress, before, after, total))
        before = after


def weighted_sum(weight: Array, x: Array) -> Array:
    """Return ``weight @ x``; the result does not depend on the number of BLAS threads, to the last bit."""
    return np.asarray(np.einsum("i,i...->...", weight, x))


class OrderedSum:
    """Sum of numbered terms that does not depend on the number of threads, to the last bit."""

    # Terms that arrive early wait for those before them. Blocks start in order and take about equal times, so few wait:
    # about as many as there are threads.

    def __init__(self, total: Array) -> None:
        self._total, self._next = total, 0
        self._waiting: dict[int, Array] = {}
        self._lock = threading.Lock()

    def add(self, number: int, term: Array) -> None:
        """Add a term in the order of its number, counted from zero; a term that arrives early waits for its turn."""
        with self._lock:
            self._waiting[number] = term
            while self._next in self._waiting:
                self._total += self._waiting.pop(self._next)
                self._next += 1


_lock = threading.Lock()
_inside = 0  # callers of `blas_threads`
_before: Any = None  # the handle that restores the limits as they were


@contextmanager
def blas_threads() -> Iterator[None]:
    """Limit the BLAS libraries to one thread while any caller is inside the ``with`` block."""
    # The setting belongs to the process: the first caller remembers what was set and the last one restores it. With a
    # memory per caller, two overlapping callers would leave it at one.
    global _before, _inside
    with _lock:
        if not _inside:
            _before = _blas().limit(limits=1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _before.restore_original_limits()


@cache
def _blas() -> Any:
    """Return the controller of the BLAS libraries of this process, cached."""
    # To find them takes a millisecond. Those that are loaded later are others' own; compiled loops call that of SciPy.
    import scipy.linalg  # noqa: F401  # has to be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _forget(*_: Any) -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # the lock may be held by a thread that the child does not have
    os.register_at_fork(after_in_child=_forget)


@cache
def vector_bits() -> int:
    """Return the width of vectors in compiled loops in bits: 512 with AVX-512, 256 elsewhere."""
    # NumPy knows what the processor has, and ``NUMBA_CPU_FEATURES`` overrules it, since that is what is compiled for.
    # ARM counts as 256: narrower vectors, but as many in flight.
    asked = os.environ.get("NUMBA_CPU_FEATURES")
    if asked is not None:
        return 512 if "+avx512f" in asked.split(",") else 256
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # no public way tells

    return 512 if __cpu_features__.get("AVX512F") else 256
