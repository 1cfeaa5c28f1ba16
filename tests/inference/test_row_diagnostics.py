"""What displays draw of rows, groups and slopes at other bandwidths: the numbers of models that are asked for them."""

import numpy as np
import pytest
from scipy.stats import t

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, slope_map
from kernpool.inference.hypothesis_tests.curve_equality import GroupCurves, group_curves


@pytest.fixture
def rows():
    random = np.random.default_rng(3)
    x = np.sort(random.uniform(0, 2, 60))
    return x[:, None], np.sin(3 * x) + (0.1 + 0.2 * x) * random.normal(size=60), random.integers(0, 4, 60)


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_residuals_are_those_of_the_model(rows, Regressor, kernel):
    X, y, weight = rows
    model = Regressor(kernel=kernel, bandwidth=0.3).fit(X, y, sample_weight=weight)
    found = model.residuals()
    np.testing.assert_allclose(found.fitted, model.predict(X), rtol=1e-12, atol=1e-12)
    kept = weight > 0
    deleted = model.leave_one_out().prediction.ravel()
    np.testing.assert_allclose(found.residual[kept], (y - deleted)[kept], rtol=1e-10, atol=1e-12)
    share = np.diagonal(model.attention_weights(X))
    np.testing.assert_allclose(found.leverage[kept] * weight[kept], share[kept], rtol=1e-10)
    new = model.predict(X, return_std=True)[1]
    np.testing.assert_allclose(found.noise**2 + model.get_prediction(X).standard_error ** 2, new**2, rtol=1e-12)
    np.testing.assert_array_equal(found.weight, weight)


def test_residuals_print_the_largest_and_become_a_frame(rows):
    pytest.importorskip("pandas", reason="frames need pandas")
    X, y, _ = rows
    y = np.c_[y, y]
    y[17, 1] += 5.0
    found = LocalLinearRegressor(bandwidth=0.3).fit(X, y).residuals()
    lines = str(found).splitlines()
    assert lines[2].split() == ["row", "output", "fitted", "residual", "standardized", "leverage"]
    assert lines[3].split()[:2] == ["17", "1"]
    assert len(lines) == 9
    frame = found.to_frame()
    assert frame.columns[:4].tolist() == ["fitted_0", "fitted_1", "residual_0", "residual_1"]
    np.testing.assert_array_equal(frame["standardized_1"], found.residual[:, 1] / found.noise[:, 1])
    interval = LocalLinearRegressor(bandwidth=0.3).fit(X, y[:, 0]).confidence_interval(X)
    np.testing.assert_array_equal(interval.to_frame(), np.c_[interval.center, interval.lower, interval.upper])


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_residuals_of_a_fit_with_groups_are_of_left_out_clusters(rows, Regressor):
    X, y, weight = rows
    y, groups = np.c_[y, 3.0 - y**2], np.arange(60) % 15
    model = Regressor(bandwidth=0.3).fit(X, y, sample_weight=weight, groups=groups)
    found, kept = model.residuals(), weight > 0
    for g in range(15):
        others = groups != g
        alone = Regressor(bandwidth=0.3).fit(X[others], y[others], sample_weight=weight[others])
        np.testing.assert_allclose(
            found.residual[~others & kept], (y - alone.predict(X))[~others & kept], rtol=1e-9, atol=1e-12
        )
    np.testing.assert_array_equal(found.cluster, groups)
    share = np.exp(-0.5 * ((X - X.T) / 0.6) ** 2) * weight  # noise is averaged in twice the bandwidth
    expected = np.sqrt(share @ np.where(kept[:, None], found.residual, 0.0) ** 2 / share.sum(axis=1)[:, None])
    np.testing.assert_allclose(found.noise, expected, rtol=1e-11)
    prediction = model.get_prediction(X)
    total = found.noise**2 + prediction.standard_error**2
    np.testing.assert_allclose(total, prediction.observation_std**2, rtol=1e-12)
    plain = Regressor(bandwidth=0.3).fit(X, y, sample_weight=weight).residuals()
    assert plain.cluster is None
    np.testing.assert_array_equal(plain.fitted, found.fitted)
    np.testing.assert_array_equal(plain.leverage, found.leverage)


