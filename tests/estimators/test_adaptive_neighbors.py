"""Estimators whose widths are of the rows, chosen by evidence, or at least the bandwidth."""

import numpy as np
import pytest

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.pooling.recipe import Recipe

RNG = np.random.default_rng(5)
X = RNG.exponential(size=(60, 1))
Y = np.sin(3.0 * X[:, 0]) + 0.2 * RNG.normal(size=60)
NEW = RNG.exponential(1.5, size=(20, 1))
TWO, NEW_TWO, RATIOS = RNG.exponential(size=(60, 2)), RNG.exponential(size=(20, 2)), [1.0, 3.0]
KINDS = NadarayaWatsonRegressor, LocalLinearRegressor


def made(kind, k, **options):
    options = {"kernel": "gaussian", "bandwidth": RATIOS if options.pop("two", False) else 1.0} | options
    return kind(**{"widths": "adaptive", "n_neighbors": k} | options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", ["adaptive", "widened"])
def test_predictions_are_pools_of_the_same_windows(kind, widths):
    for x, new in ((X, NEW), (TWO, NEW_TWO)):
        two, options = x is TWO, {"widths": widths, "n_neighbors": 17}
        model = made(kind, 17, two=two, widths=widths).fit(x, Y)
        options |= {"kernel": "gaussian", "bandwidth": RATIOS if two else 1.0, "degree": kind._degree}
        np.testing.assert_allclose(model.predict(new), kernpool.pool(new, x, Y, **options), rtol=1e-10)
        np.testing.assert_allclose(model.get_prediction(new).weights() @ Y, model.predict(new), rtol=1e-9)
    assert "17 nearest rows" in str(model.summary())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", ["adaptive", "widened"])
def test_leave_one_out_is_a_fit_without_the_row(kind, widths):
    found = made(kind, 15, two=True, widths=widths).fit(TWO, Y).leave_one_out()
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        one = made(kind, 15, two=True, widths=widths).fit(TWO[rest], Y[rest])
        np.testing.assert_allclose(found.prediction[i, 0], one.predict(TWO[[i]])[0], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", ["adaptive", "widened"])
def test_search_finds_the_best_of_all_numbers(kind, widths):
    options = {"widths": widths} | ({"bandwidth": 0.3} if widths == "widened" else {"bandwidth": "loo"})
    model = kind("tricube", **options).fit(X, Y)
    numbers = range(2 + 2 * kind._degree, 59 if widths == "adaptive" else 60)
    options["bandwidth"] = 0.3
    errors = {k: kind("tricube", n_neighbors=k, **options).fit(X, Y).leave_one_out().error for k in numbers}
    np.testing.assert_allclose(model.leave_one_out().error, min(errors.values()))
    assert errors[model.n_neighbors_] == min(errors.values())
    assert model.expected_error() > 0.0


@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")
def test_inference_has_the_weights_of_the_fit():
    model = made(NadarayaWatsonRegressor, 20).fit(X, Y)
    weights, hat = model.get_prediction(NEW).weights(), model.get_prediction(X).weights()
    summary, left_out = model.summary(), model.leave_one_out().prediction[:, 0]
    np.testing.assert_allclose([summary.trace, summary.trace_squared], [np.trace(hat), np.sum(hat**2)], rtol=1e-9)
    np.testing.assert_allclose(summary.rss, np.sum((Y - hat @ Y) ** 2), rtol=1e-9)
    np.testing.assert_allclose(summary.loo_error, np.mean((Y - left_out) ** 2), rtol=1e-9)
    naive = model.confidence_interval(NEW, method="naive", variance="hc0")
    np.testing.assert_allclose(naive.standard_error, np.sqrt(weights**2 @ (Y - hat @ Y) ** 2), rtol=1e-9)
    rows = model.get_prediction(NEW[:4]).explain(3)
    order = np.argsort(-weights[:4], axis=1)[:, :3]
    np.testing.assert_array_equal(rows.row, order)
    np.testing.assert_allclose(rows.weight, np.take_along_axis(weights[:4], order, axis=1), rtol=1e-9)
    attention = np.zeros(60)
    for i in range(60):
        rest = np.arange(60) != i
        options = {"widths": "adaptive", "n_neighbors": 20}
        attention[rest] += kernpool.pooling_weights(X[[i]], X[rest], **options)[0]
    np.testing.assert_allclose(kernpool.row_diagnostics(model).attention, attention, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")
def test_bias_is_corrected_in_wider_windows_of_the_same_rows():
    model = made(LocalLinearRegressor, 20).fit(X, Y)
    problem = Recipe.of("gaussian", degree=1, n_neighbors=20, widths="adaptive").problem(NEW, X, Y)
    problem = problem.with_kernel(problem.similarity.kernel, np.sqrt(2.0))
    wide = kernpool.core.solve(kernpool.choose(problem).reduce(problem.without_center()), problem.layout)
    wide = wide.intercept[:, 0] + problem.value_center[0]
    found = model.confidence_interval(NEW, method="robust")
    np.testing.assert_allclose(found.center, 2.0 * model.predict(NEW) - wide, rtol=1e-9)


def test_quantiles_and_classes_have_the_same_windows():
    options = {"widths": "adaptive", "n_neighbors": 20}
    model = made(NadarayaWatsonRegressor, 20).fit(X, Y)
    right = kernpool.pool_quantile(NEW, X, Y, [0.1, 0.5, 0.9], **options)
    np.testing.assert_array_equal(model.quantile(NEW, [0.1, 0.5, 0.9]), right)
    model = made(NadarayaWatsonClassifier, 20, prior_share=0.0).fit(X, Y > 0)
    np.testing.assert_allclose(
        model.predict_proba(NEW)[:, 1], kernpool.pool(NEW, X, 1.0 * (Y > 0), **options), atol=1e-12
    )


@pytest.mark.parametrize("method", ["adaptive", "split", "jackknife+", "cv+", "localized"])
def test_conformal_intervals(method):
    model = made(LocalLinearRegressor, 20).fit(X, Y)
    options = {"X_calibration": X[:30] + 0.01, "y_calibration": Y[:30]} if method in ("split", "localized") else {}
    found = model.prediction_interval(NEW, level=0.8, method=method, **options)
    assert np.all(found.lower <= found.upper)


def test_what_cannot_be_done_says_what_can():
    model = made(LocalLinearRegressor, 20).fit(X, Y)
    with pytest.raises(ValueError, match="is not possible with widths='adaptive'; use"):
        model.prediction_interval(NEW, method="full")
    with pytest.raises(ValueError, match="leave attn_mask and groups out"):
        made(LocalLinearRegressor, None, bandwidth="loo").fit(X, Y, groups=np.arange(60) % 9)
    with pytest.raises(ValueError, match="give weights of at least one"):
        made(LocalLinearRegressor, None).fit(X, Y, sample_weight=np.full(60, 0.5))
    with pytest.raises(ValueError, match="gap must be 0"):
        made(LocalLinearRegressor, 20, gap=3).fit(X, Y)
    for kind, rows in ((NadarayaWatsonRegressor, 2), (LocalLinearRegressor, 3)):
        with pytest.raises(ValueError, match=rf"{rows} key\(s\) are too few .* use widths='nearest'"):
            made(kind, None).fit(X[:rows], Y[:rows]).predict(NEW)
    means = made(NadarayaWatsonRegressor, 20).fit(X, Y)
    with pytest.raises(ValueError, match="no standard errors where each row has its own width"):
        means.confidence_interval(NEW, quantity="derivative", method="naive")
    with pytest.raises(ValueError, match=r"nor slopes of weighted means.* LocalLinearRegressor"):
        _ = means.get_prediction(NEW).slope
    for closed in ({"periodic": {0: 2.0}}, {"geographic": (0, 1)}):
        with pytest.raises(ValueError, match="points in two or three; use widths='nearest'"):
            made(NadarayaWatsonRegressor, 20, **closed).fit(TWO, Y)


def test_a_table_of_predictions_has_the_slopes_that_there_are():
    pytest.importorskip("pandas", reason="to_frame makes a frame of pandas")
    names = {kind: set(made(kind, 20).fit(X, Y).get_prediction(NEW).to_frame().columns) for kind in KINDS}
    assert names[LocalLinearRegressor] - names[NadarayaWatsonRegressor] == {"slope_0"}


@pytest.mark.parametrize("kind", KINDS)
def test_auto_keeps_the_windows_of_the_smaller_error(kind):
    noise = np.random.default_rng(1).normal(size=60)
    for best, y in (
        ("fixed", np.sin(3 * X[:, 0]) + 0.02 * noise),
        ("nearest", np.sin(2 * np.log(X[:, 0])) + 0.1 * noise),
    ):
        model, right = (kind(bandwidth="loo", widths=name).fit(X, y) for name in ("auto", best))
        other = kind(bandwidth="loo", widths="fixed" if best == "nearest" else "nearest").fit(X, y)
        assert model.widths_ == best
        assert model.loo_error_ < other.loo_error_
        np.testing.assert_allclose(model.predict(NEW), right.predict(NEW), rtol=1e-9)
        np.testing.assert_allclose(model.loo_error_, right.loo_error_)
        assert ("nearest rows" in str(model.summary())) == (best == "nearest")


def test_expected_errors_are_of_bandwidths_in_the_units_that_were_given():
    model = LocalLinearRegressor(bandwidth=1.5, bandwidth_convention="ksmooth", widths="widened").fit(X, Y)
    same = LocalLinearRegressor(bandwidth=model.bandwidth_, widths="widened").fit(X, Y)
    assert model.n_neighbors_ == same.n_neighbors_
    assert model.expected_error() == pytest.approx(same.expected_error(), rel=1e-9)


def test_windows_of_fixed_width_that_are_chosen_have_the_floor_of_classes():
    label = (X[:, 0] + 0.5 * Y > 1.0).astype(int)
    auto, fixed = (NadarayaWatsonClassifier(bandwidth="regularised", widths=w).fit(X, label) for w in ("auto", "fixed"))
    assert auto.widths_ == "fixed"
    assert auto.min_effective_rows_ == fixed.min_effective_rows_ > 1.0
    np.testing.assert_allclose(auto.predict_proba(NEW), fixed.predict_proba(NEW), rtol=1e-12)


def test_auto_takes_a_circle_for_one_column():
    hour = RNG.uniform(0, 24, size=(60, 1))
    model = NadarayaWatsonRegressor(widths="auto", periodic={0: 24}).fit(hour, np.sin(hour[:, 0] * np.pi / 12))
    assert model.widths_ in ("fixed", "nearest")


def test_auto_can_be_fitted_again_and_refuses_what_was_not_measured():
    model = LocalLinearRegressor("tricube", widths="auto").fit(X, Y)
    again = model.set_params(widths="nearest", n_neighbors=12).fit(X, Y)
    assert again.n_neighbors_ == 12
    assert not hasattr(again, "widths_")
    with pytest.raises(ValueError, match="widths='auto' is for one column, got 2; fit widths='fixed' and 'nearest'"):
        LocalLinearRegressor(widths="auto").fit(TWO, Y)
    for bandwidth in (0.3, "aicc", [0.3]):
        with pytest.raises(ValueError, match="bandwidth must be 'regularised' or 'loo' with it"):
            LocalLinearRegressor(bandwidth=bandwidth, widths="auto").fit(X, Y)


@pytest.mark.parametrize("kind", [*KINDS, NadarayaWatsonClassifier])
@pytest.mark.parametrize("widths", ["adaptive", "widened", "auto"])
def test_saved_models_keep_their_windows(tmp_path, kind, widths):
    y = Y > 0 if kind is NadarayaWatsonClassifier else Y
    model = kind("tricube", "loo", widths=widths).fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    for name in ("n_neighbors_", "widths_"):
        assert vars(again).get(name) == vars(model).get(name)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
