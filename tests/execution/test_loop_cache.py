"""Several processes may compile at once: whoever loads what they have compiled gets what was asked for."""

import os
import pickle
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest

from kernpool.execution.compilation import NamedFiles

# Specialisations of one source with arguments of the same types.
PROBLEMS = {f"{kernel} {d}": (kernel, d) for kernel in ("gaussian", "laplace", "epanechnikov") for d in (1, 2)}

# All processes read what there is before any of them writes, and those that write an index last write their code first.
COMPILE = """
import sys, time
from pathlib import Path
from numba.core.caching import IndexDataCacheFile as Files

folder, own, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def late(method, seconds):
    def waiting(self, *given):
        if "block" in self._index_name:
            (folder / f"{own} is here").touch()
            until = time.monotonic() + 60
            while len(list(folder.glob("* is here"))) < count and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(seconds)
        return method(self, *given)
    return waiting

Files._save_index = late(Files._save_index, 0.1 * own)
Files._save_data = late(Files._save_data, 0.3 * (count - own))
"""

POOL = """
import sys
import numpy as np
from kernpool import pool

def difference(kernel, d):
    generator = np.random.default_rng(int(d))
    query, key = generator.normal(size=(40, int(d))), generator.normal(size=(50, int(d)))
    value = generator.normal(size=50)
    found = [pool(query, key, value, kernel=kernel, bandwidth=3.0, algorithm=name) for name in ("brute", "reference")]
    return abs(found[0] - found[1]).max()

for problem in sys.argv[4:]:
    print(problem, difference(*problem.split()))
"""


def start(folder, code, *arguments):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def output(process):
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out


@pytest.mark.slow
def test_processes_that_compile_at_once_do_not_mix_up_their_loops(tmp_path):
    count = str(len(PROBLEMS))
    processes = [start(tmp_path, COMPILE + POOL, str(i), count, problem) for i, problem in enumerate(PROBLEMS)]
    for process in processes:
        assert float(output(process).split()[-1]) < 1e-14
    assert len(list(tmp_path.glob("* is here"))) == len(PROBLEMS)
    for order in list(permutations(PROBLEMS))[::119]:
        lines = output(start(tmp_path, POOL, "", "", *order)).splitlines()
        assert len(lines) == len(PROBLEMS)
        assert max(float(line.split()[-1]) for line in lines) < 1e-14, lines


def test_versions_that_are_saved_at_once_keep_their_files(tmp_path):
    one, other = (NamedFiles(str(tmp_path), "loop", "stamp") for _ in range(2))
    write = one._save_data

    def late(name, data):
        other.save("other", "its code")
        write(name, data)

    one._save_data = late
    one.save("one", "one's code")
    again = NamedFiles(str(tmp_path), "loop", "stamp")
    assert again.load("one") == "one's code"
    assert again.load("other") == "its code"


def test_a_changed_source_another_key_and_a_foreign_file_are_not_loaded(tmp_path):
    files = NamedFiles(str(tmp_path), "loop", "stamp")
    files.save("one", "code")
    assert files.load("two") is None
    assert NamedFiles(str(tmp_path), "loop", "later").load("one") is None
    (tmp_path / files._name("one")).rename(tmp_path / files._name("two"))
    assert files.load("two") is None
    assert files.load("one") is None


class Alarm:
    def __reduce__(self):
        return pytest.fail, ("code of a damaged file was run",)


DAMAGES = {
    "empty": lambda _: [b""],
    "cut": lambda whole: [whole[:end] for end in range(len(whole))],
    "another byte": lambda whole: [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))],
    "continued": lambda whole: [whole + b"\0", whole + whole],
    "zeros": lambda whole: [bytes(len(whole)), bytes(16)],
    "of an earlier release": lambda whole: [whole[:-32]],
    "another pickle": lambda whole: [pickle.dumps(Alarm()), pickle.dumps(Alarm()) + whole[-32:]],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_as_good_as_none(damage, tmp_path):
    files = NamedFiles(str(tmp_path), "loop", "stamp")
    files.save("one", "code")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in damage(whole):
        path.write_bytes(damaged)
        assert files.load("one") is None
    files.save("one", "code")
    assert path.read_bytes() == whole
    assert files.load("one") == "code"


def test_a_folder_in_place_of_a_file_costs_no_answer(tmp_path):
    files = NamedFiles(str(tmp_path), "loop", "stamp")
    (tmp_path / files._name("one")).mkdir()
    files.save("one", "code")
    assert files.load("one") is None


