"""What the page is told: no lost digit, no name that ends a script, and refusals with the remedy."""

import json
import runpy
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from kernpool import (
    LocalLinearRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    explore,
    open_chunks,
)
from kernpool.datasets import make_sine_linear
from kernpool.explorer.explorer_model import BUNDLE, packed_module, payload_of
from tests.support.explorer_payloads import unpacked

X = np.array([[0.1], [0.2], [1 / 3], [np.pi]])
Y = np.array([1.0, 2.0, 1e-300, 0.1 + 0.2])


def floats(packed):
    return np.frombuffer(b64decode(packed["f64"]), dtype="<f8")


def integers(packed):
    return np.frombuffer(b64decode(packed["i32"]), dtype="<i4")


def payload(*arguments, **keywords):
    found = payload_of(explore(*arguments, **keywords).subject)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def test_numbers_arrive_bit_by_bit():
    found = payload(X, Y, bandwidth=0.5)
    assert_array_equal(floats(found["columns"][0]["values"]), X[:, 0])
    assert_array_equal(floats(found["target"]["values"]), Y)
    assert found["settings"]["bandwidth"] == [0.5]
    assert (found["task"], found["rows"], found["weight"], found["truth"]) == ("regression", 4, None, None)


def test_columns_and_levels_are_told_in_their_order_as_python_has_them():
    """Text that looks like a number stays text, a number stays a number."""
    frame = pd.DataFrame({"zip": ["02139", "94305", "02139", 'a "b"\\\n'], "x": X[:, 0], "year": [1, 2, 4, 2]})
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.1, 0.2], ordered=["year"], unseen="unlike").fit(
        frame, Y, sample_weight=[1, 2, 1, 1], groups=[0, 0, 1, 1]
    )
    found = payload(model)
    code, x, year = found["columns"]
    assert [eval(literal) for literal in code["literals"]] == code["levels"] == ["02139", "94305", 'a "b"\\\n']
    assert (code["kind"], integers(code["codes"]).tolist(), x["name"], x["kind"]) == (
        "unordered", [0, 1, 0, 2], "x", "numeric",
    )  # fmt: skip
    assert code["largest"] == pytest.approx(2 / 3)
    assert (year["kind"], year["literals"], year["places"]) == ("ordered", ["1", "2", "4"], [1.0, 2.0, 4.0])
    assert tuple(found["python"][name] for name in ("weighted", "grouped", "unseen")) == (True, True, "unlike")


