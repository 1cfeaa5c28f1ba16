"""Headers of model files, edited entry by entry by somebody who makes the checksum too.

Whatever an entry becomes, loading says `ModelFileError`, or the entry may be so, and the model predicts.
"""

import json
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest

from kernpool import (
    LearnedPoolingClassifier,
    LearnedPoolingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    RunningPool,
    load_model,
    save_model,
)
from kernpool.data import TableError
from kernpool.data.atomic_files import sha256
from kernpool.data.model_format import ModelFileError, checksum
from tests.support.thinning import slow

STEPS = [5, *slow(1)]  # every fifth edit; all 2000 take some seconds per test
DROPPED = object()
MUTATIONS = [
    DROPPED, None, True, 0, 3, -1, 2.5, float("nan"), 10**400, "", "other", "a\0b", [], ["other"], [[1]], {}, {"a": {}},
]  # fmt: skip


def places(entry, path=()):
    """Every entry of a header, those that hold others included."""
    children = entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ()
    for name, child in children:
        yield (*path, name)
        yield from places(child, (*path, name))


def mutated(header, path, value):
    header = deepcopy(header)
    parent = header
    for name in path[:-1]:
        parent = parent[name]
    if value is DROPPED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return header


def mutants(header):
    for path in places(header):
        old = header
        for name in path:
            old = old[name]
        for value in (*MUTATIONS, [old], {"nested": old}):
            if value is DROPPED or json.dumps(value) != json.dumps(old):
                yield path, value, mutated(header, path, value)


def read(folder):
    header = json.loads((folder / "model.json").read_text())
    header.pop("checksum")
    return header


def write(folder, header):
    (folder / "model.json").write_text(json.dumps(header | {"checksum": checksum(header)}))


def a_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def a_whole(value, least, limit=float("inf")):
    return type(value) is int and least <= value < limit


def a_bandwidth(value):
    one = value is True or (a_number(value) and 0 < value < 1e9)
    return one or (isinstance(value, list) and len(value) == 1 and a_bandwidth(value[0]))


def a_column(value):
    return isinstance(value, str | int) and not isinstance(value, bool)


# What may be changed without the model being another one, or being none: path to what the new value may be.
FREE = {
    ("parameters", "bandwidth"): a_bandwidth,
    ("parameters", "common_factor"): lambda value: isinstance(value, bool),
    ("parameters", "unordered"): lambda value: value is None or (isinstance(value, list) and all(map(a_column, value))),
    ("parameters", "smoothing"): lambda value: value in (None, [], True) or (a_number(value) and 0 <= value < 4),
    ("parameters", "max_search_rows"): lambda value: value is None or a_whole(value, 2),
    ("parameters", "max_search_seconds"): lambda value: value is None or (a_number(value) and value > 0),
    ("parameters", "scale"): lambda value: value == ["raw"],  # where there is one column
    ("parameters", "ridge"): lambda value: value is None or (a_number(value) and 0 <= value <= 1e100),
    ("parameters", "random_state"): lambda value: value in (None, True) or a_whole(value, 0, 2**32),
    ("parameters", "tol"): lambda value: value is None or value == 0,
    ("parameters", "n_jobs"): lambda value: value is None or (a_whole(value, -1) and value != 0),
    ("parameters", "prior_share"): lambda value: a_number(value) and 0 <= value < 1,
    ("results", "loo_error_"): lambda value: value is DROPPED or isinstance(value, float),
    ("results", "loo_empty_windows_"): lambda value: value is DROPPED or type(value) is int,
    ("results", "ridge_"): lambda value: isinstance(value, float) and 0 <= value < 1e100,
    ("results", "bandwidth_note_"): lambda value: value is DROPPED or isinstance(value, str),
    ("features",): lambda value: value == ["other"],  # where there is one column
    ("results",): lambda value: value == {},
    ("target",): lambda value: value is None or isinstance(value, str),
}
FREE[("parameters", "ordered")] = FREE[("parameters", "unordered")]


