"""The estimators beyond scikit-learn's own checks."""

import pickle
import re
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    KernelStackingRegressor,
    LocalLinearRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    RankDeficiencyWarning,
    get_kernel,
    kernel_names,
    load_model,
    make_kernel,
    pool,
    save_model,
)
from kernpool.bandwidth import CRITERIA, RULES
from kernpool.datasets import make_sine_power
from kernpool.execution import report_progress
from tests.support.problems import with_algorithm


@pytest.fixture
def sample():
    return make_sine_power(random_state=0)


@pytest.mark.parametrize("kernel", kernel_names())
@pytest.mark.parametrize("algorithm", ["reference", "brute"])
def test_effective_sample_size(kernel, algorithm, sample):
    X, query = sample.x_train[:, None], np.r_[sample.x_test, 60.0][:, None]
    model = NadarayaWatsonRegressor(kernel, 0.5, empty="zero")
    with_algorithm(model.fit(X, sample.y_train), algorithm)
    far = np.isinf(get_kernel(kernel).support) and kernel != "constant"
    with pytest.warns(ExtrapolationWarning, match="1 of 51") if far else nullcontext():
        prediction = model.get_prediction(query)
    alpha, size = prediction.weights(), prediction.effective_sample_size
    occupied = alpha.any(axis=1)
    np.testing.assert_allclose(size[occupied], 1 / np.sum(alpha[occupied] ** 2, axis=1), rtol=1e-9)
    assert np.all(size[~occupied] == 0)
    np.testing.assert_array_equal(prediction.has_support, occupied)


@pytest.mark.parametrize("y", [np.arange(12) % 3, np.arange(12) % 2 == 0])
def test_integer_and_boolean_outputs_are_numbers(y):
    X = np.arange(12.0)[:, None]
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y * 1.0).predict(X))
    assert model.predict(X).dtype == np.float64


def test_outside_the_support(sample):
    X = sample.x_train[:, None]
    model = NadarayaWatsonRegressor("epanechnikov", 0.5, empty="nan").fit(X, sample.y_train)
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries"):
        assert np.isnan(model.predict([[50.0], [2.0]])).tolist() == [True, False]
    np.testing.assert_array_equal(model.get_prediction([[50.0], [2.0]]).has_support, [False, True])
    model.set_params(empty="nearest").fit(X, sample.y_train)
    with pytest.warns(EmptyWindowWarning, match="1 of 1 queries .* get the answer of the nearest one; use a larger"):
        assert model.predict([[50.0]]) == sample.y_train[-1]
    assert model.set_params(empty="mean").fit(X, sample.y_train).predict([[50.0]]) == pytest.approx(
        sample.y_train.mean()
    )


SET_LATER = {
    "kernel": (LocalLinearRegressor(bandwidth=0.5), {"kernel": "product boxcar", "bandwidth": 2.0, "empty": "nan"}),
    "degree": (LocalPolynomialRegressor(bandwidth=0.5, degree=2), {"degree": 1}),
    "gap": (NadarayaWatsonRegressor(bandwidth=0.5), {"gap": 3}),
    "window": (LocalLinearRegressor(bandwidth=1.0, window=Nearest(20)), {"window": "fixed"}),
    "robust": (LocalLinearRegressor(bandwidth=0.5, robust=True), {"robust": False}),
    "searched": (NadarayaWatsonRegressor(), {"bandwidth": 0.3, "kernel": "tricube"}),
}


@pytest.mark.parametrize("name", SET_LATER)
def test_no_answer_and_no_file_has_a_parameter_that_was_set_later(name, sample, tmp_path):
    model, later = SET_LATER[name]
    X, at = sample.x_train[:, None], sample.x_train[:5, None] + 0.01
    once, twice = (clone(model).fit(X, sample.y_train) for _ in range(2))
    twice.set_params(**later)
    save_model(twice, tmp_path / "model")
    for other in (twice, load_model(tmp_path / "model"), pickle.loads(pickle.dumps(twice))):
        one, two = once.get_prediction(at), other.get_prediction(at)
        for attribute in ("mean", "slope", "standard_error"):
            np.testing.assert_array_equal(getattr(one, attribute), getattr(two, attribute))
        for ask in ("confidence_interval", "prediction_interval"):
            np.testing.assert_array_equal(getattr(once, ask)(at).upper, getattr(other, ask)(at).upper)
        assert str(once.summary()) == str(other.summary())
        if name != "robust":
            assert once.expected_error() == other.expected_error()


def test_a_fit_that_fails_leaves_the_one_before_whole(sample):
    """Its names and number of columns were those of the rows that failed."""
    frame = pd.DataFrame({"a": sample.x_train, "b": sample.x_train**2})
    local = NadarayaWatsonRegressor(bandwidth=0.5)
    for model in (local, KernelStackingRegressor(clone(local))):
        before = model.fit(frame, sample.y_train).predict(frame)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(frame.assign(c=np.nan), sample.y_train)
        with pytest.raises(ValueError, match="positive"):
            model.fit(frame[["a"]].rename(columns={"a": "q"}), sample.y_train, np.zeros(len(frame)))
        np.testing.assert_array_equal(model.predict(frame), before)


def test_search_results_do_not_outlive_a_refit(sample):
    X = sample.x_train[:, None]
    model = NadarayaWatsonRegressor().fit(X, sample.y_train)
    assert hasattr(model, "loo_error_")
    model.set_params(bandwidth=0.3).fit(X, sample.y_train)
    assert not hasattr(model, "loo_error_")
    assert model.leave_one_out().error > 0


