"""Estimators that learn a similarity: better than the closed form where it can be, never worse on held-out rows."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="learning needs the extra 'torch'")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernpool import (
    LearnedPoolingClassifier,
    LearnedPoolingRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    pool,
)
from kernpool.bandwidth.prior_shrinkage import prior_of_others, prior_share
from kernpool.estimators.learned.models import split_rows
from kernpool.execution import report_progress
from kernpool.torch import AttentionPooling, GaussianSimilarity
from kernpool.torch.learning.encoders import make_map, map_shapes, principal_start
from kernpool.torch.learning.training import gaussian_by_product, log_loss
from tests.support.thinning import slow

SIMILARITIES = ["per_feature", "width", "linear", "encoder"]
QUICK = {"max_epochs": 3, "hidden_sizes": (4,), "random_state": 0}


@pytest.fixture
def table(generator):
    X = generator.normal(size=(60, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.1 * generator.normal(size=60)


@pytest.fixture
def rotated(generator):
    X = generator.normal(size=(400, 3))
    return X, np.sin(2.0 * X.sum(axis=1)) + 0.1 * generator.normal(size=400)


@pytest.mark.slow  # forty epochs, twice
def test_a_linear_map_finds_a_direction_that_no_column_has(rotated):
    X, y = rotated
    scores = {
        similarity: LearnedPoolingRegressor(similarity, learning_rate=0.05, max_epochs=40, random_state=0)
        .fit(X[:200], y[:200])
        .score(X[200:], y[200:])
        for similarity in ("per_feature", "linear")
    }
    assert scores["linear"] > 0.8
    assert scores["linear"] > scores["per_feature"] + 0.2


@pytest.mark.slow  # sixty epochs
def test_classes_along_a_direction(rotated):
    X, y = rotated
    labels = np.where(X.sum(axis=1) + 0.5 * y > 0, "up", "down")
    model = LearnedPoolingClassifier(max_epochs=60, random_state=0).fit(X[:200], labels[:200])
    closed = NadarayaWatsonClassifier().fit(X[:200], labels[:200])
    assert model.score(X[200:], labels[200:]) >= closed.score(X[200:], labels[200:])
    loss = model.history_["validation_loss"]
    assert loss[model.best_epoch_] < 0.9 * loss[0]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


def test_epoch_zero_of_a_classifier(table):
    X, y = table
    model = LearnedPoolingClassifier(max_epochs=0).fit(X, y > 0)
    closed = NadarayaWatsonClassifier(bandwidth="log_loss", min_effective_rows=None).fit(X, y > 0)
    np.testing.assert_allclose(model.predict_proba(X), closed.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), closed.predict(X))


def test_the_rule_of_scott_to_start_from(table):
    X, y = table
    model = LearnedPoolingRegressor("linear", max_epochs=0, warm_start_bandwidth=False).fit(X, y)
    expected = NadarayaWatsonRegressor(bandwidth="scott").fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    assert not hasattr(model, "bandwidth_search_")


def test_own_keys_are_left_out_by_number():
    """Of two equal rows with different outputs each is predicted by the other one."""
    X, y = np.array([[0.0], [0.0], [100.0], [100.0]] * 8), np.array([0.0, 1.0] * 16)
    model = LearnedPoolingRegressor("width", max_epochs=0, random_state=0).fit(X, y)
    training, _ = split_rows(np.zeros(32, dtype=int), 0.15, np.random.RandomState(0))
    scaled, key = (y - 0.5) / 0.5, X[training] / model.bandwidth_search_.bandwidth
    expected = pool(key, key, scaled[training], exclude_self=True)
    loss = np.mean((expected - scaled[training]) ** 2)
    assert model.history_["training_loss"][0] == pytest.approx(loss, rel=1e-12)
    assert loss > 1.0  # with its own key each row would be predicted better than by the mean


@pytest.mark.parametrize("similarity", [*slow("per_feature", "width"), "linear", "encoder"])
def test_the_same_seed_gives_the_same_bits(similarity, table):
    X, y = table
    state = torch.get_rng_state()
    models = [LearnedPoolingRegressor(similarity, max_keys=20, batch_size=16, **QUICK).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    np.testing.assert_array_equal(models[0].history_["training_loss"], models[1].history_["training_loss"])
    assert torch.equal(torch.get_rng_state(), state)
    other = clone(models[0]).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.history_["validation_loss"], models[0].history_["validation_loss"])


def test_the_best_epoch_is_kept_and_patience_ends_learning(table):
    X, y = table
    noise = np.random.default_rng(1).normal(size=(60, 4))
    settings = {"learning_rate": 0.2, "penalty": 0.0, "random_state": 0}
    model = LearnedPoolingRegressor(max_epochs=60, patience=5, **settings).fit(np.hstack([X, noise]), y)
    loss = model.history_["validation_loss"]
    assert model.best_epoch_ == np.argmin(loss)
    assert len(loss) == model.best_epoch_ + 6 < 61
    again = LearnedPoolingRegressor(max_epochs=max(1, model.best_epoch_), **settings).fit(np.hstack([X, noise]), y)
    np.testing.assert_array_equal(again.history_["validation_loss"], loss[: len(again.history_["validation_loss"])])
    if model.best_epoch_:
        np.testing.assert_array_equal(model.encode(np.hstack([X, noise])), again.encode(np.hstack([X, noise])))


def test_penalty_holds_the_map_where_it_starts(table):
    X, y = table
    free, held = (
        LearnedPoolingRegressor(penalty=penalty, learning_rate=0.05, max_epochs=10, random_state=0).fit(X, y)
        for penalty in (0.0, 1e6)
    )
    start = LearnedPoolingRegressor(max_epochs=0).fit(X, y).encode(X)
    moved = [np.sum((model.encode(X) - start) ** 2) for model in (free, held)]
    assert moved[1] < 0.1 * moved[0]


def test_the_similarity_is_a_layer(table):
    X, y = table
    model = LearnedPoolingRegressor("encoder", output_size=2, **QUICK).fit(X, y)
    x, value = torch.tensor(X), torch.tensor(y)[:, None]
    pooled, weights = AttentionPooling(model.similarity_)(x[:7], x, value, return_weights=True)
    np.testing.assert_allclose(pooled[:, 0].detach().numpy(), model.predict(X[:7]), atol=1e-12)
    np.testing.assert_allclose(weights.detach().numpy(), model.attention_weights(X[:7]), atol=1e-12)
    assert model.encode(X).shape == (60, 2)
    with pytest.raises(ValueError, match="max_bytes"):
        model.attention_weights(X, max_bytes=100)


def test_products_are_the_gaussian(generator):
    query, key = (torch.tensor(generator.normal(size=(n, 4)) + 1e4, requires_grad=True) for n in (5, 9))
    expected = GaussianSimilarity(1.0, dtype=torch.float64)(query, key)
    found = gaussian_by_product(query, key)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), (query, key)),
        torch.autograd.grad(expected.square().sum(), (query, key)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_share_of_zero_has_a_finite_loss():
    pooled = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    label, prior = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64), torch.full((2,), 0.5).double()
    loss = log_loss(pooled, label, prior=prior, share=1e-3).mean()
    loss.backward()
    assert loss.item() == pytest.approx(-0.5 * (np.log(5e-4) + np.log1p(-5e-4)), rel=1e-12)
    assert torch.isfinite(pooled.grad).all()


def test_probabilities_have_the_share_of_the_priors(generator, tmp_path):
    X = generator.normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0.3, "up", "down")
    model = LearnedPoolingClassifier(max_epochs=3, random_state=0).fit(X, labels)
    label = (labels[:, None] == model.classes_).astype(float)
    code = model.encode(X)
    left_out = np.sum(label * pool(code, code, label, exclude_self=True), axis=1)
    assert model.prior_share_ == pytest.approx(prior_share(left_out, prior_of_others(label)).share, abs=1e-8)
    pooled = model.attention_weights(X) @ label
    expected = (1 - model.prior_share_) * pooled + model.prior_share_ * label.mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    model.save(tmp_path / "model")
    again = LearnedPoolingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    record = model._to_record()
    header = {name: entry for name, entry in record.header.items() if name != "prior_share"}
    with pytest.raises(ValueError, match="does not have the entries of a learned model"):
        LearnedPoolingClassifier._from_record(replace(record, header=header))


@pytest.mark.parametrize("columns", [1, 2])
def test_classes_that_one_neighbour_tells_apart_can_still_be_learned(columns):
    """Where leave-one-out is perfect in narrow windows, the start has windows wide enough for a slope."""
    generator = np.random.default_rng(0)
    X = np.r_[generator.normal(size=(30, columns)), generator.normal(size=(30, columns)) + 9.0]
    model = LearnedPoolingClassifier(max_epochs=5, random_state=0).fit(X, np.arange(60) // 30)
    assert model.prior_share_ == pytest.approx(1 / 61)
    assert 1e-4 < model.history_["training_loss"][0] < 0.2
    assert model.history_["training_loss"][-1] < model.history_["training_loss"][0]


def test_a_single_row_of_a_class(generator):
    X, labels = generator.normal(size=(30, 2)), np.array(["a", "b"] * 14 + ["c", "b"])
    model = LearnedPoolingClassifier(**QUICK).fit(X, labels)
    assert np.isfinite(model.history_["validation_loss"]).all()
    assert model.predict_proba(X).shape == (30, 3)


@pytest.mark.parametrize("fraction", [0.01, 0.15, 0.5, 0.99])
@pytest.mark.parametrize("n", [3, 10, 101])
def test_splits(n, fraction):
    strata = np.arange(n) % 2
    training, validation = split_rows(strata, fraction, np.random.RandomState(0))
    assert sorted([*training, *validation]) == list(range(n))
    assert len(training) >= 2
    assert len(validation) >= 1
    if n == 101 and fraction < 0.9:
        assert abs(strata[validation].sum() - len(validation) / 2) <= 1


def test_max_keys_and_float32_learn_about_the_same(rotated):
    X, y = rotated[0][:200], rotated[1][:200]
    whole = LearnedPoolingRegressor(random_state=0, max_epochs=8).fit(X, y)
    for other in ({"dtype": "float32"}, {"max_keys": 120}):
        model = clone(whole).set_params(**other).fit(X, y)
        assert model.key_.shape == X.shape
        assert model.predict(X).dtype == np.float64
        loss = model.history_["validation_loss"]
        assert loss.min() < loss[0]
    assert make_map("linear", *np.ones((3, 2)), dtype=torch.float32).weight.dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("dtype", ["float64", "float32", None])
def test_on_a_gpu(dtype, table):
    X, y = table
    expected = LearnedPoolingRegressor("encoder", dtype="float64", **QUICK).fit(X, y)
    model = LearnedPoolingRegressor("encoder", dtype=dtype, device="cuda", **QUICK).fit(X, y)
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    for name, losses in model.history_.items():
        np.testing.assert_allclose(losses, expected.history_[name], rtol=tolerance)
    assert next(model.similarity_.encoder.parameters()).device.type == "cpu"
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=0, atol=100 * tolerance)


def test_pipelines_grids_and_names(table):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    X, y = pandas.DataFrame(table[0], columns=["a", "b", "c"]), table[1]
    model = LearnedPoolingRegressor(**QUICK).fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"] == list(model.bandwidth_search_.names)
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), LearnedPoolingRegressor(**QUICK)),
        {"learnedpoolingregressor__similarity": ["width", "linear"]},
        cv=2,
    ).fit(X, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert clone(model).get_params() == model.get_params()


def test_progress(table):
    seen = []
    with report_progress(lambda done, total: seen.append((done, total))):
        LearnedPoolingRegressor(max_epochs=2, batch_size=20, warm_start_bandwidth=False).fit(*table)
    done, total = np.transpose(seen)
    assert np.all(np.diff(done) >= 0)
    assert set(total) == {2 * 51}
    assert done[-1] == total[-1]


@pytest.mark.parametrize("outputs", [1, 2])
def test_constant_outputs_and_columns(outputs, generator):
    X = np.hstack([generator.normal(size=(20, 2)), np.ones((20, 1))])
    y = np.full((20, outputs), 3.0)
    with pytest.warns(UserWarning, match="do not vary"):
        model = LearnedPoolingRegressor(**QUICK).fit(X, y)
    np.testing.assert_allclose(model.predict(X), 3.0, atol=1e-12)


def test_one_class(table):
    X, _ = table
    model = LearnedPoolingClassifier(**QUICK).fit(X, ["only"] * 60)
    assert set(model.predict(X)) == {"only"}


def test_more_batch_than_rows(table):
    model = LearnedPoolingRegressor(**QUICK, batch_size=10**6).fit(*table)
    assert len(model.history_["training_loss"]) == 4


def test_learning_that_explodes_keeps_what_it_had(table):
    X, y = table
    model = LearnedPoolingRegressor("per_feature", learning_rate=1e4, max_epochs=20, random_state=0)
    with pytest.warns(UserWarning, match="learning ended in epoch 1, where the loss became infinite or NaN"):
        model.fit(X, y)
    assert model.best_epoch_ == 0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"similarity": "cosine"}, "similarity must be one of 'per_feature', .*, got 'cosine'"),
        ({"learning_rate": -0.1}, r"learning_rate must be a positive finite number, got -0\.1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a positive finite number, got nan"),
        ({"max_epochs": 1.5}, r"max_epochs must be a whole number from 0 on, got 1\.5"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 on, got 0"),
        ({"patience": 0}, "patience must be a whole number from 1 on"),
        ({"penalty": -1}, "penalty must be a finite number from 0 on, got -1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1"),
        ({"max_keys": 1}, "max_keys must be a whole number from 2 on, got 1"),
        ({"hidden_sizes": 64}, "hidden_sizes must be a sequence of whole numbers"),
        ({"hidden_sizes": (0,)}, "hidden_sizes must be a whole number from 1 on, got 0"),
        ({"output_size": 4}, "output_size must be at most the number of columns, 3"),
        ({"output_size": 2, "similarity": "width"}, "output_size is for similarity='linear' and 'encoder'"),
        ({"dtype": "float16"}, "dtype must be one of None, 'float64', 'float32', got 'float16'"),
        ({"device": "nowhere"}, "device 'nowhere' cannot be used"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_parameters(parameters, message, table):
    model = LearnedPoolingRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*table)
    assert not hasattr(model, "similarity_")


def test_bad_data(table):
    X, y = table
    for array in (X, y):
        spoilt = array.copy()
        spoilt[3] = np.nan
        given = (spoilt, y) if array is X else (X, spoilt)
        with pytest.raises(ValueError, match="NaN"):
            LearnedPoolingRegressor().fit(*given)
    with pytest.raises(ValueError, match=r"learning needs at least 3 rows, .* n_samples = 1"):
        LearnedPoolingRegressor().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="Unknown label type"):
        LearnedPoolingClassifier().fit(X, y)
    LearnedPoolingRegressor(max_epochs=2).fit(X[:3], y[:3])


def test_a_failed_refit_leaves_the_old_fit(table):
    X, y = table
    model = LearnedPoolingRegressor(**QUICK).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="learning_rate"):
        model.set_params(learning_rate=-1).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("size", [None, 2, 9])
@pytest.mark.parametrize("kind", SIMILARITIES)
def test_shapes_of_maps_are_told_without_making_one(kind, size):
    made = make_map(kind, *np.ones((3, 5)), start=None if size is None else np.ones((size, 5)))
    told = map_shapes(kind, 5, size, (64,))
    assert told == {name: tuple(tensor.shape) for name, tensor in made.state_dict().items()}


def test_a_narrow_map_starts_with_the_distances_that_it_can_keep(generator):
    Z, relevance = generator.normal(size=(50, 4)) * [1.0, 1.0, 1e-3, 1e-3], np.array([2.0, 1.0, 1.0, 3.0])
    whole, narrow = Z * relevance, Z @ principal_start(Z, relevance, 2).T
    distances = [np.linalg.norm(rows[:, None] - rows, axis=-1) for rows in (whole, narrow)]
    np.testing.assert_allclose(distances[1], distances[0], atol=0.05)
    np.testing.assert_array_equal(principal_start(Z, relevance, 4), np.diag(relevance))
    np.testing.assert_array_equal(principal_start(Z, relevance, 5), np.diag([*relevance, 0.0])[:, :4])


TINY = {"max_epochs": 2, "random_state": 0}
TINY_FROM_A_RULE = TINY | {"warm_start_bandwidth": False}


def expected_failures(estimator):
    """scikit-learn asks that X with one dimension be refused at fit; here it is one column."""
    failures = {"check_fit1d": "X with one dimension is one column"}
    if estimator.warm_start_bandwidth or isinstance(estimator, LearnedPoolingClassifier):  # otherwise epoch 0 is kept
        drawn = "batches and validation rows are drawn from other rows"
        failures["check_sample_weight_equivalence_on_dense_data"] = drawn
    return failures


# Some checks give all rows a weight of two, or ask about rows unlike those of positive weight.
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
@parametrize_with_checks([LearnedPoolingRegressor(**TINY_FROM_A_RULE)], expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
@parametrize_with_checks(
    [LearnedPoolingClassifier(**TINY_FROM_A_RULE), LearnedPoolingRegressor(**TINY)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check_of_variants(estimator, check):
    check(estimator)
