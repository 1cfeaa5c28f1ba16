"""Threads, forks and interrupts."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import pool
from kernpool.execution.threads import EVEN_ROWS, cut_evenly, resolve_n_jobs
from tests.support.thinning import slow


def test_four_threads_at_once_get_what_one_gets(generator):
    query, key, value = (generator.normal(size=2500) for _ in range(3))
    expected = pool(query, key, value)
    found = [None] * 4

    def work(i):
        found[i] = pool(query, key, value, n_jobs=2)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        assert one.tobytes() == expected.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking beside threads is the very point
def test_a_fork_after_use_works(generator):
    query, key, value = (generator.normal(size=2500) for _ in range(3))
    expected = pool(query, key, value, n_jobs=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if pool(query, key, value, n_jobs=2).tobytes() == expected.tobytes() else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_in_progress_stops_the_work(generator):
    query, key, value = (generator.normal(size=5000) for _ in range(3))

    def listener(done, total):
        raise RuntimeError("enough")

    for n_jobs in (1, 2):
        with pytest.raises(RuntimeError, match="enough"):
            pool(query, key, value, n_jobs=n_jobs, progress=listener)


LONG = {  # of minutes, or again and again: keys, columns, kernel
    "brute": (300_000, 1, "gaussian"),
    "sweep": (2_000_000, 1, "epanechnikov"),
    "kd_tree": (300_000, 2, "gaussian"),
}


@pytest.mark.parametrize("n_jobs", [*slow(1), 2])
@pytest.mark.parametrize("algorithm", ["brute", *slow("sweep", "kd_tree")])
def test_an_interrupt_is_answered(algorithm, n_jobs):
    """A job of minutes ends soon after SIGINT; how soon exactly is measured in benchmarks/."""
    n, columns, kernel = LONG[algorithm]
    script = f"""
    import numpy as np, kernpool
    x, reports = np.random.default_rng(0).normal(size=({n}, {columns})), []
    x[0] = 1e9  # bins of all others are dealt twice
    def report(done, total):  # the sum itself is running by then, and no longer the compiler
        if not reports:
            print("ready", flush=True)
        reports.append(done)
    options = dict(kernel={kernel!r}, n_jobs={n_jobs}, algorithm={algorithm!r}, bandwidth=0.1, progress=report)
    while True:
        kernpool.pool(x, x, x[:, 0], **options)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in error
    assert process.returncode != 0


def test_number_of_threads():
    import joblib

    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(np.int64(2)) == 2
    assert resolve_n_jobs(-1) == joblib.cpu_count()
    assert resolve_n_jobs(None) == 1
    for left_out in (1, 2, 3, 1000):
        assert resolve_n_jobs(-1 - left_out) == max(1, joblib.cpu_count() - left_out)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert resolve_n_jobs(None) == 2


@pytest.mark.parametrize("wrong", [0, 1.5, True, np.True_, "2", np.int64(0), [2], np.array([2])], ids=repr)
def test_what_is_no_number_of_threads_is_told_what_numbers_mean(wrong):
    expected = "n_jobs must be None, a positive number of threads, or a negative one, where -1 is all processors and -2"
    with pytest.raises(ValueError, match=expected):
        resolve_n_jobs(wrong)


@pytest.mark.slow
def test_no_interrupt_is_ever_lost():
    """Many blocks, and an interrupt at any moment: with the locks of concurrent.futures some hung for ever."""
    script = """
    import signal, threading, time
    import numpy as np, kernpool
    x = np.random.default_rng(0).normal(size=200_000)
    kernpool.pool(x[:2000], x[:2000], x[:2000], algorithm="brute")
    for i in range(60):
        timer = threading.Timer(0.002 * (i + 1), signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()  # on a busy machine the interrupt comes while it starts
            kernpool.pool(x, x, x, n_jobs=2, algorithm="brute")
        except KeyboardInterrupt:
            pass
        else:
            raise SystemExit("an interrupt was lost")
        timer.join()
    print("all answered")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "all answered\n", done.stderr


@given(st.integers(0, 10_000), st.integers(1, 3000))
def test_even_slices_cover_all_rows_once_and_are_even(length, size):
    slices = cut_evenly(length, size)
    assert [row for part in slices for row in range(length)[part]] == list(range(length))
    sizes = [part.stop - part.start for part in slices]
    if sizes:
        unit = min(size, EVEN_ROWS)
        assert max(sizes) < size + unit
        assert max(sizes) - min(sizes[:-1], default=max(sizes)) <= unit
        assert all(count % unit == 0 for count in sizes[:-1])
        assert len(sizes) >= min(-(-length // size), -(-length // unit))
