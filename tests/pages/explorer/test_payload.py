"""What the page is told: no lost digit, no name that ends a script, and refusals with the remedy."""

import json
from base64 import b64decode

import numpy as np
import pandas as pd
import pytest

from kernpool import (
    LearnedPoolingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    explore,
    open_chunks,
)
from kernpool.datasets import make_sine_linear
from kernpool.kernels import BUILT_IN
from kernpool.pages.explorer.packing import packed_module
from kernpool.pages.explorer.payload import payload_of

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
    np.testing.assert_array_equal(floats(found["columns"][0]["values"]), X[:, 0])
    np.testing.assert_array_equal(floats(found["target"]["values"]), Y)
    assert found["settings"]["bandwidth"] == [0.5]
    assert (found["task"], found["rows"], found["weight"], found["truth"]) == ("regression", 4, None, None)


def test_columns_are_told_in_their_order():
    frame = pd.DataFrame({"town": ["b", "a", "b", "c"], "x": X[:, 0], "year": [2000, 2001, 2003, 2001]})
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.1, 0.2], ordered=["year"]).fit(frame, Y)
    town, x, year = payload(model)["columns"]
    assert (town["kind"], town["levels"], integers(town["codes"]).tolist()) == (
        "unordered",
        ["a", "b", "c"],
        [1, 0, 1, 2],
    )
    assert (x["name"], x["kind"]) == ("x", "numeric")
    assert (year["kind"], year["levels"], year["places"]) == (
        "ordered",
        ["2000", "2001", "2003"],
        [2000.0, 2001.0, 2003.0],
    )
    assert town["largest"] == pytest.approx(2 / 3)


def test_classes_have_names_and_numbers():
    found = payload(X, ["no", "yes", "no", "yes"], bandwidth=1.0)
    assert found["task"] == "classification"
    assert found["target"]["classes"] == ["no", "yes"]
    assert integers(found["target"]["codes"]).tolist() == [0, 1, 0, 1]
    assert 0.0 < found["settings"]["priorShare"] < 1.0


def test_a_ridge_is_told():
    model = LocalLinearRegressor(bandwidth=0.5, ridge=0.25).fit(X, Y)
    assert (payload(model)["settings"]["degree"], payload(model)["settings"]["ridge"]) == (1, 0.25)


def test_weights_and_groups_are_told():
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y, sample_weight=[1, 2, 3, 4], groups=["a", "a", "b", "b"])
    found = payload(model)
    assert floats(found["weight"]).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert integers(found["group"]).tolist() == [0, 0, 1, 1]


def test_generators_come_with_seeds_for_a_class():
    found = payload("make_sine_linear", seed=3)
    assert {(sample["generator"], sample["seed"]) for sample in found["samples"]} == {
        (name, seed) for name in ("make_sine_linear", "make_sine_power") for seed in range(10)
    }
    sample = make_sine_linear(random_state=3)
    np.testing.assert_array_equal(floats(found["columns"][0]["values"]), sample.x_train)
    np.testing.assert_array_equal(floats(found["truth"]["y"]), sample.y_truth)
    namespace = {}
    exec(found["python"]["load"], namespace)
    np.testing.assert_array_equal(namespace["X"][:, 0], sample.x_train)
    np.testing.assert_array_equal(namespace["y"], sample.y_train)
    assert len(payload("make_sine_linear", seed=77)["samples"]) == 21


def test_truth_is_a_function_a_pair_or_of_the_sample():
    along = payload(X, Y, truth=np.sin)["truth"]
    np.testing.assert_array_equal(floats(along["y"]), np.sin(floats(along["x"])))
    pair = payload(X, Y, truth=([2.0, 1.0], [5.0, 6.0]))["truth"]
    assert (floats(pair["x"]).tolist(), floats(pair["y"]).tolist()) == ([1.0, 2.0], [6.0, 5.0])
    sample = make_sine_linear(random_state=0)
    np.testing.assert_array_equal(floats(payload(sample)["truth"]["x"]), sample.x_test)