def test_classifier_bandwidth_minimises_the_brier_score():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(80, 1))
    y = (X[:, 0] + generator.normal(0, 0.5, 80) > 0).astype(int)
    model = NadarayaWatsonClassifier(bandwidth="loo").fit(X, y)

    def brier(h):
        found = pool(X, X, np.eye(2)[y], bandwidth=h, exclude_self=True)
        return np.mean(np.sum((np.eye(2)[y] - found) ** 2, axis=1))

    assert model.loo_error_ == pytest.approx(brier(model.bandwidth_))
    assert model.loo_error_ <= min(brier(h) for h in np.geomspace(0.01, 10, 500)) * (1 + 1e-9)


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_a_grid_over_kernels_has_a_score_for_compact_ones_too(make, generator):
    X = generator.uniform(0, 5, (80, 1))
    y = np.sin(X[:, 0]) + 0.2 * generator.normal(size=80)
    grid = {"kernel": ["gaussian", "epanechnikov", "triangular", "boxcar"], "bandwidth": [0.02, 0.3, 1.0]}
    search = GridSearchCV(make(), grid, cv=KFold(5, shuffle=True, random_state=1))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search.fit(X, y > 0 if make is NadarayaWatsonClassifier else y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert {one.category for one in said} <= {EmptyWindowWarning, RankDeficiencyWarning}
    assert sum(one.category is EmptyWindowWarning for one in said) <= 5 * 3 * 3  # one for each fit of a compact kernel


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_in_the_company_of_scikit_learn(make, sample):
    X, y = sample.x_train[:, None], sample.y_train
    pipeline = make_pipeline(StandardScaler(), make(n_jobs=2))
    folds = KFold(3, shuffle=True, random_state=0)  # in the order of x they would be extrapolation
    assert cross_val_score(pipeline, X, y, cv=folds).shape == (3,)
    grid = {"bandwidth": [0.1, 0.4, 9.0, "aicc"], "kernel": ["gaussian", "laplace"]}
    search = GridSearchCV(make(), grid, cv=folds)
    assert search.fit(X, y).best_params_["bandwidth"] != 9.0
    model = clone(make(make_kernel("test-own", lambda u: 1 / (1 + u**2) ** 2))).fit(X, y)
    assert model.bandwidth_ > 0


def test_progress_needs_no_parameter(sample):
    seen = []
    with report_progress(lambda done, total: seen.append((done, total))):
        model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
        fitted = len(seen)
        model.predict(sample.x_test[:, None])
    assert fitted > 60
    assert seen[-1] == (50, 50)
    model.predict(sample.x_test[:, None])
    assert seen[-1] == (50, 50)
    assert len(seen) == fitted + 1


def test_a_constant_column_is_recognised_whatever_its_value():
    for value in (0.1, 0.3, 0.7, 1e6 + 0.1):
        X = np.c_[np.linspace(0, 1, 50), np.full(50, value)]
        with pytest.warns(UserWarning, match="do not vary"):
            model = NadarayaWatsonRegressor().fit(X, X[:, 0])
        found = model.predict([[0.2, value], [0.2, value + 1e-9]])
        np.testing.assert_allclose(found, found[0], rtol=1e-6)


def test_normalised_weights_are_searched_like_others(sample):
    X = sample.x_train[:, None]
    for total in (1.0, 1 - 1e-16, 1 + 4e-16):
        with pytest.warns(UserWarning, match="weights are read as frequencies"):
            model = NadarayaWatsonRegressor().fit(X, sample.y_train, sample_weight=np.full(50, total / 50))
        assert model.loo_error_ == pytest.approx(NadarayaWatsonRegressor().fit(X, sample.y_train).loo_error_, rel=1e-6)


def test_what_the_caller_may_change_is_copied_read_only_views_too(sample):
    X, y = sample.x_train[:, None].copy(), sample.y_train.copy()
    views = [array.view() for array in (X, y)]
    for view in views:
        view.flags.writeable = False  # as pandas hands out the numbers of its frames
    models = [NadarayaWatsonRegressor(bandwidth=0.4).fit(*given) for given in (views, (X, y))]
    X[:], y[:] = 0.0, 0.0
    for model in models:
        np.testing.assert_array_equal(model.key_[:, 0], sample.x_train)
        np.testing.assert_array_equal(model.value_, sample.y_train)
    smoothing = np.array([0.1])
    model = NadarayaWatsonRegressor(bandwidth=0.4, unordered=[1], smoothing=smoothing)
    model.fit([[0.0, 0], [1.0, 1], [2.0, 0]], [1.0, 2.0, 4.0])
    smoothing[:] = 0.5
    np.testing.assert_array_equal(model.smoothing_, [0.1])


def test_maps_for_reading_are_not_copied(sample, tmp_path):
    np.save(tmp_path / "X.npy", sample.x_train[:, None])
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, sample.y_train)
    assert np.shares_memory(model.key_, X)


@pytest.mark.filterwarnings("ignore::kernpool.SerialCorrelationWarning")  # a step
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
def test_the_bandwidths_that_a_refusal_names_are_those_that_can_be_fitted(make):
    x = np.linspace(0.0, 3.0, 60)[:, None]
    y = (np.sin(3.0 * x[:, 0]) > 0).astype(int)

    def can_be_fitted(name):
        try:
            make(bandwidth=name).fit(x, y)
        except ValueError:
            return False
        return True

    with pytest.raises(ValueError, match="got 'bic'") as refusal:
        make(bandwidth="bic").fit(x, y)
    named = set(re.findall(r"'(\w+)'", str(refusal.value))) - {"bic"}
    assert named == set(filter(can_be_fitted, (*CRITERIA, "log_loss", *RULES)))
    assert len(named) >= 6