def may_be(path, value):
    allowed = FREE.get(path)
    if path[0] == "features" and len(path) == 2:
        return isinstance(value, str)
    if path[:2] == ("parameters", "bandwidth") and len(path) == 3:
        return value is DROPPED or (not isinstance(value, list) and a_bandwidth(value))  # the others are one for all
    return allowed is not None and allowed(value)


def check_every_entry(folder, load, predict, may_be, others=(), step=1):
    """Edit every entry in every way; others are the errors of what the header refers to."""
    header, expected = read(folder), predict(load(folder))
    free, wrong, refused = set(), [], 0
    for path, value, edited in islice(mutants(header), 0, None, step):
        write(folder, edited)
        try:
            model = load(folder)
        except ModelFileError:
            refused += 1
        except others:
            wrong += [(path, value)] * (path[0] != "chunks")
        else:
            free.add(path)
            predicted = predict(model)
            fine = predicted.shape == expected.shape and np.all(np.isfinite(predicted))
            wrong += [] if fine and may_be(path, value) else [(path, value)]
    assert wrong == []
    write(folder, header)
    np.testing.assert_array_equal(predict(load(folder)), expected)
    assert refused > 500 // step
    return free


@pytest.mark.parametrize("step", STEPS)
def test_regressors(step, tmp_path, generator):
    X = generator.normal(size=(30, 2))
    model = NadarayaWatsonRegressor("tricube", empty="nearest")
    save_model(model.fit(X, X[:, 0], sample_weight=generator.uniform(0.2, 1.0, 30)), tmp_path / "model")
    free = check_every_entry(tmp_path / "model", load_model, lambda model: model.predict(X), may_be, step=step)
    assert step > 1 or ("parameters", "random_state") in free


@pytest.mark.slow  # as regressors
def test_local_linear_regressors(tmp_path, generator):
    X = generator.normal(size=(30, 2))
    save_model(LocalLinearRegressor(bandwidth=[1.0, 2.0]).fit(X, X), tmp_path / "model", target="y")
    check_every_entry(tmp_path / "model", load_model, lambda model: model.predict(X), may_be)


@pytest.mark.parametrize("step", STEPS)
def test_classifiers(step, tmp_path, generator):
    X = generator.normal(size=(30, 1))
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)])
    save_model(model, tmp_path / "model")
    check_every_entry(tmp_path / "model", load_model, lambda model: model.predict_proba(X), may_be, step=step)


# The headers differ in nothing but the names of columns and levels, and have 2000 edits each.
@pytest.mark.parametrize(
    ("library", "step"),
    [
        ("pandas", 11),
        pytest.param("pandas", 1, marks=pytest.mark.slow),
        pytest.param("polars", 1, marks=pytest.mark.slow),
    ],
)
def test_categorical_columns(library, step, tmp_path, generator):
    frames = pytest.importorskip(library, reason=f"reads what {library} makes")
    number, rank = generator.normal(size=40), generator.integers(1, 4, 40)
    columns = {"x": number, "city": [["oslo", "bergen", "tromso"][i - 1] for i in rank], "rank": rank}
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1, 0.2], ordered=["rank"])
    save_model(model.fit(frames.DataFrame(columns), number + rank), tmp_path / "model")

    def may_be_here(path, value):
        # A level is any text or number; the place of the first of ordered levels is any number below the second.
        if path[:2] == ("encoding", "levels") and len(path) == 4:
            return isinstance(value, str | int | float)
        if path[:2] == ("encoding", "places") and len(path) == 4:
            return a_number(value) and np.isfinite(value)
        if path == ("parameters", "ordered", 0):
            return value is DROPPED or a_column(value)
        return may_be(path, value) or (path[:2] == ("parameters", "smoothing") and len(path) == 3)

    def predict(model):
        vars(model).pop("feature_names_in_")  # a list has no names, and may hold levels of any type
        city, rank = model.encoding_.levels
        return model.predict([[0.0, city[0], rank[1]]])

    check_every_entry(tmp_path / "model", load_model, predict, may_be_here, step=step)