def test_column_and_query_to_begin_with():
    frame = pd.DataFrame({"town": ["b", "a", "b", "c"], "x": X[:, 0], "z": Y})
    model = NadarayaWatsonRegressor(bandwidth=[0.3, 1.0], smoothing=[0.1]).fit(frame, Y)
    found = payload(model, column="z", query=["c", 0.25, 2.5])
    assert (found["column"], found["query"]) == (1, {"numeric": [0.25, 2.5], "codes": [2]})
    assert payload(model, column=1)["column"] == 0
    found = payload(X, Y, bandwidth=1.0, query=[0.5])
    assert (found["column"], found["query"]) == (0, {"numeric": [0.5], "codes": []})
    for keywords, words in (
        ({"column": "town"}, "'x', 'z'; got 'town'"),
        ({"column": 7}, "got 7"),
        ({"query": [1.0]}, "with 3 cells, got 1"),
        ({"query": ["c", np.nan, 1.0]}, "query must be a row of X: .*nan"),
        ({"query": ["d", 1.0, 1.0]}, "query must be a row of X: .*'d'"),
    ):
        with pytest.raises(ValueError, match=words):
            explore(model, **keywords)


def test_sizes():
    """What a page carries: the module of all kernels in 60 kB, a page of 1000 rows in 200 kB."""
    rng = np.random.default_rng(0)
    page = explore(rng.uniform(size=(1000, 1)), rng.normal(size=1000), bandwidth=0.1, truth=np.sin).html()
    assert len(packed_module(BUILT_IN)) < 60_000
    assert len(page.encode()) < 200_000


@pytest.mark.parametrize(
    ("arguments", "keywords", "kind", "words"),
    [
        ((X,), {}, ValueError, r"explore\(X, y\)"),
        ((7,), {}, TypeError, "explore takes a fitted"),
        ((LearnedPoolingRegressor(),), {}, TypeError, "explore takes a fitted"),
        ((NadarayaWatsonRegressor(),), {}, ValueError, "not fitted"),
        (("make_moons",), {}, ValueError, "make_sine_power"),
        (("make_sine_power", Y), {}, TypeError, "y: a generator makes its rows"),
        ((X, Y), {"degree": 2}, ValueError, "degree must be 0 or 1"),
        ((X, ["a", "b", "a", "b"]), {"degree": 1}, ValueError, "labels"),
        ((X, Y), {"truth": lambda x: x[:2]}, ValueError, "one finite value a place"),
        ((X, Y), {"truth": lambda x: np.nan * x}, ValueError, "one finite value a place"),
        ((X, Y), {"truth": ([1.0], [1.0], [1.0])}, ValueError, "pair"),
        ((X, Y), {"language": "fr"}, ValueError, "language must be"),
        ((X, np.column_stack([Y, Y])), {"bandwidth": 1.0}, TypeError, "one output"),
        ((X, Y), {"bandwidth": 1.0, "scale": "rank"}, ValueError, "scale='raw'"),
        ((NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y),), {"bandwidth": 2.0}, TypeError, "bandwidth: a fitted"),
        ((NadarayaWatsonRegressor(bandwidth=1.0).fit(open_chunks([(X, Y)])),), {}, TypeError, "chunks"),
        (
            (NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1]).fit(pd.DataFrame({"g": list("abab")}), Y),),
            {},
            ValueError,
            "levels alone",
        ),
    ],
)
def test_what_cannot_be_explored_is_refused_with_the_remedy(arguments, keywords, kind, words):
    with pytest.raises(kind, match=words):
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


def test_more_rows_than_a_page_holds_are_refused():
    many = NadarayaWatsonRegressor(bandwidth=1.0).fit(np.arange(100_001.0)[:, None], np.zeros(100_001))
    with pytest.raises(ValueError, match="kernpool explore"):
        explore(many).html()


def test_classifier_of_numbers_is_explored_as_one():
    model = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [0, 1, 0, 1])
    assert payload(model)["target"]["classes"] == ["0", "1"]
