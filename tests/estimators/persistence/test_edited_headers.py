"""Headers of model files, edited entry by entry by somebody who makes the checksum too.

Whatever an entry becomes, loading says `ModelFileError`, or the entry may be so, and the model predicts.
"""

import json
from copy import deepcopy

import numpy as np
import pytest

from kernpool import (
    KernelStackingRegressor,
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
    ("parameters", "unordered"): lambda value: value is None or (isinstance(value, list) and all(map(a_column, value))),
    ("parameters", "smoothing"): lambda value: value in (None, [], True) or (a_number(value) and 0 <= value < 4),
    ("parameters", "max_search_rows"): lambda value: value in (None, "auto") or a_whole(value, 2),
    ("parameters", "min_effective_rows"): lambda value: value in (None, "auto") or (a_number(value) and value >= 1),
    ("parameters", "max_search_seconds"): lambda value: value is None or (a_number(value) and value > 0),
    ("parameters", "periodic"): lambda value: value == [],
    ("parameters", "ridge"): lambda value: value is None or (a_number(value) and 0 <= value <= 1e100),
    ("parameters", "random_state"): lambda value: value in (None, True) or a_whole(value, 0, 2**32),
    ("parameters", "tol"): lambda value: value is None or value == 0,
    ("parameters", "n_jobs"): lambda value: value is None or (a_whole(value, -1) and value != 0),
    ("parameters", "prior_share"): lambda value: a_number(value) and 0 <= value < 1,
    ("results", "loo_error_"): lambda value: value is DROPPED or isinstance(value, float),
    ("results", "loo_empty_windows_"): lambda value: value is DROPPED or type(value) is int,
    ("results", "ridge_"): lambda value: isinstance(value, float) and 0 <= value < 1e100,
    ("results", "bandwidth_note_"): lambda value: value is DROPPED or isinstance(value, str),
    ("results", "min_effective_rows_"): lambda value: isinstance(value, float) and (value == 0 or value >= 1),
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


def save(model, folder, X, ask="predict"):
    save_model(model, folder)
    return load_model, lambda model: getattr(model, ask)(X), may_be


def regressors(folder, generator):
    X = generator.normal(size=(30, 2))
    model = NadarayaWatsonRegressor("tricube", empty="nearest")
    return save(model.fit(X, X[:, 0], sample_weight=generator.uniform(0.2, 1.0, 30)), folder, X)


def local_linear_regressors(folder, generator):
    X = generator.normal(size=(30, 2))
    return save(LocalLinearRegressor(bandwidth=[1.0, 2.0]).fit(X, X), folder, X)


def classifiers(folder, generator):
    X = generator.normal(size=(30, 1))
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)])
    return save(model, folder, X, "predict_proba")


def categorical_columns(folder, generator):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    number, rank = generator.normal(size=40), generator.integers(1, 4, 40)
    frame = pandas.DataFrame({"x": number, "city": np.array(["oslo", "bergen", "tromso"])[rank - 1], "rank": rank})
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1, 0.2], ordered=["rank"]).fit(frame, number + rank)
    save_model(model, folder)

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

    return load_model, predict, may_be_here


def models_on_chunks(folder, generator):
    x = generator.normal(size=500)
    np.save(folder.parent / "rows.npy", np.c_[x, np.sin(x), generator.uniform(0.2, 1.0, 500)])
    save_model(
        NadarayaWatsonRegressor(bandwidth="loo", max_search_rows=100).fit(folder.parent / "rows.npy", "1", "2"), folder
    )

    def may_be_here(path, value):
        one = (("chunks", "weight"), None), (("chunks", "target"), ["1"])  # no weights, and outputs of shape (rows, 1)
        return may_be(path, value) or (path, value) in one

    return load_model, lambda model: model.predict(np.linspace(-1, 1, 3)[:, None]).ravel(), may_be_here


