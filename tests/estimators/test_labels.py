"""Labels of every type: classes stay apart, missing ones are refused with their row."""

import re

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, load_model, save_model

pandas = pytest.importorskip("pandas", reason="nullable labels are pandas'")
polars = pytest.importorskip("polars", reason="and those of polars")
pyarrow = pytest.importorskip("pyarrow", reason="and those of Arrow")

ROWS = 20
X = np.linspace(0.0, 1.0, ROWS)[:, None]
RIGHT = X[:, 0] > 0.5
LARGE = 2**62 + 4  # float64 has steps of 1024 here

ANY = {
    "list": list,
    "objects": lambda labels: np.array(labels, dtype=object),
    "polars": lambda labels: polars.Series(labels),
    "Arrow": pyarrow.array,
}
CONTAINERS = ANY | {
    "Int64": lambda labels: pandas.Series(labels, dtype="Int64"),
    "int64[pyarrow]": lambda labels: pandas.Series(labels, dtype="int64[pyarrow]"),
    "category of Int64": lambda labels: pandas.Series(labels, dtype="Int64").astype("category"),
    "Arrow in chunks": lambda labels: pyarrow.chunked_array([pyarrow.array(labels[:5]), pyarrow.array(labels[5:])]),
}
TEXT = ANY | {
    "string": lambda labels: pandas.Series(labels, dtype="string"),
    "string[pyarrow]": lambda labels: pandas.Series(labels, dtype="string[pyarrow]"),
    "category": lambda labels: pandas.Series(labels).astype("category"),
}
BOOLEANS = ANY | {
    "boolean": lambda labels: pandas.Series(labels, dtype="boolean"),
    "bool[pyarrow]": lambda labels: pandas.Series(labels, dtype="bool[pyarrow]"),
}


def fitted(y):
    return NadarayaWatsonClassifier(bandwidth=0.05).fit(X, y)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("base", [0, LARGE, 2**63])
def test_integers_of_64_bits_stay_apart(base, container, tmp_path):
    if base == 2**63 and container in ("Int64", "int64[pyarrow]", "category of Int64", "Arrow", "Arrow in chunks"):
        pytest.skip("of 63 bits, also where Arrow infers the type")
    labels = [base + int(one) for one in RIGHT]
    y = CONTAINERS[container](labels)
    model = fitted(y)
    assert model.classes_.tolist() == [base, base + 1]
    save_model(model, tmp_path / "m")
    for one in (model, load_model(tmp_path / "m")):
        assert one.predict(X[[0, -1]]).tolist() == [base, base + 1]
        assert one.score(X, y) == np.mean(one.predict(X) == np.array(labels)) > 0.8


@pytest.mark.parametrize("container", BOOLEANS)
def test_booleans_stay_booleans(container):
    model = fitted(BOOLEANS[container](RIGHT.tolist()))
    assert model.classes_.dtype == bool
    assert model.predict(X[[0, -1]]).tolist() == [False, True]


@pytest.mark.parametrize("missing", [0, 7])
@pytest.mark.parametrize("container", [*CONTAINERS, *(f"text {name}" for name in TEXT), "boolean"])
def test_missing_labels_are_refused_with_their_row(container, missing):
    kind = container.removeprefix("text ")
    makers = TEXT if container.startswith("text") else CONTAINERS | BOOLEANS
    labels = [str(one) if makers is TEXT else bool(one) if kind == "boolean" else int(one) for one in RIGHT]
    labels[missing] = None
    with pytest.raises(ValueError, match=rf"y is .* in row {missing} .*, and 1 of {ROWS} labels are missing.*; drop"):
        fitted(makers[kind](labels))
    model = fitted(RIGHT)
    with pytest.raises(ValueError, match=rf"y is .* in row {missing} "):
        model.predict_set(X, X_calibration=X, y_calibration=makers[kind](labels))


@pytest.mark.parametrize("nothing", [np.nan, pandas.NA, pandas.NaT, None, np.inf])
def test_every_kind_of_nothing_is_missing(nothing):
    labels = np.where(RIGHT, "a", "b").astype(object)
    labels[4] = nothing
    with pytest.raises(ValueError, match=rf"y is {re.escape(str(nothing))} in row 4 "):
        fitted(labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([LARGE + 1, 0.5], f"the integer {LARGE + 1} among floats"),
        ([2**70, 2**70 + 1], f"the integer {2**70 + 1} .*more than 64 bits"),
        ([-1, 2**63 + 5], f"the integer {2**63 + 5} "),
        ([1, "one"], "labels of one type, got text such as 'one' and int such as 1"),
        ([0.25, 0.5], "Unknown label type: continuous"),
    ],
)
@pytest.mark.parametrize("container", [list, CONTAINERS["objects"]])
def test_labels_that_would_become_others_are_refused(labels, message, container):
    with pytest.raises(ValueError, match=message):
        fitted(container([labels[int(one)] for one in RIGHT]))
