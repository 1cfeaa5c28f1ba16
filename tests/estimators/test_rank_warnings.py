"""What a local linear model says of slopes that its rows do not determine: once per fit, with the columns named."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernpool import LocalLinearRegressor, RankDeficiencyWarning, load_model, open_chunks, pool, save_model
from kernpool.core.dependent_columns import dependent_columns


def dummies(generator, n=160):
    """A place, a colour as three columns that add up to one, and outputs."""
    place, colour = generator.uniform(size=n), generator.integers(0, 3, n)
    return np.column_stack([place, np.eye(3)[colour]]), np.sin(5 * place) + colour


def rank_warnings(call):
    """Return what is said of ranks, and be sure that nothing else is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(warning.category is RankDeficiencyWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("given", ["array", "pandas", "polars"])
def test_collinear_columns_are_named_once(given, generator):
    X, y = dummies(generator)
    names = ["place", "red", "green", "blue"]
    if given != "array":
        X = pytest.importorskip(given, reason=f"reads what {given} makes").DataFrame(dict(zip(names, X.T, strict=True)))
    model = LocalLinearRegressor(bandwidth=[0.3, 2.0, 2.0, 2.0]).fit(X, y)
    (message,) = rank_warnings(lambda: model.predict(X))
    assert ("columns 1, 2, 3" if given == "array" else "columns 'red', 'green', 'blue'") in message
    assert "drop one" in message
    assert "place" not in message
    assert rank_warnings(lambda: model.predict(X[:5])) == []
    assert rank_warnings(lambda: model.score(X, y)) == []
    assert len(rank_warnings(lambda: model.fit(X, y).predict(X[:1]))) == 1


def test_each_dependent_set_is_named_by_itself(generator):
    a, b, c = generator.normal(size=(3, 60))
    X = np.column_stack([a, np.full(60, 7.1), b, 3 * a, b - 2 * c, c])
    model = LocalLinearRegressor(bandwidth=4.0).fit(X, a)
    (message,) = rank_warnings(lambda: model.predict(X))
    assert "columns 0, 3 are linearly dependent" in message
    assert "columns 2, 4, 5 are linearly dependent" in message
    assert "column 1 is constant" in message


def test_windows_of_few_keys_are_told_of_once_and_name_no_columns(generator):
    x = np.arange(10.0)[:, None]
    model = LocalLinearRegressor("epanechnikov", bandwidth=0.5).fit(x, x[:, 0])
    (message,) = rank_warnings(lambda: model.predict(x))
    assert message.startswith("around 10 of 10 queries (the first is query 0) the keys determine no slope")
    assert rank_warnings(lambda: model.predict(x)) == []
    assert len(rank_warnings(lambda: model.fit(x, x[:, 0]).predict(x))) == 1


def test_both_are_told_where_both_are_so(generator):
    X, y = dummies(generator)
    model = LocalLinearRegressor("epanechnikov", bandwidth=[0.3, 2.0, 2.0, 2.0]).fit(X, y)
    assert len(rank_warnings(lambda: model.predict(X))) == 1
    alone = LocalLinearRegressor("epanechnikov", bandwidth=[1e-9, 2.0, 2.0, 2.0]).fit(X, y)
    one, other = rank_warnings(lambda: alone.predict(X))
    assert "columns 1, 2, 3" in one
    assert other.startswith("around 160 of 160 queries")
    assert rank_warnings(lambda: alone.predict(X)) == []


def test_rows_without_weight_are_no_rows(generator):
    X, y = generator.normal(size=(60, 2)), generator.normal(size=60)
    X[:50, 1] = 2 * X[:50, 0]
    weight = (np.arange(60) < 50).astype(float)
    assert rank_warnings(lambda: LocalLinearRegressor(bandwidth=2.0).fit(X, y).predict(X)) == []
    (message,) = rank_warnings(lambda: LocalLinearRegressor(bandwidth=2.0).fit(X, y, weight).predict(X))
    assert "columns 0, 1" in message


def test_numeric_columns_of_mixed_tables_are_called_by_their_names(generator):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    x = generator.normal(size=60)
    frame = pandas.DataFrame({"x": x, "city": generator.choice(["Aachen", "Bonn"], 60), "twice": 2 * x})
    model = LocalLinearRegressor(bandwidth=1.0, smoothing=[0.3]).fit(frame, x)
    (message,) = rank_warnings(lambda: model.predict(frame))
    assert "columns 'x', 'twice'" in message
    assert rank_warnings(lambda: model.predict(frame)) == []


def test_fewer_rows_than_columns_are_no_fault_of_the_columns(generator):
    X = generator.normal(size=(3, 5))
    (message,) = rank_warnings(lambda: LocalLinearRegressor(bandwidth=3.0).fit(X, X[:, 0]).predict(X))
    assert message.startswith("around 3 of 3 queries")


def test_models_on_chunks_say_it_once(generator):
    X, y = dummies(generator)
    model = LocalLinearRegressor(bandwidth=2.0).fit(open_chunks([(X[:90], y[:90]), (X[90:], y[90:])]))
    assert len(rank_warnings(lambda: model.predict(X))) == 1
    assert rank_warnings(lambda: model.predict(X)) == []


def test_clones_pickles_and_saved_models(generator, tmp_path):
    X, y = dummies(generator)
    model = LocalLinearRegressor(bandwidth=2.0).fit(X, y)
    before = dict(vars(model))
    assert len(rank_warnings(lambda: model.predict(X))) == 1
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    again = pickle.loads(pickle.dumps(model))
    assert rank_warnings(lambda: again.predict(X)) == []
    assert len(rank_warnings(lambda: clone(model).fit(X, y).predict(X))) == 1
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert len(rank_warnings(lambda: loaded.predict(X))) == 1
    assert rank_warnings(lambda: loaded.predict(X)) == []


def test_the_function_has_no_memory(generator):
    X, y = dummies(generator)
    for _ in range(2):
        (message,) = rank_warnings(lambda: pool(X, X, y, degree=1))
        assert message.startswith("around 160 of 160 queries")


@pytest.mark.parametrize("seed", range(20))
def test_a_column_is_dependent_if_the_others_make_it(seed):
    """Without it as many directions are left, and without any other there is one fewer."""
    generator = np.random.default_rng(seed)
    d, rank = 6, int(generator.integers(2, 7))
    mix = generator.integers(-2, 3, (rank, d)) * (generator.random((rank, d)) < 0.5)
    X = generator.normal(size=(50, rank)) @ mix * 10.0 ** generator.integers(-3, 4, d) + 5.0
    X = np.where(np.ptp(X, axis=0) > 0, X, 5.0)
    centered = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), np.inf)
    whole = np.linalg.matrix_rank(centered, tol=1e-3)
    expected = {a for a in range(d) if np.linalg.matrix_rank(np.delete(centered, a, axis=1), tol=1e-3) == whole}
    groups = dependent_columns(X)
    assert sorted(a for columns, _ in groups for a in columns) == sorted(expected)
    assert sum(missing for _, missing in groups) == d - whole
    for columns, missing in groups:
        assert np.linalg.matrix_rank(centered[:, columns], tol=1e-3) == len(columns) - missing


def test_dependence_does_not_hang_on_places_and_units(generator):
    a, b = generator.normal(size=(2, 40))
    for offset, unit in ((0.0, 1.0), (1e6, 1.0), (-3.0, 1e12), (1e3, 1e-12)):
        X = unit * np.column_stack([a, b, a + b]) + unit * offset
        assert dependent_columns(X) == [([0, 1, 2], 1)]
        assert dependent_columns(X[:, :2]) == []