def running_pools(folder, generator):
    query, key = generator.normal(size=(5, 2)), generator.normal(size=(30, 2))
    RunningPool(query, bandwidth=2.0, degree=1, tol=1e-9).update(key, key[:, :1]).save(folder)

    def may_be_here(path, value):
        if path == ("rows",):
            return type(value) is int and value > 0
        return (path == ("flat",) and value is True) or (path == ("tol",) and FREE["parameters", "tol"](value))

    return RunningPool.load, lambda pool: pool.values().reshape(5, 1), may_be_here


def stacked_regressors(folder, generator):
    X = generator.normal(size=(20, 2))
    save_model(KernelStackingRegressor(NadarayaWatsonRegressor(bandwidth=1.0)).fit(X, X[:, 0]), folder)

    def may_be_here(path, value):
        if path == ("length",):
            return isinstance(value, float) and 0 < value < np.inf
        if path == ("parameters", "learn_metric"):
            return isinstance(value, bool)
        return may_be(path[1:] if path[0] == "local" else path, value)

    return load_model, lambda model: model.predict(X), may_be_here


KINDS = [
    regressors, local_linear_regressors, classifiers, categorical_columns, models_on_chunks, stacked_regressors,
    running_pools,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_is_refused_or_may_be_what_it_became(kind, tmp_path, generator):
    folder, free, wrong, refused = tmp_path / "model", set(), [], 0
    load, predict, may_be_here = kind(folder, generator)
    header, expected = read(folder), predict(load(folder))
    for path, value, edited in mutants(header):
        write(folder, edited)
        try:
            model = load(folder)
        except ModelFileError:
            refused += 1
        except TableError:  # of the file that the entry refers to
            wrong += [(path, value)] * (path[0] != "chunks")
        else:
            free.add(path)
            predicted = predict(model)
            fine = predicted.shape == expected.shape and np.all(np.isfinite(predicted))
            wrong += [] if fine and may_be_here(path, value) else [(path, value)]
    assert wrong == []
    write(folder, header)
    np.testing.assert_array_equal(predict(load(folder)), expected)
    assert refused > 500
    assert free & {("parameters", "random_state"), ("rows",)}


CHANGES = {
    "key_": [
        lambda key: key[:, :1], lambda key: key[:-1], lambda key: key.astype(np.int64), lambda key: key * np.nan,
        lambda key: key[None], lambda key: key.astype("U9"), np.sum,
    ],
    "value_": [
        lambda value: value[:-1], lambda value: value.astype(complex), lambda value: value + np.inf,
        lambda value: value[:, None, None],
    ],
    "key_weight_": [
        np.negative, lambda weight: 0 * weight, lambda weight: weight[:-1], lambda weight: weight.astype(bool),
    ],
    "key_code_": [
        lambda code: code + 3, lambda code: code - 1, lambda code: code.astype(float), lambda code: np.c_[code, code],
    ],
    "bandwidth_": [
        lambda h: h[:1], np.negative, lambda h: h[None], lambda h: 0 * h, lambda h: h.astype("U9"),
    ],
    "smoothing_": [
        lambda smoothing: smoothing + 1.0, lambda smoothing: smoothing * np.nan, lambda one: np.r_[one, one],
    ],
    "feature_names_in_": [
        lambda names: names[:-1], lambda names: np.char.add(names, "!"), lambda names: np.arange(1.0 * len(names)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_arrays_that_do_not_fit(name, tmp_path, generator):
    """An array of another kind, with the record and the digest to match."""
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pandas.DataFrame(generator.normal(size=(30, 2)), columns=["a", "b"]).assign(c=["u", "v", "w"] * 10)
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1).fit(frame, frame["a"], np.full(30, 2.0))
    folder = tmp_path / "model"
    save_model(model, folder)
    header, whole = read(folder), np.load(folder / f"{name}.npy")
    for change in CHANGES[name]:
        array = np.asarray(change(whole))
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
