"""Learned estimators on tables with categories, and with weights of rows: laws, and refusals with their remedies."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="learning needs the extra 'torch'")
pandas = pytest.importorskip("pandas", reason="frames need pandas")

from kernpool import LearnedPoolingClassifier, LearnedPoolingRegressor, NadarayaWatsonRegressor, load_model, save_model
from kernpool.core import Categories
from kernpool.estimators.learned.columns import KERNELS, indicator_scales, with_indicators
from kernpool.kernels import get_categorical_kernel
from kernpool.torch.learning.encoders import make_map
from kernpool.torch.learning.training import RowTensors, Schedule, learn, loss_of

CITIES, SIZES = np.array(["bergen", "oslo", "tromso"]), ["s", "m", "l", "xl"]
QUICK = {"max_epochs": 3, "random_state": 0}
COPIES = "ignore:.*(repeat another row|sample_weight|weights above one)"


@pytest.fixture
def table(generator):
    city, size = generator.integers(3, size=90), generator.integers(4, size=90)
    X = pandas.DataFrame(
        {
            "city": CITIES[city],
            "a": generator.normal(size=90),
            "size": pandas.Categorical.from_codes(size, SIZES, ordered=True),
        }
    )
    return X, np.sin(X["a"]) + np.array([0.0, 1.5, 0.2])[city] + 0.3 * size + 0.1 * generator.normal(size=90)


@pytest.mark.parametrize("lam", [1e-3, 0.2, 0.5])
def test_a_gaussian_of_indicators_is_the_kernel_of_categories(lam):
    kernels = tuple(map(get_categorical_kernel, KERNELS.values()))
    categories = Categories(kernels, (3, np.array([0.0, 1.0, 3.0, 3.5])))
    code = np.array([[a, b] for a in range(3) for b in range(4)])
    mapped = with_indicators(np.zeros((12, 0)), code, categories) * indicator_scales(categories, np.array([lam, lam]))
    found = np.exp(-0.5 * np.sum((mapped[:, None] - mapped) ** 2, axis=-1))
    tables = [kernel.table(levels, lam) for kernel, levels in zip(kernels, categories.levels, strict=True)]
    expected = np.prod([table[np.ix_(column, column)] for table, column in zip(tables, code.T, strict=True)], axis=0)
    np.testing.assert_allclose(found, expected / expected[0, 0], rtol=1e-9)


@pytest.mark.parametrize("largest", [False, True])
def test_scales_at_the_ends_are_finite(largest):
    kernels = tuple(map(get_categorical_kernel, KERNELS.values()))
    categories = Categories(kernels, (3, np.arange(4.0)))
    scales = indicator_scales(categories, categories.largest * largest)
    assert (scales < 1e-6).all() if largest else (np.exp(-0.5 * scales**2) <= 2e-8).all()


def test_an_unseen_category_is_as_far_from_each():
    kernels = tuple(map(get_categorical_kernel, KERNELS.values()))
    categories = Categories(kernels, (3, np.arange(4.0)))
    code = np.array([[a, b] for a in range(3) for b in range(4)])
    unseen = with_indicators(np.zeros((1, 0)), np.array([[-1, -1]]), categories)
    distance = np.sum((with_indicators(np.zeros((12, 0)), code, categories) - unseen) ** 2, axis=1)
    np.testing.assert_allclose(distance, distance[0])


def test_categories_alone(generator):
    city = generator.integers(3, size=40)
    X, y = pandas.DataFrame({"city": CITIES[city]}), city**2 + 0.1 * generator.normal(size=40)
    model = LearnedPoolingRegressor(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.9
    by_number = LearnedPoolingRegressor(unordered=[0], **QUICK).fit(city[:, None], y)
    np.testing.assert_allclose(by_number.predict(city[:, None]), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("similarity", ["linear", "per_feature"])
def test_other_names_of_categories_change_nothing(similarity, table):
    X, y = table
    renamed = X.assign(city=X["city"].map({"bergen": "z", "oslo": "a", "tromso": "b"}))
    models = [LearnedPoolingRegressor(similarity, **QUICK).fit(given, y) for given in (X, renamed)]
    assert models[0].history_["training_loss"][-1] < models[0].history_["training_loss"][0]
    np.testing.assert_allclose(models[1].predict(renamed), models[0].predict(X), rtol=1e-6)


@pytest.mark.slow  # thirty epochs
def test_a_map_learns_which_categories_are_alike():
    """Twelve categories of two kinds: an embedding shares what a search for one smoothing keeps apart."""
    generator = np.random.default_rng(0)
    kind, x = generator.integers(12, size=600), generator.normal(size=600)
    X = pandas.DataFrame({"kind": [f"k{i:02}" for i in kind], "x": x})
    y = np.where(kind % 2, np.sin(2 * x), -np.sin(2 * x)) + 0.3 * generator.normal(size=600)
    model = LearnedPoolingRegressor(learning_rate=0.05, max_epochs=30, random_state=0).fit(X[:300], y[:300])
    closed = NadarayaWatsonRegressor(bandwidth="loo").fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > closed.score(X[300:], y[300:]) + 0.05


def test_files_hold_categories_and_weights(table, tmp_path):
    X, y = table
    weight = np.arange(90) % 2 * 0.5 + 0.5
    model = LearnedPoolingRegressor(unseen="unlike", output_size=2, **QUICK).fit(X, y, weight)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    new = X.assign(city="bodo")
    for given in (X, new):
        np.testing.assert_array_equal(again.predict(given), model.predict(given))
    np.testing.assert_array_equal(again.key_weight_, weight)
    assert (again.stop_reason_, again.summary()) == (model.stop_reason_, model.summary())
    with pytest.raises(ValueError, match=r"level 'bodo' in row 0 .* use unseen='unlike'"):
        LearnedPoolingRegressor(max_epochs=0).fit(X, y).predict(new)


def test_classes_of_a_table(table):
    X, y = table
    labels = np.where(y > 1, "up", "down")
    model = LearnedPoolingClassifier(**QUICK).fit(X, labels)
    assert model.score(X, labels) > 0.8


def test_one_width_for_all_columns_and_levels(table):
    X, y = table
    model = LearnedPoolingRegressor("width", **QUICK).fit(X, y)
    assert model.score(X, y) > 0.5


def test_columns_of_another_fit_are_refused(table):
    X, y = table
    model = LearnedPoolingRegressor(max_epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="another order"):
        model.predict(X[["a", "city", "size"]])
    with pytest.raises(ValueError, match="missing"):
        LearnedPoolingRegressor().fit(X.assign(city=[None, *X["city"][1:]]), y)
    with pytest.raises(ValueError, match="output_size must be at most the number of columns, 7 with one for each"):
        LearnedPoolingRegressor(output_size=8).fit(X, y)
    with pytest.raises(ValueError, match="unseen must be"):
        LearnedPoolingRegressor(unseen="ignore").fit(X, y)


# Weights are frequencies.


@pytest.mark.filterwarnings(COPIES)
@pytest.mark.parametrize("kind", [LearnedPoolingRegressor, LearnedPoolingClassifier])
def test_a_weight_is_a_number_of_equal_rows(kind, table):
    X, y = table
    y = y if kind is LearnedPoolingRegressor else np.where(y > 1, "up", "down")
    weight = np.arange(90) % 3
    repeated = np.repeat(np.arange(90), weight)
    weighted = kind(max_epochs=0).fit(X, y, weight)
    rows = kind(max_epochs=0).fit(X.iloc[repeated], y[repeated])
    answer = "predict_proba" if hasattr(kind, "predict_proba") else "predict"
    np.testing.assert_allclose(getattr(weighted, answer)(X), getattr(rows, answer)(X), rtol=1e-7)
    weights = np.zeros((5, 90))
    np.add.at(weights.T, repeated, rows.attention_weights(X[:5]).T)
    np.testing.assert_allclose(weighted.attention_weights(X[:5]), weights, atol=1e-8)


def test_steps_of_weighted_rows_are_those_of_repeated_rows(generator):
    """With one batch an epoch, and copies of a row on the same side of the split, training is the same."""
    X, weight = generator.normal(size=(40, 3)), generator.integers(1, 4, size=40)
    y = np.sin(X.sum(axis=1))[:, None]
    found = []
    for rows, each in ((np.arange(40), weight), (np.repeat(np.arange(40), weight), np.ones(weight.sum()))):
        given = RowTensors(*(torch.tensor(array, dtype=torch.float64) for array in (X[rows], y[rows], each)))
        encoder = make_map("linear", np.zeros(3), np.ones(3), np.full(3, 2.0))
        history = learn(
            encoder,
            given,
            training=torch.as_tensor(np.flatnonzero(rows >= 8)),
            validation=torch.as_tensor(np.flatnonzero(rows < 8)),
            loss=loss_of("squared_error", given),
            schedule=Schedule(0.05, 6, 10**6, 20, 0.01, None),
            generator=np.random.RandomState(0),
        )
        found.append((history.training_loss, history.validation_loss, encoder.weight.detach().numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert found[0][0][-1] < found[0][0][0]


def test_rows_of_weight_zero_are_absent(table):
    X, y = table
    weight = np.ones(90)
    weight[::9] = 0.0
    model = LearnedPoolingRegressor(**QUICK).fit(X, y, weight)
    without = LearnedPoolingRegressor(**QUICK).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(model.predict(X), without.predict(X), rtol=1e-12)
    assert (model.attention_weights(X)[:, ::9] == 0.0).all()
    assert not set(model.validation_rows_) & set(range(0, 90, 9))


def test_weights_that_are_none(table):
    X, y = table
    for weight, message in ((np.ones(3), "sample_weight"), (np.full(90, -1.0), "sample_weight")):
        with pytest.raises(ValueError, match=message):
            LearnedPoolingRegressor().fit(X, y, weight)
    with pytest.raises(ValueError, match=r"learning needs at least 3 rows, .* got n_samples = 2"):
        LearnedPoolingRegressor().fit(X, y, np.arange(90) < 2)