def test_columns_of_two_levels_are_numbers_with_levels():
    """In a plane: what the page shows as a choice, and Python is told by name."""
    frame = pd.DataFrame(
        {"smoker": ["yes", "no", "no", "yes"] * 6, "x": np.linspace(0, 1, 24), "ok": [True, False] * 12}
    )
    model = LocalLinearRegressor(bandwidth=[1.0, 0.5, 1.0], ridge=0.5).fit(frame, np.arange(24.0))
    found = payload(model)
    smoker, x, ok = found["columns"]
    assert (smoker["kind"], smoker["levels"], smoker["literals"]) == ("numeric", ["no", "yes"], ["'no'", "'yes'"])
    assert floats(smoker["values"])[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert (x["kind"], "levels" in x) == ("numeric", False)
    assert ok["kind"] == "numeric"
    assert found["column"] == 1  # x: of two levels there is no curve
    with pytest.raises(ValueError, match="two categories"):
        explore(model, truth=np.sin)
    assert payload(model, query=["yes", 0.25, False])["query"] == {"numeric": [1.0, 0.25, 0.0], "codes": []}


def test_relevance_is_of_numbers_and_then_of_levels():
    """As bandwidths and smoothing are, wherever the columns stand."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(list("abc"), 60), "a": rng.uniform(size=60), "b": rng.uniform(size=60)})
    model = NadarayaWatsonRegressor().fit(frame, np.sin(6 * frame.a) + (frame.town == "a"))
    town, a, b = model.relevance_
    assert payload(model)["relevance"] == [a, b, town]
    assert a > 1.0 > town > b  # so that the test can tell
    assert payload(X, Y, bandwidth=1.0)["relevance"] is None


NAMED = pd.Series(Y, name="foodexp")
LABELLED = {"task": "classification", "target.classes": ["no", "yes"], "target.codes": [0, 1, 0, 1]}
COUNTED = LocalLinearRegressor(bandwidth=1.0, ridge=0.25).fit(
    X, Y, sample_weight=[1, 2, 3, 4], groups=["a", "a", "b", "b"]
)


@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        ((X, NAMED), {"bandwidth": 0.5}, {"target.name": "foodexp"}),
        ((X, ["no", "yes", "no", "yes"]), {"bandwidth": 1.0}, LABELLED),
        ((NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [0, 1, 0, 1]),), {}, {"target.classes": ["0", "1"]}),
        ((COUNTED,), {}, {"settings.degree": 1, "settings.ridge": 0.25, "weight": [1.0, 2.0, 3.0, 4.0],
                          "group": [0, 0, 1, 1]}),
        (("make_sine_power",), {"degree": 1, "kernel": "boxcar", "bandwidth": 0.3, "target": "height"},
         {"settings.degree": 1, "settings.kernel": "boxcar", "settings.bandwidth": [0.3], "target.name": "height",
          "python.unseen": "raise"}),
    ],
)  # fmt: skip
def test_the_page_is_told_what_was_asked_for(arguments, keywords, expected):
    def read(part, names):
        for name in names.split("."):
            part = part[name]
        if isinstance(part, dict):
            part = (floats if "f64" in part else integers)(part).tolist()
        return part

    found = payload(*arguments, **keywords)
    assert {name: read(found, name) for name in expected} == expected


def test_generators_come_with_seeds_for_a_class():
    found = payload("make_sine_linear", seed=3)
    assert {(sample["generator"], sample["seed"]) for sample in found["samples"]} == {
        (name, seed) for name in ("make_sine_linear", "make_sine_power") for seed in range(10)
    }
    sample = make_sine_linear(random_state=3)
    namespace = {}
    exec(found["python"]["load"], namespace)
    assert_array_equal(namespace["X"][:, 0], sample.x_train)
    assert_array_equal(namespace["y"], sample.y_train)
    assert len(payload("make_sine_linear", seed=77)["samples"]) == 21


def test_truth_is_a_function_a_pair_or_of_the_sample():
    along = payload(X, Y, truth=np.sin)["truth"]
    assert_array_equal(floats(along["y"]), np.sin(floats(along["x"])))
    pair = payload(X, Y, truth=([2.0, 1.0], [5.0, 6.0]))["truth"]
    assert (floats(pair["x"]).tolist(), floats(pair["y"]).tolist()) == ([1.0, 2.0], [6.0, 5.0])
    sample = make_sine_linear(random_state=0)
    assert_array_equal(floats(payload(sample)["truth"]["x"]), sample.x_test)


def test_column_and_query_to_begin_with():
    frame = pd.DataFrame({"town": ["b", "a", "b", "c"], "x": X[:, 0], "z": Y})
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 1.0], smoothing=[0.1]).fit(frame, Y)
    found = payload(model, column="z", query=["c", 0.25, 2.5])
    assert (found["column"], found["query"]) == (1, {"numeric": [0.25, 2.5], "codes": [2]})
    for keywords, words in (
        ({"column": "town"}, "'x', 'z'; got 'town'"),
        ({"query": [1.0]}, "with 3 cells, got 1"),
        ({"query": ["c", np.nan, 1.0]}, "query must be a row of X: column 1 of X is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            explore(model, **keywords)


def test_sizes():
    """What a page carries: the module in 75 kB, a page of 1000 rows in 200 kB."""
    rng = np.random.default_rng(0)
    page = explore(rng.uniform(size=(1000, 1)), rng.normal(size=1000), bandwidth=0.1, truth=np.sin).html()
    assert len(packed_module()) < 75_000
    assert len(page.encode()) < 200_000


LEVELS = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1]).fit(pd.DataFrame({"g": list("abab")}), Y)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((X,), {}, r"explore\(X, y\)"),
        ((7,), {}, "explore takes a fitted"),
        ((NadarayaWatsonRegressor(),), {}, "not fitted"),
        (("make_moons",), {}, "make_sine_power"),
        (("make_sine_power", Y), {}, "y: a generator makes its rows"),
        ((X, Y), {"degree": 2}, "degree must be 0 or 1"),
        ((X, Y), {"seed": 2}, "seed: only for a generator"),
        ((NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y),), {"degree": 1}, "degree: a fitted"),
        ((X, ["a", "b", "a", "b"]), {"degree": 1}, "labels"),
        ((X, Y), {"truth": lambda x: x[:2]}, "one finite value per point"),
        ((X, Y), {"truth": ([1.0], [1.0], [1.0])}, "pair"),
        ((X, np.column_stack([Y, Y])), {"bandwidth": 1.0}, "one output"),
        ((NadarayaWatsonRegressor(bandwidth=1.0).fit(open_chunks([(X, Y)])),), {}, "not in memory"),
        ((LEVELS,), {}, "categorical columns alone"),
        ((LocalPolynomialRegressor(degree=2, bandwidth=2.0).fit(X, Y),), {}, "degree=2 .*use LocalLinearRegressor"),
    ],
)  # fmt: skip
def test_what_cannot_be_explored_is_refused_with_the_remedy(arguments, keywords, words):
    with pytest.raises((TypeError, ValueError), match=words):
        explore(*arguments, **keywords)


def test_pages_are_whole_or_not_there(tmp_path):
    explorer = explore(X, Y, bandwidth=0.5, title="</script><b>&", target='"y"')
    path = explorer.to_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<title>&lt;/script&gt;&lt;b&gt;&amp;</title>" in text
    with pytest.raises(FileExistsError):
        explorer.to_html(path)
    assert explorer.to_html(path, force=True).read_text(encoding="utf-8") == text
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert explorer._repr_html_().startswith("<iframe srcdoc=")  # in a notebook


def test_a_page_of_many_rows_has_a_sample_and_all_rows_are_counted():
    x = np.arange(100_001.0)
    many = explore(NadarayaWatsonRegressor(bandwidth=1.0).fit(x[:, None], 2 * x))
    payload = payload_of(many.subject)
    kept, value = unpacked(payload["columns"][0]["values"]), unpacked(payload["target"]["values"])
    assert payload["rows"] == 100_001
    assert (len(kept), len(np.unique(kept))) == (100_000, 100_000)
    assert_array_equal(value, 2 * kept)


TOOL = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "bundle_explorer.py"))


def test_the_bundle_is_of_the_sources():
    first = BUNDLE.read_text(encoding="utf-8").partition("\n")[0]
    assert first == TOOL["header"](), "sources are newer than page.js; run: python tools/bundle_explorer.py"


@pytest.mark.slow
def test_the_bundle_is_what_esbuild_makes(tmp_path):
    """Byte by byte, so that what is committed has been written by nobody else."""
    if shutil.which("npx") is None or subprocess.run([*TOOL["ESBUILD"], "--version"], capture_output=True).returncode:
        pytest.skip("npx, or esbuild by it, is not to be had here")
    TOOL["bundle"](tmp_path / "page.js")
    assert (tmp_path / "page.js").read_bytes() == BUNDLE.read_bytes()


def test_windows_that_the_page_does_not_show():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 24, (5001, 2)), np.arange(5001.0)
    for options, words in (
        ({"bandwidth": [500.0, 500.0], "geographic": (0, 1)}, "this model has geographic=; fit without it"),
        ({"bandwidth": [2.0, 1.0], "periodic": {0: 24}}, "shows for up to 5000 rows, got 5001; fit to a"),
        ({"window": Nearest(20), "bandwidth": [1.0, 1.0]}, "only for regressions of 3 to 5000 rows"),
    ):
        with pytest.raises(ValueError, match=words):
            explore(NadarayaWatsonRegressor(**options).fit(X, y))


def test_numbers_that_are_objects_are_no_labels():
    subject = explore(X, Y.astype(object), bandwidth=0.3).subject
    assert not subject.is_classifier
    assert_array_equal(subject.model.value_.ravel(), Y)
