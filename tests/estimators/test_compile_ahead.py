"""Loops that are compiled ahead are those that people use: nothing is compiled after it."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from kernpool import get_kernel, kernel_names
from kernpool.estimators import compile_ahead
from kernpool.kernels import is_compiled
from tests.support.commands import kernpool, process

# What a user does next, and how much of it had to be compiled.
AFTER = """
    import warnings; warnings.simplefilter("ignore")
    import numpy as np, kernpool
    from numba.core import event

    class Compiled(event.Listener):
        names = []
        def on_start(self, seen):
            self.names.append(seen.data["dispatcher"].py_func.__qualname__)
        def on_end(self, seen):
            pass

    event.register("numba:compile", Compiled())
    random = np.random.default_rng(1)
    for d in COLUMNS:
        X, y = random.normal(size=(5000, d)), random.normal(size=5000)
        for algorithm in ("auto", "brute"):
            for h in (0.1, 1.0):
                kernpool.pool(X, X, y, kernel=KERNEL, bandwidth=h, algorithm=algorithm, empty="zero")
                kernpool.pool(X, X, y, kernel=KERNEL, bandwidth=h, algorithm=algorithm, empty="zero", exclude_self=True)
    model = kernpool.NadarayaWatsonRegressor(kernel=KERNEL, bandwidth=1.0).fit(X, y)
    model.predict(X[:10])
    print(sorted(set(Compiled.names)))
"""


def compiled_after(kernel, columns, cache):
    code = f"KERNEL, COLUMNS = {kernel!r}, {columns!r}\n" + textwrap.dedent(AFTER)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.slow
def test_nothing_is_compiled_afterwards(tmp_path, monkeypatch):
    assert compiled_after("tricube", [1], tmp_path / "none") != "[]"  # the question can be answered otherwise
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    options = "compile", "--kernels", "tricube", "--columns", "1,3", "--json"
    done = process(*options, "--processes", "2")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["new"] == said["versions"] > 10
    assert said["size"] > 1000
    assert compiled_after("tricube", [1, 3], tmp_path / "cache") == "[]"
    again = json.loads(process(*options, "--processes", "1").stdout)
    assert (again["new"], again["versions"]) == (0, said["versions"])


def test_all_kernels_and_numbers_have_their_tasks():
    tasks = compile_ahead._tasks(None, compile_ahead.COLUMNS)
    assert {kernel for name, kernel, _ in tasks if name == "brute"} == {
        name for name in kernel_names() if is_compiled(get_kernel(name))
    }
    assert {columns for name, _, columns in tasks if name == "brute"} == set(compile_ahead.COLUMNS)
    assert {columns for name, _, columns in tasks if name == "sweep"} == {1}
    assert compile_ahead._tasks(["tophat", "boxcar"], [2, 2]) == compile_ahead._tasks(["boxcar"], [2])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--columns", "a"), "must be whole numbers such as 1,2,3; got 'a'"),
        (("--columns", "0"), "columns must be numbers from 1 to 1000, got [0]"),
        (("--kernels", "gauss"), "--kernels 'gauss' is unknown; did you mean 'gaussian'?"),
        (("--processes", "0"), "--processes must be an integer from 1 on, got 0"),
    ],
)
def test_what_cannot_be_compiled_is_refused(options, says):
    done = kernpool("compile", *options)
    assert done.returncode in (1, 2)
    assert says in done.stderr.decode()
    assert done.stdout == b""


def test_progress_counts_tasks(monkeypatch):
    seen = []
    monkeypatch.setattr(compile_ahead, "run", lambda *_: None)
    found = compile_ahead.compile_ahead(
        ["boxcar"], [1], processes=1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert found.new == 0
