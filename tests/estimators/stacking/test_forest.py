"""A forest as a member: linear weights that are its predictions, out-of-bag predictions as scikit-learn's."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from kernpool import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    save_model,
)
from kernpool.estimators.stacking.forest import ForestMember

N = 40
FORESTS = {
    "forest": RandomForestRegressor(30, random_state=0),
    "large leaves": RandomForestRegressor(30, min_samples_leaf=3, max_features=2, random_state=0),
    "extra trees": ExtraTreesRegressor(30, bootstrap=True, random_state=0),
}


@pytest.fixture
def rows(generator):
    X = generator.uniform(-1, 1, size=(N, 3))
    return X, np.column_stack([(X[:, 0] > 0) + X[:, 1], X[:, 2]]) + 0.1 * generator.normal(size=(N, 2))


@pytest.mark.parametrize("forest", FORESTS.values(), ids=FORESTS)
def test_its_linear_weights_are_its_predictions(forest, rows, generator):
    X, y = rows
    weight = generator.integers(1, 4, N).astype(float)
    member = ForestMember.of(forest, X, y, weight)
    at = generator.uniform(-1, 1, size=(15, 3))
    weights = member.weights(at)
    np.testing.assert_allclose(weights @ y, member.forest.predict(at), atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()


def test_left_out_predictions_are_those_out_of_bag(rows):
    X, y = rows
    forest = RandomForestRegressor(60, oob_score=True, random_state=0)
    member = ForestMember.of(forest, X, y, np.ones(N))
    np.testing.assert_allclose(member.left_out, member.forest.oob_prediction_, atol=1e-12)


def test_a_stack_with_a_forest_is_a_linear_smoother(rows):
    X, y = rows
    local = LocalLinearRegressor(bandwidth=0.7)
    model = KernelStackingRegressor(local, forest=FORESTS["forest"]).fit(X, y)
    assert list(model.members_) == list(model.member_weights_) == ["local", "kernel_ridge", "forest"]
    assert min(model.member_weights_.values()) >= 1 / 6 - 1e-12
    np.testing.assert_allclose(model.attention_weights(X) @ y, model.predict(X), atol=1e-8)
    assert (model.confidence_interval(X[:3]).standard_error > 0).all()
    assert model.expected_error() > 0


def test_its_means_are_probabilities_of_classes(rows):
    X, _ = rows
    y = np.where(X[:, 0] > 0, "right", "left")
    local = NadarayaWatsonClassifier(bandwidth=0.7)
    model = KernelStackingClassifier(local, forest=FORESTS["forest"]).fit(X, y)
    assert len(model.member_weights_) == len(model.summary().members) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.loo_log_loss_)


def test_refusals_name_the_forest(rows, tmp_path):
    X, y = rows

    def fit(forest, groups=None):
        return KernelStackingRegressor(LocalLinearRegressor(bandwidth=0.7), forest=forest).fit(X, y, groups=groups)

    with pytest.raises(TypeError, match=r"or a RandomForestRegressor or ExtraTreesRegressor, got bool"):
        fit(True)
    with pytest.raises(ValueError, match="forest must have bootstrap=True"):
        fit(RandomForestRegressor(bootstrap=False))
    with pytest.raises(ValueError, match="criterion='absolute_error'"):
        fit(RandomForestRegressor(criterion="absolute_error"))
    with pytest.raises(ValueError, match="max_samples=10"):
        fit(RandomForestRegressor(max_samples=10))
    with pytest.raises(ValueError, match="forest= takes rows one by one"):
        fit(FORESTS["forest"], np.arange(N) // 4)
    with pytest.raises(ValueError, match="forest has no out-of-bag prediction for"):
        fit(RandomForestRegressor(1, random_state=0))
    with pytest.raises(TypeError, match="a forest is not saved by save_model"):
        save_model(fit(FORESTS["forest"]), tmp_path / "model")
