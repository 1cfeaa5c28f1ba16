"""Notices of long waits: where they are seen, what they say, and that they end."""

import multiprocessing
import sys
import time
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor
from kernpool.execution import progress
from kernpool.execution.progress import current_progress, report_progress


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Standard error is a terminal, and patience short; what was written to it is returned."""
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    monkeypatch.setattr(multiprocessing.current_process(), "_name", "MainProcess")
    monkeypatch.setattr(progress, "LONG", 0.05)
    return lambda: capsys.readouterr().err


def compile_for(notice, seconds):
    with notice.watch():
        time.sleep(seconds)


def test_compiling_is_said_once_after_its_patience(terminal):
    notice = progress.CompileNotice()
    notice._left = 0.2
    compile_for(notice, 0.0)
    assert terminal() == ""
    for _ in range(3):  # of which none takes as long
        compile_for(notice, 0.1)
    assert terminal().count(progress.COMPILING) == 1
    compile_for(notice, 0.3)
    assert terminal() == ""


def test_nothing_is_said_where_nobody_looks(terminal, monkeypatch):
    notice = progress.CompileNotice()
    notice._left = 0.0
    with progress.silence():
        compile_for(notice, 0.05)
    thread = Thread(target=compile_for, args=(notice, 0.05))
    thread.start()
    thread.join()
    monkeypatch.setattr(progress, "is_terminal", lambda: False)
    compile_for(notice, 0.05)
    assert terminal() == ""


def test_a_notebook_sees_notices(terminal, monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(progress, "is_terminal", lambda: False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not progress.is_watched()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress.is_watched()


class SlowRegressor(NadarayaWatsonRegressor):
    """One whose fit takes a while."""

    def fit(self, X, y):
        time.sleep(0.1)
        self.listened = current_progress()
        return super().fit(X, y)


def test_a_long_fit_shows_a_bar_unless_somebody_listens(terminal):
    X = np.linspace(0.0, 1.0, 30)[:, None]
    model = SlowRegressor(bandwidth=0.1).fit(X, X[:, 0])
    assert f"fitting [{'.' * 30}]   0%" in terminal()
    assert model.listened is not None
    assert current_progress() is None
    with report_progress(listener := lambda *_: None):
        assert SlowRegressor(bandwidth=0.1).fit(X, X[:, 0]).listened is listener
    NadarayaWatsonRegressor(bandwidth=0.1).fit(X, X[:, 0])  # quick
    with progress.silence():
        SlowRegressor(bandwidth=0.1).fit(X, X[:, 0])
    assert terminal() == ""
