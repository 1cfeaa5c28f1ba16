"""Data in memory as estimators read them: every column type alone and in mixed tables, and what is refused by name."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pytest

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    open_chunks,
    pool,
    specification_test,
)

pandas = pytest.importorskip("pandas", reason="frames of pandas are half of what this is about")

N = 24
V = np.arange(N) % 9 / 4.0  # which decimals, float32 and text hold exactly
Y = np.cos(V) + np.arange(N) / 50
SIDE = np.where(np.arange(N) % 3 == 0, "left", "right")
MASK = np.arange(N) == 5


def arrow(kind, cells=V):
    pyarrow = pytest.importorskip("pyarrow", reason="types of Arrow need the extra 'arrow'")
    return pandas.Series([*cells], dtype=pandas.ArrowDtype(kind(pyarrow)))


def polars_frame(columns, **kinds):
    polars = pytest.importorskip("polars", reason="types of polars need polars")
    return polars.DataFrame(columns).cast({name: kind(polars) for name, kind in kinds.items()})


DECIMALS = [Decimal(str(cell)) for cell in V]
NUMBERS = {
    "float32": lambda: pandas.Series(V, dtype="float32"),
    "nullable float": lambda: pandas.Series(V, dtype="Float64"),
    "object of floats": lambda: pandas.Series(V, dtype=object),
    "object of decimals": lambda: pandas.Series(DECIMALS, dtype=object),
    "arrow double": lambda: arrow(lambda pa: pa.float64()),
    "arrow half": lambda: arrow(lambda pa: pa.float32()),
    "arrow decimal": lambda: arrow(lambda pa: pa.decimal128(9, 3), DECIMALS),
    "arrow large decimal": lambda: arrow(lambda pa: pa.decimal256(40, 3), DECIMALS),
    "arrow dictionary": lambda: arrow(lambda pa: pa.float64()).astype(_dictionary("float64")),
}
INTEGERS = {
    "int8": lambda cells: pandas.Series(cells, dtype="int8"),
    "nullable": lambda cells: pandas.Series(cells, dtype="Int32"),
    "arrow": lambda cells: arrow(lambda pa: pa.int64(), cells),
    "boolean": lambda cells: pandas.Series(cells % 2 == 1),
    "nullable boolean": lambda cells: pandas.Series(cells % 2 == 1, dtype="boolean"),
    "arrow boolean": lambda cells: arrow(lambda pa: pa.bool_(), cells % 2 == 1),
}
TEXTS = {
    "object": lambda: pandas.Series(SIDE, dtype=object),
    "string": lambda: pandas.Series(SIDE, dtype="string"),
    "category": lambda: pandas.Series(SIDE, dtype="category"),
    "arrow": lambda: arrow(lambda pa: pa.string(), SIDE),
    "arrow large": lambda: arrow(lambda pa: pa.large_string(), SIDE),
    "arrow dictionary": lambda: arrow(lambda pa: pa.string(), SIDE).astype(_dictionary("string")),
}


def _dictionary(kind):
    pyarrow = pytest.importorskip("pyarrow", reason="types of Arrow need the extra 'arrow'")
    return pandas.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), getattr(pyarrow, kind)()))


def answer(table, value=Y):
    smoothing = {"smoothing": 0.25} if len(table.columns) > 1 else {}
    return NadarayaWatsonRegressor(bandwidth=0.5, **smoothing).fit(table, value).predict(table[:7])


@pytest.mark.parametrize("kind", NUMBERS)
def test_columns_of_numbers_are_read_the_same_alone_and_in_mixed_tables(kind):
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(V[:, None], Y).predict(V[:7, None])
    np.testing.assert_allclose(answer(pandas.DataFrame({"v": NUMBERS[kind]()})), expected, rtol=2e-7)
    mixed = pandas.DataFrame({"v": V, "side": SIDE})
    np.testing.assert_allclose(answer(mixed.assign(v=NUMBERS[kind]())), answer(mixed), rtol=1e-12)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_and_booleans_are_numbers_in_every_type(kind):
    cells = np.arange(N) % 5
    numbers = (cells % 2 if "boolean" in kind else cells).astype(float)
    for others in ({}, {"side": SIDE}):
        expected = answer(pandas.DataFrame({"v": numbers, **others}))
        found = answer(pandas.DataFrame({"v": INTEGERS[kind](cells), **others}))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_categories_in_every_type(kind):
    plain = pandas.DataFrame({"v": V, "side": pandas.Series(SIDE, dtype=object)})
    np.testing.assert_array_equal(answer(plain.assign(side=TEXTS[kind]())), answer(plain))
    alone = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=0.25).fit(pandas.DataFrame({"side": TEXTS[kind]()}), Y)
    assert alone.encoding_.kinds == ("unordered",)


def test_frames_of_polars_and_tables_of_arrow_are_read_as_those_of_pandas():
    columns = {"v": V, "side": SIDE}
    expected = answer(pandas.DataFrame(columns))
    np.testing.assert_allclose(answer(polars_frame(columns)), expected, rtol=1e-12)
    decimals = polars_frame(columns, v=lambda pl: pl.Decimal(9, 3), side=lambda pl: pl.Categorical)
    np.testing.assert_allclose(answer(decimals), expected, rtol=1e-12)
    pyarrow = pytest.importorskip("pyarrow", reason="tables of Arrow need the extra 'arrow'")
    model = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=0.25).fit(pyarrow.table(columns), Y)
    np.testing.assert_allclose(model.predict(pandas.DataFrame(columns)[:7]), expected, rtol=1e-12)
    assert model.feature_names_in_.tolist() == ["v", "side"]


def test_frames_of_single_precision_stay_single():
    table = pandas.DataFrame({"a": V, "b": V[::-1]}).astype("float32")
    assert NadarayaWatsonRegressor(bandwidth=1.0).fit(table, Y.astype("f4")).predict(table).dtype == np.float32


def masked(array):
    mask = MASK if np.ndim(array) == 1 else np.broadcast_to(MASK[:, None], np.shape(array))
    return np.ma.array(array, mask=mask)


X = V[:, None]
MODEL = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, Y)
CLASSES = NadarayaWatsonClassifier(bandwidth=0.5, prior_share=0.1).fit(X, SIDE)
ENTRANCES = {
    "X": lambda spoil: NadarayaWatsonRegressor(bandwidth=0.5).fit(spoil(X), Y),
    "y": lambda spoil: LocalLinearRegressor(bandwidth=0.5).fit(X, spoil(Y)),
    "y of classes": lambda spoil: NadarayaWatsonClassifier(bandwidth=0.5).fit(X, spoil(np.arange(N) % 2)),
    "sample_weight": lambda spoil: NadarayaWatsonRegressor(bandwidth=0.5).fit(X, Y, sample_weight=spoil(Y + 2)),
    "groups": lambda spoil: NadarayaWatsonRegressor().fit(X, Y, groups=spoil(np.arange(N) % 6)),
    "X of predict": lambda spoil: MODEL.predict(spoil(X)),
    "X of predict_proba": lambda spoil: CLASSES.predict_proba(spoil(X)),
    "X of score": lambda spoil: MODEL.score(spoil(X), Y),
    "y of score": lambda spoil: MODEL.score(X, spoil(Y)),
    "sample_weight of score": lambda spoil: CLASSES.score(X, SIDE, spoil(Y + 2)),
    "y of cdf": lambda spoil: MODEL.conditional_distribution(X).cdf(spoil(Y)),
    "X_calibration": lambda spoil: MODEL.prediction_interval(
        X, method="split", level=0.5, X_calibration=spoil(X), y_calibration=Y
    ),
    "y_calibration": lambda spoil: MODEL.prediction_interval(
        X, method="split", level=0.5, X_calibration=X, y_calibration=spoil(Y)
    ),
    "y_calibration of sets": lambda spoil: CLASSES.predict_set(
        X, level=0.5, X_calibration=X, y_calibration=spoil(np.array(SIDE, dtype=object))
    ),
    "key of chunks": lambda spoil: pool([1.0], open_chunks([(spoil(V), Y)])),
    "value of chunks": lambda spoil: pool([1.0], open_chunks(V, spoil(Y))),
    "value of a list": lambda spoil: pool(V, V, [*spoil(Y[:, None])]),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_masked_arrays_are_refused_unless_nothing_is_masked(entrance):
    name = entrance.partition(" of ")[0]
    with pytest.raises(TypeError, match=rf"{name}.* is a masked array, .*getmaskarray"):
        ENTRANCES[entrance](masked)
    ENTRANCES[entrance](np.ma.array)


@pytest.mark.parametrize("entrance", [name for name in ENTRANCES if name != "value of a list"])
def test_sparse_matrices_and_tensors_are_refused(entrance):
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match=r"is a sparse matrix; kernpool needs dense arrays: pass \w+.toarray\(\)"):
        ENTRANCES[entrance](lambda array: csr_array(np.atleast_2d(np.ones(np.shape(array)))))
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    with pytest.raises(TypeError, match=r"is a torch tensor, whose gradients would be lost"):
        ENTRANCES[entrance](lambda array: torch.ones(np.shape(array), requires_grad=True))


def test_sparse_columns_of_frames_are_refused():
    table = pandas.DataFrame({"v": pandas.arrays.SparseArray(V), "w": V})
    for ask in (lambda: MODEL.fit(table, Y), lambda: MODEL.predict(table[["v"]]), lambda: pool(table, table, Y)):
        with pytest.raises(TypeError, match=r"has a sparse column.*\.sparse\.to_dense\(\)"):
            ask()


@pytest.mark.parametrize("shape", [lambda v: v, list, lambda v: pandas.Series(v, name="v")])
@pytest.mark.parametrize("model", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
def test_one_column_may_have_one_dimension_in_every_method(model, shape):
    y = SIDE if model is NadarayaWatsonClassifier else Y
    flat, table = (model(bandwidth=0.5).fit(form(V), y) for form in (shape, lambda v: v[:, None]))
    at = V[3:9]
    asked = shape(at) if shape is not list else at
    for method in ("predict", "attention_weights"):
        np.testing.assert_array_equal(getattr(flat, method)(asked), getattr(table, method)(at[:, None]))
    for part in ("has_support", "effective_sample_size"):
        one, other = flat.get_prediction(asked), table.get_prediction(at[:, None])
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert flat.score(shape(V), y) == table.score(V[:, None], y)


def test_one_dimension_is_not_one_row_of_several_columns():
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(np.column_stack([V, V[::-1]]), Y)
    with pytest.raises(ValueError, match=r"X has one dimension, .* fitted to 2 columns.*one row is X.reshape\(1, -1\)"):
        model.predict([1.0, 2.0])


@pytest.mark.parametrize("value", [None, 3.0, {"v": [1.0, 2.0]}, np.zeros((3, 2, 1))])
def test_what_is_no_table_is_told_by_its_shape(value):
    for ask in (lambda: NadarayaWatsonRegressor().fit(value, Y), lambda: MODEL.predict(value)):
        with pytest.raises(ValueError, match=r"X must have shape \(rows,\) or \(rows, columns\), got \w+"):
            ask()


def test_an_index_and_an_array_of_arrow_are_one_column():
    pyarrow = pytest.importorskip("pyarrow", reason="arrays of Arrow need the extra 'arrow'")
    index = pandas.date_range("2024-01-01", periods=N, freq="36h")
    expected = NadarayaWatsonRegressor(bandwidth=3.0).fit(index.to_numpy(), Y)
    for rows in (index, pyarrow.array(index.tolist(), pyarrow.timestamp("us"))):
        model = NadarayaWatsonRegressor(bandwidth=3.0).fit(rows, Y)
        np.testing.assert_array_equal(model.predict(rows), expected.predict(index.to_numpy()))
    zoned = pyarrow.array(index.tolist(), pyarrow.timestamp("us", "UTC"))
    assert NadarayaWatsonRegressor(bandwidth=3.0).fit(zoned, Y).encoding_.kinds == ("date with a time zone",)


def test_specification_tests_of_dates_are_those_of_days():
    day = pandas.Series(pandas.Timestamp("2024-01-01") + pandas.to_timedelta(np.arange(N) * 7 % 24, unit="D"))
    days = (day - pandas.Timestamp(0)) / pandas.Timedelta(days=1)
    found, expected = (
        specification_test(pandas.DataFrame({"t": column, "v": V}), Y, n_resamples=19, bandwidth=[4.0, 1.0])
        for column in (day, days)
    )
    np.testing.assert_allclose(found.statistic, expected.statistic, rtol=1e-9)


MISSING = {"None": None, "NaN": np.nan, "NA": pandas.NA, "NaT": pandas.NaT}


@pytest.mark.parametrize("cell", MISSING)
def test_missing_cells_are_named_by_row_and_column(cell):
    cells = np.column_stack([V, Y]).astype(object)
    cells[4, 1] = MISSING[cell]
    for table, column in ((cells, "column 1"), (pandas.DataFrame(cells, columns=["v", "w"]), "column 'w'")):
        with pytest.raises(
            ValueError, match=rf"{column} of X is missing .* in row 4 \(counted from 0\); drop such rows"
        ):
            NadarayaWatsonRegressor().fit(table, Y)
    for y in (cells[:, 1], cells[:, 1].tolist(), pandas.Series(cells[:, 1])):
        with pytest.raises(ValueError, match=r"y is (missing|NaN) .*row 4"):
            NadarayaWatsonRegressor().fit(X, y)


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named_by_row_and_column(cell):
    table, y = np.column_stack([V, Y]), Y.copy()
    table[6, 1] = y[7] = cell
    word = "NaN" if np.isnan(cell) else str(cell)
    of_column = "missing (NaN, None or NA)" if np.isnan(cell) else word
    for ask in (
        lambda: NadarayaWatsonRegressor().fit(table, Y),
        lambda: MODEL.fit(table[:, :1], Y).predict(table[:, 1:]),
    ):
        with pytest.raises(ValueError, match=rf"column \d of X is {re.escape(of_column)} in row 6") as error:
            ask()
        assert len(str(error.value)) < 200
    with pytest.raises(ValueError, match=rf"y is {re.escape(of_column)} in row 7 "):
        NadarayaWatsonRegressor().fit(X, y)
    nullable = pandas.DataFrame({"v": pandas.Series(V, dtype="Float64"), "w": table[:, 1]})
    with pytest.raises(ValueError, match=r"column 'w' of X is (missing|inf|-inf) .*row 6"):
        NadarayaWatsonRegressor().fit(nullable, Y)


def test_other_objects_are_named_by_row():
    cells = np.column_stack([V, Y]).astype(object)
    cells[2, 0] = dt.time(3)
    with pytest.raises(
        TypeError, match=r"column 0 of X must hold real numbers, got datetime.time\(3, 0\) \(time\) in row 2"
    ):
        NadarayaWatsonRegressor().fit(cells, Y)


def test_text_as_output_of_a_regressor_names_the_classifier():
    for model in (NadarayaWatsonRegressor(), LocalLinearRegressor()):
        for y in (SIDE, [*SIDE], pandas.Series(SIDE)):
            with pytest.raises(ValueError, match=r"y must hold numbers, got text such as .*NadarayaWatsonClassifier"):
                model.fit(X, y)


def test_decimals_are_rounded_once(generator):
    cells = [Decimal(number) / 10**6 for number in generator.integers(10**15, size=300).tolist()]
    expected = [float(cell) for cell in cells]  # the nearest one; a division in float64 misses it in a third of them
    pyarrow = pytest.importorskip("pyarrow", reason="types of Arrow need the extra 'arrow'")
    column = pyarrow.array(cells, pyarrow.decimal128(20, 6))
    polars = pytest.importorskip("polars", reason="types of polars need polars")
    tables = [
        pandas.DataFrame({"v": cells}),
        pandas.DataFrame({"v": pandas.Series(column, dtype=pandas.ArrowDtype(column.type))}),
        pyarrow.table({"v": column}),
        polars.DataFrame({"v": cells}, schema={"v": polars.Decimal(20, 6)}),
    ]
    for table in tables:
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit(table, np.arange(300.0))
        assert model.key_[:, 0].tolist() == expected
    (chunk,) = open_chunks(tables[2].append_column("y", column), target="y")
    assert chunk.key[:, 0].tolist() == expected


class InMemory(np.ndarray):
    """An array that follows Dask's protocol and is in memory, as those of xarray are."""

    def __dask_graph__(self):
        return None


def test_arrays_without_a_graph_are_in_memory():
    found, plain = (NadarayaWatsonRegressor(bandwidth=0.5).fit(x, Y) for x in (V[:, None].view(InMemory), V[:, None]))
    assert found.leave_one_out().error == plain.leave_one_out().error
    assert found.prediction_interval([[1.0]]).upper == plain.prediction_interval([[1.0]]).upper


def test_records_and_labels_that_are_objects_are_refused_with_the_remedy():
    table = np.array(list(zip(V, Y, strict=True)), dtype=[("x", float), ("z", float)])
    with pytest.raises(TypeError, match=r"X is a structured array.*pandas.DataFrame\(X\)"):
        NadarayaWatsonRegressor().fit(table, Y)
    with pytest.raises(TypeError, match=r"y must hold text, numbers or booleans, got Interval.*str\(label\)"):
        NadarayaWatsonClassifier().fit(V[:, None], pandas.cut(V, 3))
