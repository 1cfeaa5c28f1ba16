"""What killed processes leave behind is gone after the next save, and what living ones are writing is not."""

import os
import signal
import subprocess
import sys

import pytest

from kernpool import NadarayaWatsonRegressor, load_model, save_model
from kernpool.data.atomic_files import whole_file
from kernpool.data.model_format import ModelFileError

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL and no flock")

# Copies of one process that has loaded everything, which takes more than a second: one copy per line of input.
COPIES = """
import os, shutil, signal, sys
from kernpool import NadarayaWatsonRegressor, save_model
from kernpool.data import model_format as model_files
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
import sys
from kernpool import NadarayaWatsonRegressor, save_model
from kernpool.data import model_format as model_files
whole = model_files.write_header
def write(*parts):
    print("waiting", flush=True)
    sys.stdin.readline()
    whole(*parts)
model_files.write_header = write
save_model(NadarayaWatsonRegressor(bandwidth=3.0).fit([[0.0], [1.0]], [0.0, 1.0]), "k.mod", force=True)
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
    command = [sys.executable, "-c", WAITS_BEFORE_THE_HEADER]
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


def test_files_too(tmp_path, killed):
    killed(
        "from pathlib import Path; from kernpool.data.atomic_files import whole_file; new = whole_file(Path('out.csv'))"
        "; new.__enter__().write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
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
    before = os.umask(0o027)
    try:
        save()
        save(2.0)
    finally:
        os.umask(before)
    assert mode(tmp_path / "k.mod") == 0o750
    assert {mode(file) for file in (tmp_path / "k.mod").iterdir()} == {0o640}


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_old_files_stay_if_the_new_ones_cannot_take_their_place(tmp_path, monkeypatch):
    from pathlib import Path

    save(2.0)
    (tmp_path / "k.mod" / "notes.txt").write_text("of the fit")
    before = {file.name: file.read_bytes() for file in (tmp_path / "k.mod").iterdir()}
    whole = Path.replace
    for fails in range(1, 20):
        calls = []

        def replace(self, target):
            calls.append(self)  # noqa: B023  # of this turn
            if len(calls) == fails:  # noqa: B023  # of this turn
                raise OSError(16, "Device or resource busy")
            return whole(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        try:
            save(1.0)
        except OSError:
            monkeypatch.undo()
            os.chdir(tmp_path)
            assert names(tmp_path) == ["k.mod"]
            assert {file.name: file.read_bytes() for file in (tmp_path / "k.mod").iterdir()} == before
            assert load_model("k.mod").bandwidth_ == [2.0]
        else:
            break
    assert fails == 2 * (len(before) - 2) + 2  # the old files but the header, the new ones, and no failure
    assert load_model("k.mod").bandwidth_ == [1.0]
    assert (tmp_path / "k.mod" / "notes.txt").read_text() == "of the fit"


def test_a_save_that_was_killed_between_its_files_is_noticed_and_repaired(tmp_path, killed):
    save(2.0)
    killed("from pathlib import Path; Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)")
    assert load_model("k.mod").bandwidth_ == [2.0]
    killed(
        "whole = model_files.Path.replace; model_files.Path.replace = lambda source, target: "
        "os.kill(os.getpid(), signal.SIGKILL) if source.name == 'model.json' else whole(source, target)"
    )
    with pytest.raises(ModelFileError):
        load_model("k.mod")
    save()
    assert load_model("k.mod").bandwidth_ == [1.0]
    assert names(tmp_path) == ["k.mod"]


@pytest.mark.parametrize(("file", "folder"), [(0o600, 0o700), (0o660, 0o770), (0o604, 0o705)])
def test_what_is_replaced_passes_its_permissions_on(tmp_path, file, folder):
    save()
    (tmp_path / "k.mod").chmod(folder)
    for part in (tmp_path / "k.mod").iterdir():
        part.chmod(file)
    model = NadarayaWatsonRegressor(bandwidth=2.0).fit([[0.0], [1.0]], [0.0, 1.0], sample_weight=[1.0, 2.0])
    save_model(model, "k.mod", force=True)  # with a file that the first model had not
    assert mode(tmp_path / "k.mod") == folder
    assert {part.name for part in (tmp_path / "k.mod").iterdir()} > {"key_weight_.npy"}
    assert {mode(part) for part in (tmp_path / "k.mod").iterdir()} == {file}
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "out.csv").chmod(file)
    with whole_file(tmp_path / "out.csv", force=True) as new:
        assert mode(new) == 0o600  # nobody else reads it on the way
        new.write_text("new")
    assert mode(tmp_path / "out.csv") == file


def test_nothing_opens_the_process_for_a_moment(tmp_path, monkeypatch):
    """The umask is of the whole process: other threads would make files with the permissions of a moment."""
    monkeypatch.setattr(os, "umask", None)
    save()
    save(2.0)
    with whole_file(tmp_path / "out.csv") as new:
        new.write_text("new")
    assert names(tmp_path) == ["k.mod", "out.csv"]