@pytest.mark.slow  # nothing but the entry on chunks differs from those above
def test_models_on_chunks(tmp_path, generator):
    x = generator.normal(size=500)
    np.save(tmp_path / "rows.npy", np.c_[x, np.sin(x), generator.uniform(0.2, 1.0, 500)])
    model = NadarayaWatsonRegressor(bandwidth="loo", max_search_rows=100).fit(tmp_path / "rows.npy", "1", "2")
    save_model(model, tmp_path / "model")

    def may_be_here(path, value):
        one = (("chunks", "weight"), None), (("chunks", "target"), ["1"])  # no weights, and outputs of shape (rows, 1)
        return may_be(path, value) or (path, value) in one

    def predict(model):
        return model.predict(np.linspace(-1, 1, 3)[:, None]).ravel()

    check_every_entry(tmp_path / "model", load_model, predict, may_be_here, (TableError,))


@pytest.mark.parametrize(
    ("kind", "step"),
    [("classifier", 5), *(pytest.param(kind, 1, marks=pytest.mark.slow) for kind in ("regressor", "classifier"))],
)
def test_learned_models(kind, step, tmp_path, generator):
    pytest.importorskip("torch", reason="learning needs the extra 'torch'")
    X = generator.normal(size=(20, 3))
    make = {"regressor": LearnedPoolingRegressor, "classifier": LearnedPoolingClassifier}[kind]
    model = make("encoder", output_size=2, max_epochs=2, hidden_sizes=(3,), random_state=0)
    y = X[:, 0] if kind == "regressor" else np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    model.fit(X, y).save(tmp_path / "model")
    least = {"max_keys": 2, "random_state": 0, "n_jobs": -1}
    numbers = {
        "learning_rate": lambda value: value > 0,
        "penalty": lambda value: value >= 0,
        "max_epochs": lambda value: a_whole(value, 0),
        "batch_size": lambda value: a_whole(value, 1),
        "patience": lambda value: a_whole(value, 1),
        "validation_fraction": lambda value: 0 < value < 1,
    }

    def may_be_here(path, value):
        if path[0] == "parameters" and path[-1] in numbers:
            return a_number(value) and numbers[path[-1]](value)
        if path[0] == "parameters" and path[-1] in least:
            return value is None or a_whole(value, least[path[-1]]) or (path[-1] == "random_state" and value is True)
        if path == ("parameters", "warm_start_bandwidth"):
            return isinstance(value, bool)
        if path == ("parameters", "device"):  # only learning needs it, perhaps on another machine
            return value is None or isinstance(value, str)
        if path == ("parameters", "dtype"):
            return value is None
        if path == ("features",):
            return value is None
        if path == ("prior_share",) and kind == "classifier":
            return isinstance(value, float) and 0 <= value < 1
        return path == ("best_epoch",) and value in (0, 1, 2) and type(value) is int

    def predict(model):
        return model.predict(X) if kind == "regressor" else model.predict_proba(X)

    check_every_entry(tmp_path / "model", make.load, predict, may_be_here, step=step)


