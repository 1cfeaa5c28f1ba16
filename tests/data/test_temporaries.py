"""What killed processes leave behind is gone after the next save, and what living ones are writing is not."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, load_model, save_model
from kernpool.data.files import whole_file, whole_folder

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL and no flock")

SAVE = """
import sys
from kernpool import NadarayaWatsonRegressor, save_model
from kernpool.data import folders as model_files
model = NadarayaWatsonRegressor(bandwidth=3.0).fit([[0.0], [1.0]], [0.0, 1.0])
{half_way}
save_model(model, "k.mod", force=True)
"""
# Copies of one process that has loaded everything, which takes more than a second: one copy per line of input.
COPIES = """
import os, shutil, signal, sys
from kernpool import NadarayaWatsonRegressor, save_model
from kernpool.data import folders as model_files
model = NadarayaWatsonRegressor(bandwidth=3.0).fit([[0.0], [1.0]], [0.0, 1.0])
for line in sys.stdin:
    folder, half_way = line.rstrip().split(chr(9))
    if not (copy := os.fork()):
        os.chdir(folder)
        exec(half_way)
        save_model(model, "k.mod", force=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
"""
KILLED_BEFORE_THE_HEADER = "model_files.write_header = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
KILLED_WHEN_REMOVING_THE_OLD = "shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)"
WAITS_BEFORE_THE_HEADER = """
whole = model_files.write_header
def write(*parts):
    print("waiting", flush=True)
    sys.stdin.readline()
    whole(*parts)
model_files.write_header = write
"""
HALF_A_FILE = """
import os, signal
from pathlib import Path
from kernpool.data.files import whole_file
with whole_file(Path("out.csv")) as path:
    path.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def save(bandwidth=1.0):
    save_model(NadarayaWatsonRegressor(bandwidth=bandwidth).fit([[0.0], [1.0]], [0.0, 1.0]), "k.mod", force=True)


@pytest.fixture(scope="module")
def copies():
    with subprocess.Popen(
        [sys.executable, "-c", COPIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def killed(tmp_path, copies):
    """Kill a process that saves, half way."""

    def run(half_way):
        copies.stdin.write(f"{tmp_path}\t{half_way}\n")
        copies.stdin.flush()
        assert int(copies.stdout.readline()) == -signal.SIGKILL

    return run


def test_a_killed_save_is_swept_by_the_next(tmp_path, killed):
    killed(KILLED_BEFORE_THE_HEADER)
    assert len(names(tmp_path)) == 1
    assert names(tmp_path)[0].startswith(".k.mod.")
    save()
    assert names(tmp_path) == ["k.mod"]
    killed(KILLED_BEFORE_THE_HEADER)
    killed(KILLED_WHEN_REMOVING_THE_OLD)  # the new one is there, the old one is still to go
    assert load_model("k.mod").bandwidth_ == [3.0]
    assert len(names(tmp_path)) == 3
    save()
    assert names(tmp_path) == ["k.mod"]


@pytest.mark.slow  # two more processes
def test_a_living_save_is_left_alone(tmp_path):
    command = [sys.executable, "-c", SAVE.format(half_way=WAITS_BEFORE_THE_HEADER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout.readline() == "waiting\n"
        save()
        save(2.0)
        (temporary,) = [name for name in names(tmp_path) if name != "k.mod"]
        assert (tmp_path / temporary / "key_.npy").is_file()
        assert load_model("k.mod").bandwidth_ == [2.0]
        living.communicate("go on\n")
    assert living.returncode == 0
    assert names(tmp_path) == ["k.mod"]
    assert load_model("k.mod").bandwidth_ == [3.0]


def test_what_others_have_made_is_left_alone(tmp_path, killed):
    killed(KILLED_BEFORE_THE_HEADER)
    (stale,) = tmp_path.iterdir()
    mine = [".k.mod.settings", ".k.mod.kernpool", ".k.mod.kernpool-notes", ".other.kernpool-abcd1234", stale.name + "x"]
    for name in mine:
        (tmp_path / name).mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").write_text("years of work")
    link = stale.name[:-1] + ("a" if stale.name[-1] != "a" else "b")
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    save()
    assert names(tmp_path) == sorted([*mine, link, "elsewhere", "k.mod"])
    assert (tmp_path / "elsewhere" / "thesis.txt").is_file()


@pytest.mark.slow  # a process of its own
def test_files_too(tmp_path):
    assert subprocess.run([sys.executable, "-c", HALF_A_FILE], check=False).returncode == -signal.SIGKILL
    (half,) = tmp_path.iterdir()
    assert half.read_text() == "half"
    assert half.suffix == ".csv"
    with whole_file(tmp_path / "out.csv") as outer:
        outer.write_text("outer")
        with whole_file(tmp_path / "out.csv") as inner:  # which sweeps, and leaves the outer one
            inner.write_text("inner")
        assert outer.read_text() == "outer"
        (tmp_path / "out.csv").unlink()
    assert names(tmp_path) == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "outer"


def test_a_file_system_without_locks(tmp_path, killed, monkeypatch):
    """Nothing is swept then, and all else works."""
    killed(KILLED_BEFORE_THE_HEADER)
    import fcntl

    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    save()
    assert len(names(tmp_path)) == 2
    monkeypatch.undo()
    os.chdir(tmp_path)
    save()
    assert names(tmp_path) == ["k.mod"]


def test_folders_are_ordinary_ones(tmp_path):
    before = os.umask(0o022)
    try:
        with whole_folder(tmp_path / "new") as folder:
            np.save(folder / "a.npy", np.zeros(3))
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755


def test_the_old_folder_stays_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    from pathlib import Path

    save(2.0)
    whole = Path.replace

    def fails_for_the_new_one(self, target):
        if (self / "model.json").is_file() and self.name.startswith(".") and not old:
            old.append(self)
            raise OSError(16, "Device or resource busy")
        return whole(self, target)

    old = []
    monkeypatch.setattr(Path, "replace", fails_for_the_new_one)
    with pytest.raises(OSError, match="busy"):
        save(1.0)
    assert names(tmp_path) == ["k.mod"]
    assert load_model("k.mod").bandwidth_ == [2.0]