@pytest.mark.slow  # compiles in processes of their own
def test_a_damaged_cache_costs_time_only(tmp_path):
    """As a power cut leaves it: some files empty, some cut; they are whole after the next call."""
    problem = "gaussian 2"
    expected = output(start(tmp_path, POOL, "", "", problem))
    found = sorted(tmp_path.rglob("*.nbc"))
    assert len(found) > 2
    for i, file in enumerate(found):
        whole = file.read_bytes()
        file.write_bytes((b"", whole[: len(whole) // 2], bytes(len(whole)))[i % 3])
    assert output(start(tmp_path, POOL, "", "", problem)) == expected
    assert sorted(tmp_path.rglob("*.nbc")) == found
    assert min(file.stat().st_size for file in found) > 1000
    sizes = [(file.stat().st_size, file.stat().st_mtime_ns) for file in found]
    assert output(start(tmp_path, POOL, "", "", problem)) == expected
    assert [(file.stat().st_size, file.stat().st_mtime_ns) for file in found] == sizes


def test_a_full_disk_costs_no_answer(tmp_path):
    files = NamedFiles(str(tmp_path / "not there"), "loop", "stamp")
    files.save("one", "code")
    assert files.load("one") is None


def test_types_make_names():
    """What names are made of is written the same in every process, and differs where versions do."""
    from numba import types

    key = [types.Array(dtype, 1, "C", readonly=ro) for dtype in (types.float32, types.float64) for ro in (True, False)]
    assert len({repr(k) for k in key}) == 4
    assert not any(" at 0x" in repr(k) for k in key)
    assert np.all([k == k for k in key])


NEXT = """
import numpy as np
from numba.core import event
from kernpool.algorithms.brute import brute
from kernpool import Problem, choose, pool

compiled = []
class Listener(event.Listener):
    def on_start(self, which):
        compiled.append(which.data["dispatcher"].py_func.__qualname__)
    def on_end(self, which):
        pass

x = np.random.default_rng(0).normal(size=(1500, 9))
with event.install_listener("numba:compile", Listener()):
    for algorithm, d, kernel in (
        ("brute", 1, "gaussian"), ("brute", 9, "laplace"), ("sweep", 1, "gaussian"),
        ("kd_tree", 2, "gaussian"), ("kd_tree", 2, "boxcar"),
    ):
        for value in (x[:, 0], x[:, :2]):
            found = pool(x[:, :d], x[:, :d], value, algorithm=algorithm, kernel=kernel, bandwidth=0.3, empty="zero")
            print(algorithm, d, kernel, found.sum().hex())
    # Local fits by the staged tiles, whose sums are a part of their own.
    for d, kernel in ((1, "boxcar"), (5, "gaussian")):
        for value in (x[:, 0], x[:, :2]):
            for degree in (1, 2) if d == 1 else (1,):
                problem = Problem.from_arrays(x[:, :d], x[:, :d], value, kernel=kernel, bandwidth=2.0, degree=degree)
                print(d, kernel, degree, choose(problem, "brute").reduce(problem).numerator.sum(axis=0).tolist())
    # Gradients, by fused loops and by the staged tiles.
    for d, kernel in ((1, "gaussian"), (3, "epanechnikov")):
        problem = Problem.from_arrays(x[:, :d], x[:, :d], x[:, 0], kernel=kernel, bandwidth=2.0)
        state = choose(problem, "brute").reduce(problem)
        wanted = frozenset({"query", "key", "value", "log_bandwidth"})
        found = brute.pullback(problem, state, x[:, 1:2], wanted)
        print(d, kernel, *(getattr(found, name).sum(axis=0).tolist() for name in sorted(wanted)))
print(sorted(compiled))
"""


@pytest.mark.slow
def test_the_next_process_compiles_nothing_and_pools_the_same(tmp_path):
    """A loop that closes over another one, whose number differs from process to process, would be compiled in each."""
    said, files = [], []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", NEXT], env=environment, check=True, capture_output=True, text=True)
        said.append(done.stdout.splitlines())
        files.append({path.name for path in tmp_path.rglob("*.nbc")})
    assert said[0][:-1] == said[1][:-1]
    assert "sum_near" in said[0][-1]
    assert said[1][-1] == "[]"
    assert files[0] == files[1]
