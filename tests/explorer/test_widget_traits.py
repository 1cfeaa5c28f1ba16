"""Traits of the widget: what no page can show is refused and changes nothing, and the model is what is shown."""

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, explore
from kernpool.datasets import make_sine_linear

pytest.importorskip("anywidget", reason="needs anywidget: the widget extra")
traitlets = pytest.importorskip("traitlets", reason="needs anywidget: the widget extra")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(40, 2))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": RNG.choice(list("nsw"), 40)})
Y = np.sin(6 * X[:, 0]) + X[:, 1]


def refused(widget, name, value, words):
    before = widget.get_state()
    with pytest.raises(traitlets.TraitError, match=words):
        setattr(widget, name, value)
    assert widget.get_state() == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bandwidth", [1.0], "bandwidth must be 2 numbers"),
        ("kernel", "none", "kernel must be one of"),
        ("composition", "none", "composition"),
        ("degree", 2, "degree"),
        ("smoothing", [3.0], r"smoothing must be from 0 to \[0.66"),
        ("widths", "wide", "widths must be 'fixed' or 'nearest', got 'wide'"),
        ("widths", "nearest", "neighbors must be a number of rows from 1 on, of a model of one numeric column"),
        ("neighbors", 5, "of a model of one numeric column, got 5"),
        ("column", 7, "column must be one of 0, 1, got 7"),
        ("query", [1.0], "query must be 2 numbers"),
        ("levels", [9], "codes"),
        ("sample", 0, "sample must be one of None, got 0"),
    ],
)
def test_what_no_page_can_show_is_refused(name, value, words):
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 0.3], smoothing=[0.2]).fit(FRAME, Y)
    explorer = explore(model)
    refused(explorer.widget, name, value, words)
    np.testing.assert_array_equal(explorer.model.predict(FRAME), model.predict(FRAME))


def test_what_a_page_shows_is_taken():
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 0.3], smoothing=[0.2], unseen="unlike").fit(FRAME, Y)
    explorer = explore(model)
    widget = explorer.widget
    with widget.hold_trait_notifications():  # as a message of the page does
        widget.bandwidth, widget.composition, widget.smoothing, widget.degree = [0.1, 0.2], "product", [0.5], 1
        widget.query, widget.levels, widget.column = [0.5, 0.25], [-1], 1
    expected = LocalLinearRegressor(
        bandwidth=[0.1, 0.2], composition="product", smoothing=[0.5], ridge=0.0, unseen="unlike"
    ).fit(FRAME, Y)
    np.testing.assert_array_equal(explorer.model.predict(FRAME), expected.predict(FRAME))


def test_windows_to_the_nearest_rows_are_taken():
    model = NadarayaWatsonRegressor("tricube", widths="nearest", n_neighbors=15).fit(X[:, :1], Y)
    explorer = explore(model)
    assert (explorer.widget.widths, explorer.widget.neighbors) == ("nearest", 15)
    np.testing.assert_array_equal(explorer.model.predict(X[:, :1]), model.predict(X[:, :1]))
    refused(explorer.widget, "neighbors", 0, "got 0")
    explorer.widget.neighbors = 7
    expected = NadarayaWatsonRegressor("tricube", widths="nearest", n_neighbors=7).fit(X[:, :1], Y)
    np.testing.assert_array_equal(explorer.model.predict(X[:, :1]), expected.predict(X[:, :1]))
    explorer.widget.widths = "fixed"
    fixed = NadarayaWatsonRegressor("tricube", bandwidth=model.bandwidth_[0]).fit(X[:, :1], Y)
    np.testing.assert_array_equal(explorer.model.predict(X[:, :1]), fixed.predict(X[:, :1]))


def test_the_first_query_is_in_the_middle():
    frame = pd.DataFrame({"smoker": ["yes", "no"] * 20, "b": X[:, 1], "town": FRAME.town})
    model = LocalLinearRegressor(bandwidth=[1.0, 0.5], smoothing=[0.2], ridge=0.5).fit(frame, Y)
    widget = explore(model).widget
    town = sorted(set(frame.town)).index(frame.town.mode()[0])
    assert (widget.query, widget.levels, widget.column) == ([1.0, float(np.median(X[:, 1]))], [town], 1)
    refused(widget, "column", 0, "column must be one of 1, got 0")  # of two levels there is no curve
    widget = explore(model, query=["no", 0.25, "w"]).widget
    assert (widget.query, widget.levels) == ([0.0, 0.25], [2])


def test_the_model_is_of_the_draw_that_is_shown():
    explorer = explore("make_sine_power", degree=1, bandwidth=0.4, ridge=0.5)
    numbers = [(one["generator"], one["seed"]) for one in explorer.widget.payload["samples"]]
    explorer.widget.sample = numbers.index(("make_sine_linear", 7))
    explorer.widget.bandwidth = [0.6]
    sample = make_sine_linear(random_state=7)
    expected = LocalLinearRegressor(bandwidth=0.6, ridge=0.5).fit(sample.x_train[:, None], sample.y_train)
    np.testing.assert_array_equal(explorer.model.key_[:, 0], sample.x_train)
    np.testing.assert_array_equal(explorer.model.predict(X[:, :1]), expected.predict(X[:, :1]))
    refused(explorer.widget, "sample", 20, "19, got 20")
    explorer.widget.sample = None
    np.testing.assert_array_equal(explorer.model.key_, explorer.subject.model.key_)


def test_a_fault_of_the_engine_is_told(monkeypatch):
    """A question without an answer would keep the page waiting for ever."""
    widget = explore(NadarayaWatsonRegressor(bandwidth=0.3).fit(X, Y)).widget
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)

    def fail(*_):
        raise MemoryError("too many")

    monkeypatch.setattr("kernpool.explorer.widget.answer", fail)
    widget._hear(widget, {"id": 7, "request": {"kind": "query"}}, [])
    monkeypatch.undo()
    monkeypatch.setattr(widget, "send", sent.append)
    widget._hear(widget, {"id": 8, "request": {"kind": "evil"}}, [])
    widget._hear(widget, {"id": 9, "request": {"kind": "query", "query": {"numeric": [0.5, 0.5]}}}, [])
    assert sent[0] == {"id": 7, "error": "MemoryError: too many"}
    assert "of kind" in sent[1]["error"]
    assert sent[2]["answer"]["reach"] == 40
