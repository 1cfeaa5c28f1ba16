"""The compile cache knows every file that compiled code comes from, and nothing is compiled from any other."""

import importlib
import re
import signal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from numba.core import event

import kernpool.execution
from kernpool.execution import compilation
from kernpool.execution.compilation import LOOPS, PACKAGE, compiled_sources, digest_of, interrupts_deferred, loop

DECORATORS = re.compile(r"^@(part|loop|ordered_loop|strict_loop|bare_part|bare_loop|by_type)\b", re.MULTILINE)


def test_every_compiled_function_is_in_a_file_that_the_digest_covers():
    compiled = {path for path in PACKAGE.rglob("*.py") if DECORATORS.search(path.read_text(encoding="utf-8"))}
    assert len(compiled) > 14
    assert compiled <= set(compiled_sources(PACKAGE))
    assert {path.parent.name for path in compiled} == {LOOPS}
    assert Path(compilation.__file__) in compiled_sources(PACKAGE)


def test_a_change_in_any_folder_of_loops_changes_the_digest(tmp_path):
    places = [tmp_path / LOOPS, tmp_path / "algorithms" / LOOPS, tmp_path / "algorithms" / "tree" / LOOPS]
    for place in places:
        place.mkdir(parents=True)
        (place / "sums.py").write_text("x = 1")
    seen = {digest_of(compiled_sources(tmp_path))}
    for place in places:
        (place / "sums.py").write_text("x = 2")
        seen.add(digest_of(compiled_sources(tmp_path)))
    (places[2] / "new.py").write_text("")
    seen.add(digest_of(compiled_sources(tmp_path)) + "new")
    assert len(seen) == 5
    before = digest_of(compiled_sources(tmp_path))
    (tmp_path / "algorithms" / "plain.py").write_text("y = 1")  # holds no loop: nothing has to be compiled again
    assert digest_of(compiled_sources(tmp_path)) == before


def test_nothing_is_compiled_outside_of_a_folder_of_loops():
    with pytest.raises(ValueError, match=r"test_compiling\..*f would be compiled outside a folder named 'loops'"):

        @loop
        def f(x):
            return x


class Interruption(event.Listener):
    """An interrupt as soon as Numba begins to compile."""

    def on_start(self, _):
        signal.raise_signal(signal.SIGINT)

    def on_end(self, _):
        pass


def test_an_interrupt_waits_until_the_loop_is_compiled(tmp_path):
    path = tmp_path / LOOPS / "doubles.py"
    path.parent.mkdir()
    path.write_text("from kernpool.execution.compilation import loop\n\n\n@loop\ndef double(x):\n    return 2.0 * x\n")
    spec = spec_from_file_location("doubles", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    handler = signal.getsignal(signal.SIGINT)
    with event.install_listener("numba:compile", Interruption()), pytest.raises(KeyboardInterrupt):
        module.double(1.0)
    assert len(module.double.signatures) == 1  # it was compiled, and the call came to nothing
    assert module.double(1.0) == 2.0
    assert signal.getsignal(signal.SIGINT) is handler


def test_handlers_other_than_functions_stay(monkeypatch):
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)  # as in the background of a shell
    monkeypatch.setattr(signal, "signal", None)
    with interrupts_deferred():
        pass


def test_loops_that_are_not_compiled_are_refused(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(ImportError, match="unset NUMBA_DISABLE_JIT"):
        importlib.reload(kernpool.execution)