def test_few_clusters_have_residuals_and_no_standard_deviation_of_new_rows(rows):
    X, y, _ = rows
    model = LocalLinearRegressor(bandwidth=0.3).fit(X, y, groups=np.arange(60) % 3)
    assert model.residuals().residual.shape == (60,)
    for ask in (lambda: model.get_prediction(X).standard_error, lambda: model.predict(X, return_std=True)):
        with pytest.raises(ValueError, match=r"3 clusters of positive weight.*at least 5"):
            ask()


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_a_row_of_the_map_is_the_slope_at_its_bandwidth(rows, Regressor, simultaneous):
    X, y, weight = rows
    at, widths = np.linspace(0.05, 1.95, 25)[:, None], [0.04, 0.2, 0.7]
    asked = Regressor(bandwidth=0.4).fit(X, y, sample_weight=weight)
    found = slope_map(asked, at, bandwidths=widths, simultaneous=simultaneous, level=0.9)
    np.testing.assert_array_equal(found.x, at[:, 0])
    for i, h in enumerate(widths):
        model = LocalLinearRegressor(bandwidth=h).fit(X, y, sample_weight=weight)
        slope = model.confidence_interval(
            at, quantity="derivative", method="naive", level=0.9, simultaneous=simultaneous
        )
        count = np.exp(-0.5 * ((at - X.T) / h) ** 2) @ weight
        np.testing.assert_allclose(found.rows[i], count, rtol=1e-10)
        np.testing.assert_array_equal(found.enough[i], count >= 5)
        expected = (slope.lower[:, 0] > 0) * 1 - (slope.upper[:, 0] < 0) * 1
        np.testing.assert_array_equal(found.sign[i], np.where(count >= 5, expected, 0))
    assert {-1, 0, 1} == set(found.sign[1].tolist())
    assert not found.enough[0].all()
    assert found.enough[2].all()


def test_the_map_without_noise_or_without_freedom_claims_nothing():
    x = np.linspace(0, 1, 12)[:, None]
    straight = LocalLinearRegressor(kernel="epanechnikov", bandwidth=0.5).fit(x, np.zeros(12))
    assert not slope_map(straight, bandwidths=[0.5]).enough.any()
    rough = LocalLinearRegressor(kernel="epanechnikov", bandwidth=0.5).fit(x, np.cos(30 * x[:, 0]))
    narrow = slope_map(rough, bandwidths=[0.01, 0.5])
    assert not narrow.enough[0].any()
    assert narrow.enough[1].any()


def test_windows_of_tied_rows_have_no_slope():
    """Their shares in it are zero, and the inner product with those of the next place need not be."""
    random = np.random.default_rng(0)
    x = np.round(random.uniform(3.2, 6.1, 60), 1)
    model = LocalLinearRegressor(bandwidth=0.2).fit(x[:, None], np.sin(x) + 0.1 * random.normal(size=60))
    found = slope_map(model, bandwidths=[0.01, 0.02, 0.2])  # warnings are errors
    assert not found.enough[0].any()
    assert found.enough[2].mean() > 0.9