@pytest.mark.parametrize(
    ("degree", "step"), [(0, 5), pytest.param(0, 1, marks=pytest.mark.slow), pytest.param(1, 1, marks=pytest.mark.slow)]
)
def test_running_pools(degree, step, tmp_path, generator):
    query, key = generator.normal(size=(5, 2)), generator.normal(size=(30, 2))
    RunningPool(query, bandwidth=2.0, degree=degree, tol=1e-9).update(key, key[:, :1]).save(tmp_path / "pool")

    def may_be_here(path, value):
        if path == ("rows",):
            return type(value) is int and value > 0
        if path == ("flat",):
            return value is True
        return path == ("tol",) and FREE["parameters", "tol"](value)

    free = check_every_entry(
        tmp_path / "pool", RunningPool.load, lambda pool: pool.values().reshape(5, 1), may_be_here, step=step
    )
    assert step > 1 or ("rows",) in free


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("key_", lambda key: key[:, :1]),
        ("key_", lambda key: key[:-1]),
        ("key_", lambda key: key.astype(np.int64)),
        ("key_", lambda key: key * np.nan),
        ("key_", lambda key: key[None]),
        ("key_", lambda key: key.astype("U9")),
        ("key_", lambda key: key.sum()),
        ("value_", lambda value: value[:-1]),
        ("value_", lambda value: value.astype(complex)),
        ("value_", lambda value: value + np.inf),
        ("value_", lambda value: value[:, None, None]),
        ("key_weight_", lambda weight: -weight),
        ("key_weight_", lambda weight: 0 * weight),
        ("key_weight_", lambda weight: weight[:-1]),
        ("key_weight_", lambda weight: weight.astype(bool)),
        ("key_code_", lambda code: code + 3),
        ("key_code_", lambda code: code - 1),
        ("key_code_", lambda code: code.astype(float)),
        ("key_code_", lambda code: np.c_[code, code]),
        ("bandwidth_", lambda bandwidth: bandwidth[:1]),
        ("bandwidth_", lambda bandwidth: -bandwidth),
        ("bandwidth_", lambda bandwidth: bandwidth[None]),
        ("bandwidth_", lambda bandwidth: 0 * bandwidth),
        ("bandwidth_", lambda bandwidth: bandwidth.astype("U9")),
        ("smoothing_", lambda smoothing: smoothing + 1.0),
        ("smoothing_", lambda smoothing: smoothing * np.nan),
        ("smoothing_", lambda smoothing: np.r_[smoothing, smoothing]),
        ("feature_names_in_", lambda names: names[:-1]),
        ("feature_names_in_", lambda names: np.char.add(names, "!")),
        ("feature_names_in_", lambda names: np.arange(1.0 * len(names))),
    ],
)
def test_arrays_that_do_not_fit(name, change, tmp_path, generator):
    """An array of another kind, with the record and the digest to match."""
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pandas.DataFrame(generator.normal(size=(30, 2)), columns=["a", "b"]).assign(c=["u", "v", "w"] * 10)
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1).fit(frame, frame["a"], np.full(30, 2.0))
    folder = tmp_path / "model"
    save_model(model, folder)
    header = read(folder)
    array = change(np.load(folder / f"{name}.npy"))
    np.save(folder / f"{name}.npy", array)
    record = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(folder / f"{name}.npy")}
    write(folder, header | {"arrays": header["arrays"] | {name: record}})
    with pytest.raises(ModelFileError, match=r"do not fit together|was edited"):
        load_model(folder)


def test_an_archive_in_place_of_an_array(tmp_path):
    folder = tmp_path / "model"
    save_model(NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0], [1.0]], [0.0, 1.0]), folder)
    np.savez(folder / "other.npz", a=np.zeros(3))
    (folder / "other.npz").replace(folder / "key_.npy")
    header = read(folder)
    header["arrays"]["key_"]["sha256"] = sha256(folder / "key_.npy")
    write(folder, header)
    with pytest.raises(ModelFileError, match=r"key_\.npy"):
        load_model(folder)


def test_another_estimator(tmp_path):
    """A regressor has no labels, and a classifier needs one for each column of values."""
    folder, X = tmp_path / "model", [[0.0], [1.0]]
    for model, other in (
        (NadarayaWatsonRegressor(bandwidth=1.0).fit(X, X), "NadarayaWatsonClassifier"),
        (NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [0, 1]), "NadarayaWatsonRegressor"),
    ):
        save_model(model, folder, force=folder.exists())
        write(folder, read(folder) | {"estimator": other})
        with pytest.raises(ModelFileError, match=r"do not fit together|have the entries"):
            load_model(folder)
