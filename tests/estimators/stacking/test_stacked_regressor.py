"""Stacked kernel regression: a linear smoother as a whole, with leave-one-out predictions that are refits."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from kernpool import KernelStackingRegressor, LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.bandwidth import TrainingRows
from kernpool.estimators.methods.inference import Prediction
from kernpool.estimators.stacking import inference, kernel_ridge
from kernpool.estimators.stacking.kernel_ridge import fit_kernel_ridge
from kernpool.estimators.stacking.stack import FittedStack

LOCALS = {
    "planes": LocalLinearRegressor(bandwidth=0.7),
    "constants": NadarayaWatsonRegressor(bandwidth=0.5),
    "compact": NadarayaWatsonRegressor("epanechnikov", 1.5),
}
N = 50


@pytest.fixture
def rows(generator):
    X = generator.uniform(-1, 1, size=(N, 3))
    y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1], 100 * X[:, 2] ** 2]) + 0.1 * generator.normal(size=(N, 2))
    return X, y


def model(local="planes", **options):
    return KernelStackingRegressor(LOCALS[local], **options)


def test_the_average_is_that_of_the_members(rows):
    X, y = rows
    fitted = model().fit(X, y)
    local, *ridges = fitted.members_.values()
    weights = list(fitted.member_weights_.values())
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    each = [local.predict(X), *(ridge.predict(columns) for ridge in ridges)]
    np.testing.assert_allclose(fitted.predict(X), np.tensordot(weights, each, 1))
    assert sum(weights) == pytest.approx(1.0)
    assert min(weights) >= 1 / 6


@pytest.mark.parametrize("clustered", [False, True])
def test_leave_one_out_is_a_refit_with_the_choices_of_all_rows(clustered, rows):
    X, y = rows
    group = np.arange(N) // 3 if clustered else None
    fitted = model().fit(X, y, groups=group)
    local, *ridges = fitted.members_.values()
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    for g in range(0, N // 3 if clustered else N, 4):
        out = np.arange(N) // 3 == g if clustered else np.arange(N) == g
        each = [clone(local).fit(X[~out], y[~out]).predict(X[out])]
        for ridge in ridges:
            again = fit_kernel_ridge([ridge.kernel], TrainingRows.from_arrays(columns[~out], y[~out]))
            again = replace(again, coefficients=again.spectrum.coefficients(y[~out], ridge.ridge))
            each.append(y[out] - ridge.optimism * (y[out] - again.predict(columns[out])))
        expected = np.tensordot(list(fitted.member_weights_.values()), each, 1)
        np.testing.assert_allclose(fitted.leave_one_out().prediction[out], expected, atol=1e-7)
    assert fitted.loo_error_ == pytest.approx(np.mean(np.sum((fitted.leave_one_out().prediction - y) ** 2, axis=1)))


def test_categories_are_columns_of_zero_and_one(rows):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    X, _ = rows
    city = np.array(["oslo", "bergen", "tromso"])[np.arange(N) % 3]
    y = X[:, 0] + (city == "oslo")
    frame = pandas.DataFrame({"a": X[:, 0], "city": city})
    fitted = KernelStackingRegressor(LocalLinearRegressor(bandwidth=0.7, smoothing=0.1, unseen="unlike")).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == ["a", "city"]
    assert fitted.members_["kernel_ridge"].spectrum.landmarks.shape[1] == 4
    np.testing.assert_allclose(fitted.attention_weights(frame) @ y, fitted.predict(frame), atol=1e-10)
    assert np.isfinite(fitted.predict(pandas.DataFrame({"a": [0.0], "city": ["paris"]}))).all()


def test_the_summary_has_the_members_and_their_weights(rows):
    X, y = rows
    fitted = model().fit(X, y[:, 0])
    summary, hat = fitted.summary(), fitted.attention_weights(X)
    assert summary.trace == pytest.approx(np.trace(hat))
    assert summary.trace_squared == pytest.approx(np.sum(hat**2))
    assert [member.weight for member in summary.members] == list(fitted.member_weights_.values())
    assert summary.loo_r2[0] == pytest.approx(1.0 - fitted.loo_error_ / np.var(y[:, 0]))


def test_residuals_are_left_out(rows):
    X, y = rows
    found = model().fit(X, y).residuals()
    np.testing.assert_allclose(found.residual, y - model().fit(X, y).leave_one_out().prediction)
    assert found.leverage.shape == (N,)
    assert (found.noise > 0).all()


def test_many_rows_are_predicted_with_landmarks(monkeypatch, rows):
    X, y = rows
    monkeypatch.setattr(kernel_ridge, "SEARCH_ROWS", 30)
    searched = model().fit(X, y)
    assert len(searched.members_["kernel_ridge"].spectrum.landmarks) == N
    monkeypatch.setattr(type(searched.members_["kernel_ridge"].kernel), "MOST_LANDMARKS", 20)
    fitted = model().fit(X, y)
    assert len(fitted.members_["kernel_ridge"].spectrum.landmarks) == 20
    np.testing.assert_allclose(fitted.attention_weights(X) @ y, fitted.predict(X), atol=1e-8)
    np.testing.assert_array_equal(fitted.predict(X), model().fit(X, y).predict(X))


def test_hat_matrices_are_summed_in_blocks(monkeypatch, rows):
    X, y = rows
    fitted = model().fit(X, y)
    whole = fitted.confidence_interval(X[:4])
    monkeypatch.setattr(kernel_ridge, "BLOCK_CELLS", 1400)
    np.testing.assert_allclose(fitted.confidence_interval(X[:4]).lower, whole.lower)


def test_only_the_callers_limit_counts(monkeypatch, rows):
    X, y = rows
    fitted = model().fit(X, y)
    monkeypatch.setattr(Prediction.weights, "__kwdefaults__", {"max_bytes": 10})
    assert fitted.attention_weights(X).shape == (N, N)
    assert fitted.residuals().leverage.shape == (N,)
    assert fitted.confidence_interval(X).center.shape == (N, 2)
    assert fitted.summary().rows == N
    monkeypatch.setattr(inference, "MOST_BYTES", 8 * N * 5)
    assert fitted.confidence_interval(X[:5]).center.shape == (5, 2)
    with pytest.raises(
        ValueError, match="X must have at most 5 rows for confidence intervals of a fit to 50 rows, got 6"
    ):
        fitted.confidence_interval(X[:6])


@pytest.mark.filterwarnings("ignore:sample_weight has mean 0.02")
def test_normalised_weights_are_weights(rows):
    X, y = rows
    plain, normalised = model().fit(X, y), model().fit(X, y, np.full(N, 1.0 / N))
    np.testing.assert_allclose(normalised.predict(X), plain.predict(X), atol=1e-7)
    assert normalised.loo_error_ == pytest.approx(plain.loo_error_)
    assert normalised.members_["kernel_ridge"].ridge == pytest.approx(plain.members_["kernel_ridge"].ridge / N)


def test_constant_outputs_have_no_r2(rows):
    X, y = rows
    flat = model().fit(X, np.ones(N)).summary()
    assert np.isnan([*flat.r2, *flat.loo_r2, *(member.loo_score for member in flat.members)]).all()
    some, alone = model().fit(X, np.column_stack([y, np.full(N, 0.1)])).summary(), model().fit(X, y).summary()
    np.testing.assert_allclose(some.loo_r2, [*alone.loo_r2, np.nan])
    for one, other in zip(some.members, alone.members, strict=True):
        assert one.loo_score == pytest.approx(other.loo_score)


def test_scores_of_members_have_no_unit(rows):
    X, y = rows
    for one, other in zip(
        model().fit(X, y).summary().members, model().fit(X, y * [1e3, 1]).summary().members, strict=True
    ):
        assert one.loo_score == pytest.approx(other.loo_score)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_the_expected_error_is_of_the_whole_fit(rows):
    X, y = rows
    fitted = model().fit(X, y)
    error = fitted.expected_error()
    assert 0.5 * fitted.loo_error_ < error < 2.0 * fitted.loo_error_
    assert fitted.expected_error() == error
    assert "_expected_error_" not in vars(fitted.fit(X, y))
    assert model().fit(X, y, groups=np.arange(N) // 5).expected_error() > 0
    copies = model().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2, axis=0))
    assert copies.expected_error() > 2 * copies.loo_error_


# --- bad input: works, or says what is wrong


@pytest.mark.filterwarnings("ignore:.* do not vary")
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_hard_inputs_are_answered(generator):
    X, y = generator.normal(size=(12, 2)), generator.normal(size=12)
    cases = {
        "constant column": (np.column_stack([X, np.full(12, 0.1)]), y),
        "twice the same column": (X[:, [0, 0, 1]], y),
        "constant output": (X, np.full(12, 0.1)),
        "three rows": (X[:3], y[:3]),
        "two rows": (X[:2], y[:2]),
        "more columns than rows": (generator.normal(size=(6, 20)), y[:6]),
        "copies of rows": (X[np.arange(12) % 3], y),
        "all rows the same": (np.ones((12, 2)), y),
        "far from zero": (X + 1e9, y + 1e9),
        "huge outputs": (X, y * 1e140),
    }
    for name, (columns, output) in cases.items():
        fitted = KernelStackingRegressor(LocalLinearRegressor(bandwidth=2.0)).fit(columns, output)
        assert np.isfinite(fitted.predict(columns)).all(), name
        assert np.isfinite(fitted.loo_error_), name
        np.testing.assert_allclose(fitted.attention_weights(columns).sum(axis=1), 1.0, err_msg=name)
    np.testing.assert_array_equal(model().fit(X[:, [0, 1, 1]], np.full(12, 0.1)).predict(X[:, [0, 1, 1]]), 0.1)


def test_one_category_per_row_is_answered(generator):
    labels = np.array([[f"name {i}"] for i in range(8)], dtype=object)
    fitted = KernelStackingRegressor(LocalLinearRegressor(unordered=[0])).fit(labels, generator.normal(size=8))
    assert np.isfinite(fitted.predict(labels)).all()


def test_refusals_name_the_argument(rows, tmp_path):
    X, y = rows
    with pytest.raises(ValueError, match="at least two rows, got 1 sample"):
        KernelStackingRegressor(LocalLinearRegressor(bandwidth=1.0)).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="random_state must be"):
        model(random_state="seven").fit(X, y)
    with pytest.raises(TypeError, match="None, or a LocalLinearRegressor or NadarayaWatsonRegressor, got str"):
        KernelStackingRegressor("planes").fit(X, y)
    with pytest.raises(TypeError, match="rows in memory, got str"):
        model().fit("rows.parquet", "y")
    with pytest.raises(ValueError, match="NaN"):
        model().fit(np.where(X > 0.9, np.nan, X), y)
    with pytest.raises(ValueError, match="sample_weight"):
        model().fit(X, y, np.zeros(N))
    with pytest.raises(ValueError, match="more than max_bytes=10"):
        model().fit(X, y).attention_weights(X, max_bytes=10)
    with pytest.raises(ValueError, match="at least four rows"):
        model().fit(X[:3], y[:3]).expected_error()


def test_a_failed_fit_leaves_the_earlier_one(rows):
    X, y = rows
    fitted = model().fit(X, y)
    before = fitted.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full_like(X, np.nan), y)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_members_are_those_of_the_stack(rows):
    X, y = rows
    fitted = model().fit(X, y)
    assert isinstance(fitted._stack, FittedStack)
    assert list(fitted.members_) == list(fitted.member_weights_) == ["local", "kernel_ridge", "anova"]