def test_maps_that_there_are_none_of(rows):
    X, y, _ = rows

    def of(*data, **parameters):
        return LocalLinearRegressor(**({"bandwidth": 0.3} | parameters)).fit(*data)

    shapes = r"bandwidths must be positive finite numbers of shape \(b,\)"
    for model, options, message in (
        *((of(X, y), {"bandwidths": wrong}, shapes) for wrong in ([], [0.0], [-1.0], [np.nan], [[0.1]])),
        (of(X, y), {"level": 95}, "95 percent is level"),
        (of(X, y), {"method": "none"}, "method must be one of"),
        (of(np.c_[X, X**2], y), {}, "for one column, and this model has 2"),
        (of(X, np.c_[y, y]), {}, "for one output, and this model has 2"),
        (LocalLinearRegressor().fit(X, y, groups=np.arange(60) // 5), {}, "this model was fitted with groups="),
    ):
        with pytest.raises(ValueError, match=message):
            slope_map(model, **options)
    assert slope_map(of(X, y, kernel="boxcar"), bandwidths=[0.3], simultaneous=False).enough.any()


def test_curves_of_groups_are_those_of_their_rows(rows):
    X, y, weight = rows
    weight = weight + (np.arange(60) % 2 == 1)  # rows of weight zero among the first group alone
    groups = np.where(np.arange(60) % 2, "odd", "even")
    found = group_curves(X, y, groups, 0.3, sample_weight=weight, places=31)
    np.testing.assert_array_equal(found.x, np.linspace(X[weight > 0].min(), X[weight > 0].max(), 31))
    assert found.labels.tolist() == ["even", "odd"]
    for k, label in enumerate(found.labels):
        own = (groups == label) & (weight > 0)
        model = LocalLinearRegressor(bandwidth=0.3).fit(X[own], y[own], sample_weight=weight[own])
        inside = (found.x >= X[own].min()) & (found.x <= X[own].max())
        at = found.x[inside, None]
        np.testing.assert_allclose(found.curve[k, inside], model.predict(at), rtol=1e-11)
        np.testing.assert_allclose(found.standard_error[k, inside], model.get_prediction(at).standard_error, rtol=1e-11)
        assert np.isnan(found.curve[k, ~inside]).all()
    (lower, again), (upper, _) = found.reference_band(0.9)
    np.testing.assert_allclose(lower, again, rtol=1e-12)
    both = np.isfinite(found.curve).all(axis=0)
    np.testing.assert_array_equal(np.isfinite(lower), both)
    np.testing.assert_allclose((lower + upper)[both], found.curve.sum(axis=0)[both], rtol=1e-12)
    error = np.sqrt(np.sum(found.standard_error**2, axis=0))[both]
    assert np.all((upper - lower)[both] > 1.645 * error)  # Student's quantile is above the normal one
    assert np.all((upper - lower)[both] < 2.2 * error)


@pytest.mark.parametrize("groups", [2, 3])
def test_some_curve_leaves_its_reference_band_in_a_twentieth(groups):
    """Of samples of parallel curves, pointwise, and for all groups together."""
    random, outside = np.random.default_rng(0), []
    for _ in range(60):
        x, group = random.uniform(size=60 * groups), np.arange(60 * groups) % groups
        y = np.sin(6 * x) + group + 0.3 * random.normal(size=60 * groups)
        found = group_curves(x, y, group, 0.1, parallel=True, places=11)
        lower, upper = found.reference_band()
        outside.append(((found.curve > upper) | (found.curve < lower)).any(axis=0)[2:9])
    assert 0.015 < np.mean(outside) < 0.1


def test_reference_bands_have_the_error_of_each_distance_from_the_mean():
    """By the variance of each distance, with all groups known at some places and two or one at others."""
    random = np.random.default_rng(3)
    curve, error, df = random.normal(size=(3, 4)), random.uniform(0.1, 1.0, size=(3, 4)), random.uniform(5, 50, (3, 4))
    curve[2, 1] = error[2, 1] = df[2, 1] = np.nan
    curve[1:, 2] = error[1:, 2] = df[1:, 2] = np.nan
    curve[:, 3] = error[:, 3] = df[:, 3] = np.nan
    offset = np.array([0.0, 2.0, -1.0])
    lower, upper = GroupCurves(np.arange(4.0), np.arange(3), curve, error, df, offset).reference_band(0.9)
    for place, known in enumerate([[0, 1, 2], [0, 1]]):
        k = len(known)
        center = np.mean([curve[g, place] - offset[g] for g in known])
        for g in known:
            part = np.array([((j == g) - 1 / k) ** 2 * error[j, place] ** 2 for j in known])
            freedom = part.sum() ** 2 / np.sum(part**2 / df[known, place])
            half = t.ppf(1 - 0.05 / (k if k > 2 else 1), freedom) * np.sqrt(part.sum())
            np.testing.assert_allclose(lower[g, place], center + offset[g] - half, rtol=1e-12)
            np.testing.assert_allclose(upper[g, place], center + offset[g] + half, rtol=1e-12)
    assert np.isnan(lower[2, 1])
    assert np.isnan(lower[:, 2:]).all()


def test_groups_without_a_curve(rows):
    X, y, _ = rows
    for columns, groups, message in (
        (X, np.arange(60) // 56, "group 1 has 4 rows, and a curve with standard errors needs at"),
        (np.c_[X, X], np.arange(60) % 2, "over one column, and X has 2"),
        (X, np.arange(60) % 2, "95 percent is level"),
    ):
        with pytest.raises(ValueError, match=message):
            group_curves(columns, y, groups, 0.3, places=5).reference_band(95)


@pytest.mark.parametrize("groups", [None, np.arange(60) % 12])
def test_residuals_are_the_callers_to_change(groups):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(size=(60, 1)), generator.normal(size=60)
    model = LocalLinearRegressor(bandwidth=0.3).fit(X, y, groups=groups)
    before = model.get_prediction(X).standard_error, model.summary().r2
    found = model.residuals()
    for array in (found.fitted, found.residual, found.leverage, found.weight, found.noise):
        array *= 3.0
    np.testing.assert_array_equal(model.get_prediction(X).standard_error, before[0])
    np.testing.assert_array_equal(model.summary().r2, before[1])
