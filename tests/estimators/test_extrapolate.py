"""Queries beyond the training rows: who is warned of them."""

import inspect
import itertools
import math
import statistics
import warnings

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    load_model,
    save_model,
)
from kernpool.estimators.extrapolation import reach_of_rows


def slow_limit(known, bandwidth, d, planes):
    """Return the upper limit of a column by the rule as it is stated; of its mirror image for the lower one."""
    n, known = len(known), sorted(known)
    gaps = [after - before for before, after in itertools.pairwise(known) if after > before]
    margin = max(2 * bandwidth, 3 * statistics.median(gaps) if gaps else 0.0)
    limit = known[-1] + (min(margin, (known[-1] - known[0]) / 2) if planes else margin)
    limit += 1e-9 * max(map(abs, known))
    if n < 3:
        return limit
    k = min(12, max(3, n // 8), max(1, n // 2 - 2))
    median = (known[(n - 1) // 2] + known[n // 2]) / 2
    distance = [known[n - 1 - i] - median for i in range(1, k + 2)]
    index = 0.5
    if distance[-1] > 0:
        index = min(0.5, sum(math.log(one / distance[-1]) for one in distance[:-1]) / k)
    tail = median + distance[0] * min(6.0, max(1.0, 4 * d / (0.003 * n)) ** index)
    return max(limit, min(tail, known[-2] + (known[-2] - known[1]) / 2) if planes else tail)


def slow_rule(key, weight, query, bandwidth, planes):
    """Say of each query, one number after the other, whether it is beyond the training rows."""
    found = []
    for row in query:
        beyond = False
        for a, value in enumerate(row):
            known = np.repeat(key[:, a], weight.astype(int)).tolist()
            beyond |= value > slow_limit(known, bandwidth[a], len(row), planes)
            beyond |= -value > slow_limit([-x for x in known], bandwidth[a], len(row), planes)
        found.append(beyond)
    return np.array(found)


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_rule_is_that_of_a_loop_over_all_numbers(dtype, make, generator):
    for _ in range(60):
        n, d = generator.integers(1, 60), generator.integers(1, 4)
        key = generator.choice([generator.normal(size=(n, d)), generator.integers(0, 3, (n, d))]).astype(dtype)
        weight, bandwidth = generator.integers(0, 3, n) * 1.0, generator.uniform(0.05, 1.0, d)
        weight[0] = 1.0
        query = (4.0 * generator.normal(size=(20, d))).astype(dtype)
        expected = slow_rule(
            key.astype(float), weight, query.astype(float), bandwidth, make is not NadarayaWatsonRegressor
        )
        model = make(bandwidth=bandwidth).fit(key, np.zeros(n), weight)
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.predict(query)
        messages = [str(one.message) for one in caught if one.category is ExtrapolationWarning]
        assert len(messages) == expected.any()
        if messages:
            assert messages[0].startswith(f"{expected.sum()} of 20 queries (the first is query {expected.argmax()})")


X5 = np.linspace(0.0, 5.0, 60)[:, None]
OUT, IN = [[8.0]], [[2.0]]
AT = {
    "predict": lambda m, X: m.predict(X),
    "score": lambda m, X: m.score([*X, [1.0]], m.predict(np.array([*IN, [1.0]]))),
    "attention_weights": lambda m, X: m.attention_weights(X),
}
REGRESSION = AT | {
    "predict, std": lambda m, X: m.predict(X, return_std=True),
    "get_prediction, slope": lambda m, X: m.get_prediction(X).slope,
    "get_prediction, standard_error": lambda m, X: m.get_prediction(X).standard_error,
    "confidence_interval": lambda m, X: m.confidence_interval(X),
    "prediction_interval": lambda m, X: m.prediction_interval(X),
    "prediction_interval, other rows": lambda m, X: m.prediction_interval(
        X, method="split", X_calibration=np.vstack([X5[::3], [[50.0]]]), y_calibration=np.zeros(21)
    ),
    "quantile": lambda m, X: m.quantile(X),
    "conditional_distribution, quantile_interval": lambda m, X: m.conditional_distribution(X).quantile_interval(),
    "conditional_distribution, sample": lambda m, X: m.conditional_distribution(X).sample(),
    "conditional_distribution, cdf": lambda m, X: m.conditional_distribution(X).cdf(0.0),
    "conditional_distribution, density": lambda m, X: m.conditional_distribution(X, y_bandwidth="rule").pdf(0.0),
    "conditional_distribution, pit": lambda m, X: m.conditional_distribution(X).pit([0.0]),
    "conditional_distribution, crps": lambda m, X: m.conditional_distribution(X).crps([0.0]),
    "bootstrap": lambda m, X: m.bootstrap(X, n_resamples=9),
}
CLASSES = AT | {
    "predict_proba": lambda m, X: m.predict_proba(X),
    "predict_proba, std": lambda m, X: m.predict_proba(X, return_std=True),
    "probability_interval": lambda m, X: m.probability_interval(X),
    "predict_set": lambda m, X: m.predict_set(X),
    "get_prediction": lambda m, X: m.get_prediction(X).standard_error,
}
METHODS = [(make, name) for make in (NadarayaWatsonRegressor, LocalLinearRegressor) for name in REGRESSION]
METHODS += [(NadarayaWatsonClassifier, name) for name in CLASSES]


def fitted(make, kernel="gaussian", **options):
    y = np.sin(X5[:, 0]) + 0.3 * np.cos(77 * X5[:, 0])
    y = np.where(y > 0, "up", "down") if make is NadarayaWatsonClassifier else y
    return make(kernel, bandwidth=0.4, **options).fit(X5, y)


def kinds_of_warnings(model, call, X):
    with warnings.catch_warnings(record=True, action="always") as caught:
        call(model, X)
    kinds = [one.category for one in caught]
    return [kind for kind in kinds if kind in (ExtrapolationWarning, EmptyWindowWarning)]


@pytest.mark.parametrize(("make", "name"), METHODS)
def test_every_method_that_answers_at_new_rows_warns_once(make, name):
    call, model = (CLASSES if make is NadarayaWatsonClassifier else REGRESSION)[name], fitted(make)
    if name == "score" and make is NadarayaWatsonClassifier:
        call = lambda m, X: m.score([*X, [1.0]], ["up", "down"])  # noqa: E731  # as the others are written
    assert kinds_of_warnings(model, call, OUT) == [ExtrapolationWarning]
    assert kinds_of_warnings(model, call, IN) == []


# A slope map has a value of its own for windows of few rows.
@pytest.mark.parametrize("name", REGRESSION)
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_compact_kernels_warn_of_the_empty_window_instead(make, name):
    assert kinds_of_warnings(fitted(make, "epanechnikov"), REGRESSION[name], OUT) == [EmptyWindowWarning]


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
def test_no_method_of_new_rows_is_forgotten(make):
    tested = {name.partition(",")[0] for one, name in METHODS if one is make}
    training = {"fit"}
    for name, method in inspect.getmembers(make, inspect.isfunction):
        if not name.startswith("_") and "X" in inspect.signature(method).parameters:
            assert name in tested | training, name


def test_the_message_names_the_column_and_its_range(generator):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pandas.DataFrame({"kind": ["a", "b"] * 30, "age": X5[:, 0], "size": np.cos(X5[:, 0])})
    model = NadarayaWatsonRegressor(bandwidth=0.4, smoothing=[0.1]).fit(frame, X5[:, 0])
    far = frame[:3].assign(age=[1.0, 1.0, 30.0])
    with pytest.warns(ExtrapolationWarning, match=r"the first is query 2\) .*: column 'age' is 30, .* have 0 to 5\."):
        model.predict(far)


@pytest.mark.parametrize("bandwidth", ["loo", 0.4])
def test_rows_in_chunks_have_a_range(bandwidth, tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([X5, np.sin(X5)]))
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(tmp_path / "rows.npy", "1")
    save_model(model, tmp_path / "model")
    for one in (model, load_model(tmp_path / "model")):
        for name in ("predict", "quantile", "prediction_interval"):
            assert kinds_of_warnings(one, REGRESSION[name], OUT) == [ExtrapolationWarning], name
            assert kinds_of_warnings(one, REGRESSION[name], IN) == [], name


WIDE = [("constant", 1.0), ("gaussian", 1e9), ("gaussian", np.inf), ("epanechnikov", np.inf)]


@pytest.mark.parametrize(("kernel", "bandwidth"), WIDE)
def test_global_planes_are_followed_for_half_of_the_range_and_global_means_everywhere(kernel, bandwidth):
    model = LocalLinearRegressor(kernel, bandwidth=bandwidth).fit(X5, np.sin(X5[:, 0]))
    for name in ("predict", "prediction_interval"):
        assert kinds_of_warnings(model, REGRESSION[name], [[7.6]]) == [ExtrapolationWarning]
        assert kinds_of_warnings(model, REGRESSION[name], [[-2.6]]) == [ExtrapolationWarning]
        assert kinds_of_warnings(model, REGRESSION[name], [[7.4]]) == []
    mean = NadarayaWatsonRegressor(kernel, bandwidth=bandwidth).fit(X5, np.sin(X5[:, 0]))
    assert kinds_of_warnings(mean, REGRESSION["predict"], [[7e5]]) == []


@pytest.mark.parametrize("kernel", ["epanechnikov", "boxcar", "gaussian"])
@pytest.mark.parametrize("name", ["predict", "predict_proba", "predict_set"])
def test_priors_far_from_all_rows_of_a_classifier_are_extrapolation(kernel, name):
    model = fitted(NadarayaWatsonClassifier, kernel)
    assert kinds_of_warnings(model, lambda m, X: getattr(m, name)(X), OUT) == [ExtrapolationWarning]
    assert kinds_of_warnings(model, lambda m, X: getattr(m, name)(X), IN) == []


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
@pytest.mark.parametrize("outlier", [30.0, -4e3])
def test_one_row_far_from_the_others_does_not_permit_more_than_its_own_window(make, outlier, generator):
    x = np.r_[generator.uniform(0, 1, 80), outlier]
    model = make(bandwidth=0.05).fit(x[:, None], x > 0.5)
    for query, expected in ((outlier * 1.01, [ExtrapolationWarning]), (outlier + 0.09, []), (1.0, [])):
        assert kinds_of_warnings(model, AT["predict"], [[query]]) == expected


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("times", [np.arange(1200.0), np.repeat(np.arange(20.0), 60), 18000 + 7 * np.arange(900.0)])
def test_the_next_step_of_a_series_is_no_extrapolation(make, times):
    model = make(bandwidth=0.4).fit(times[:, None], np.sin(times / 3))
    step = np.diff(np.unique(times))[0]
    assert kinds_of_warnings(model, AT["predict"], [[times[-1] + step]]) == []
    assert kinds_of_warnings(model, AT["predict"], [[times[-1] + np.ptp(times)]]) == [ExtrapolationWarning]


def test_rounding_of_a_constant_column_is_no_extrapolation(generator):
    Z = np.c_[generator.normal(size=60), np.full(60, 0.1 + 0.2)]
    model = LocalLinearRegressor(bandwidth=0.5).fit(Z, Z[:, 0])
    assert ExtrapolationWarning not in kinds_of_warnings(model, AT["predict"], [[0.0, 0.3]])


DRAWS = {
    "uniform": lambda g, shape: g.uniform(-2, 2, shape),
    "normal": lambda g, shape: g.normal(size=shape),
    "Student's t": lambda g, shape: g.standard_t(3, shape),
    "exponential": lambda g, shape: g.exponential(size=shape),
    "lognormal": lambda g, shape: np.exp(g.normal(size=shape)),
}


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("n", [50, 200, 1000])
def test_new_rows_like_the_training_rows_are_rarely_extrapolation_whatever_the_bandwidth(n, draw, planes):
    """The reach only grows with the bandwidth, which is zero here."""
    far = []
    for d in (1, 2, 3, 5):
        for seed in range(20):
            g = np.random.default_rng(seed)
            low, high = reach_of_rows(DRAWS[draw](g, (n, d)), np.ones(n), np.zeros(d), planes=planes)
            new = DRAWS[draw](g, (1000, d))
            far.append(((new < low) | (new > high)).any(axis=1).mean())
    assert np.mean(far) <= (0.06 if planes and n == 50 else 0.01)  # few rows with long tails have short planes


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_windows_of_the_nearest_rows_are_as_wide_as_those_of_rows_by_their_weights(generator):
    x, weight = np.r_[generator.uniform(0, 1, 40), np.linspace(2, 9, 20)][:, None], np.repeat([1, 9], [40, 20])
    limits = [
        NadarayaWatsonRegressor("tricube", 1.0, window=Nearest(30)).fit(rows, rows[:, 0], times)._extent.reach[0]
        for rows, times in ((x, weight), (np.repeat(x, weight, axis=0), None))
    ]
    np.testing.assert_allclose(*limits)
