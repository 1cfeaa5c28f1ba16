"""Windows that follow the rows: at each query an ordinary model, of the width that the definition gives there.

Where rows are left out, drawn again or deleted, the width is that of the rows that are left.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernpool
from kernpool import Floor, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Nearest
from kernpool.bandwidth import TrainingRows
from kernpool.bandwidth.search import Found
from kernpool.core import NO_CATEGORIES, ExcludedPairs, Exclusion, Problem
from kernpool.estimators.bandwidth import find_floor
from kernpool.inference.resampling.bootstrap import resampled_counts
from kernpool.pooling import choose
from kernpool.pooling.weights import weight_tables
from kernpool.pooling.widths import LARGER, with_widths
from kernpool.smoother.windows import FACTORS

RNG = np.random.default_rng(5)
X = np.column_stack([RNG.gamma(2.0, size=70), RNG.normal(size=70)])
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=70)
NEW = np.column_stack([RNG.uniform(0.0, 5.0, size=25), RNG.normal(size=25)])
LEVEL = RNG.choice(list("abc"), size=70)
H = [0.25, 0.4]

MODELS = {
    "planes": LocalLinearRegressor(bandwidth=H, ridge=0.01, window=Floor(6)),
    "constants": NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)),
    "compact": LocalLinearRegressor("epanechnikov", bandwidth=[1.0, 1.5], window=Floor(6)),
    "nearest planes": LocalLinearRegressor("tricube", bandwidth=[1.0, 3.0], ridge=0.01, window=Nearest(15)),
    "nearest constants": NadarayaWatsonRegressor("product epanechnikov", bandwidth=[1.0, 3.0], window=Nearest(9)),
}
FREQUENCY = RNG.integers(0, 4, size=70).astype(float)


def clone(kind):
    return type(MODELS[kind])(**MODELS[kind].get_params())


def width_of(model, query, rows, weight):
    """The factor of the bandwidths at one query, from the definition."""
    u = np.abs(query - rows) / np.array(model.bandwidth)
    kernel = kernpool.get_kernel(model.kernel)
    distance = u.max(axis=1) if kernel.composition == "product" else np.sqrt((u**2).sum(axis=1))
    if isinstance(model.window, Nearest):
        return LARGER * np.sort(np.repeat(distance, weight.astype(int)))[model.window.k - 1]
    for factor in FACTORS:
        share = weight * kernel.profile(distance / factor)
        if share.sum() ** 2 >= model.window.rows * (share * kernel.profile(distance / factor)).sum() > 0.0:
            break
    return factor


def fit_at(kind, query, weight, rows=X, y=Y):
    """An ordinary model at the width of one query."""
    model = MODELS[kind]
    options = {"bandwidth": (width_of(model, query, rows, weight) * np.array(model.bandwidth)).tolist()}
    plain = type(model)(**model.get_params() | options | {"window": "fixed"})
    return plain.fit(rows[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])


def without(row, weight=FREQUENCY):
    return np.where(np.arange(70) == row, 0.0, weight)


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_every_fit_is_one_of_the_width_that_its_rows_have(kind):
    """Frequencies, rows deleted, one unit left out, drawn again: each finds its own windows."""
    model, near = clone(kind).fit(X, Y, sample_weight=FREQUENCY), NEW[:4]
    prediction = model.get_prediction(near)
    explained, drawn = prediction.explain(2), model.bootstrap(near, n_resamples=2, kind="pairs", random_state=1)
    units = FREQUENCY.astype(int)
    times = [resampled_counts(1, number, 70, units).astype(float) for number in range(2)]
    for i, q in enumerate(near):
        np.testing.assert_allclose(prediction.widening[i], width_of(model, q, X, FREQUENCY), rtol=1e-13)
        assert prediction.mean[i] == pytest.approx(fit_at(kind, q, FREQUENCY).predict([q])[0], rel=1e-9)
        for row, influence in zip(explained.row[i], explained.influence[i], strict=True):
            left = fit_at(kind, q, without(row)).predict([q])[0]
            assert influence == pytest.approx(left - prediction.mean[i], abs=1e-9)
        for fit, weight in zip(drawn, times, strict=True):
            assert fit[i] == pytest.approx(fit_at(kind, q, weight).predict([q])[0], rel=1e-8)
    left_out, residuals = model.leave_one_out().prediction[:, 0], model.residuals()
    np.testing.assert_allclose(residuals.fitted, model.predict(X), rtol=1e-9)
    own = np.diag(model.attention_weights(X) if model._degree == 0 else model.get_prediction(X).weights())
    np.testing.assert_allclose(residuals.leverage * np.maximum(FREQUENCY, 1.0), own, rtol=1e-8, atol=1e-14)
    for i in range(0, 70, 20):
        rest = FREQUENCY - (np.arange(70) == i) * (FREQUENCY > 0)
        assert left_out[i] == pytest.approx(fit_at(kind, X[i], rest).predict(X[[i]])[0], rel=1e-9)


def weights_of(model, query):
    return model.attention_weights(query)


def at_each_width(model, answer, query, rows=X, y=Y):
    """What ordinary models of each width answer, at the queries of this width."""
    widening = model.get_prediction(query).widening
    assert len(np.unique(widening)) >= 2, "the case is of several widths"
    found = None
    for factor in np.unique(widening):
        (some,) = np.nonzero(widening == factor)
        part = query.iloc[some] if hasattr(query, "iloc") else query[some]
        options = {"bandwidth": (factor * model.bandwidth_).tolist(), "window": "fixed"}
        one = np.asarray(answer(type(model)(**model.get_params() | options).fit(rows, y), part))
        found = np.zeros((len(widening), *one.shape[1:])) if found is None else found
        found[some] = one
    return found


@pytest.mark.parametrize("kind", ["planes", "constants", "nearest planes"])
def test_standard_errors_are_of_the_weights_of_each_window(kind):
    model = MODELS[kind].fit(X, Y)
    found = model.confidence_interval(NEW, method="naive")
    share = at_each_width(model, weights_of, NEW)
    squared = (Y - model.leave_one_out().prediction[:, 0]) ** 2

    def noise(one, q):
        wide = NadarayaWatsonRegressor(one.kernel, (2.0 * one.bandwidth_).tolist()).fit(X, squared)
        return wide.predict(q)

    error = np.sqrt(at_each_width(model, noise, NEW) * np.sum(share**2, axis=1))
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")
@pytest.mark.parametrize("kind", ["planes", "nearest planes"])
def test_bias_is_removed_by_the_same_window_a_root_of_two_wider(kind):
    model = MODELS[kind].fit(X, Y)
    found = model.confidence_interval(NEW, method="robust")

    def corrected(one, q):
        wide = (np.sqrt(2.0) * one.bandwidth_).tolist()
        wider = LocalLinearRegressor(one.kernel, bandwidth=wide, ridge=0.01).fit(X, Y)
        return 2.0 * one.predict(q) - wider.predict(q)

    np.testing.assert_allclose(found.center, at_each_width(model, corrected, NEW), rtol=1e-9)


def test_errors_of_clusters():
    group, wide = np.arange(70) % 9, [2.0 * h for h in H]
    model = LocalLinearRegressor(bandwidth=wide, ridge=0.01, window=Floor(15)).fit(X, Y)
    near = NEW[np.abs(NEW[:, 0] - 1.5) < 1.0]
    found = model.confidence_interval(near, method="naive", groups=group)
    share = at_each_width(model, weights_of, near)
    left = LocalLinearRegressor(bandwidth=wide, ridge=0.01, window=Floor(15)).fit(X, Y, groups=group)
    residual = Y - left.leave_one_out().prediction[:, 0]
    sums = np.stack([np.sum((share * residual)[:, group == g], axis=1) for g in range(9)])
    np.testing.assert_allclose(found.standard_error, np.sqrt(np.sum(sums**2, axis=0)), rtol=1e-9)


@pytest.mark.parametrize("kind", ["planes", "nearest planes"])
def test_attention_of_rows(kind):
    model = clone(kind).fit(X, Y)
    found = kernpool.row_diagnostics(model).attention
    received = np.zeros(70)
    for i in range(70):
        rest = np.arange(70) != i
        h = width_of(model, X[i], X[rest], np.ones(69)) * np.array(model.bandwidth)
        share = kernpool.pooling_weights(X[[i]], X[rest], kernel=model.kernel, bandwidth=h)[0]
        received[rest] += share
    np.testing.assert_allclose(found, received, rtol=1e-9)


def test_rows_of_weight_zero_receive_no_attention():
    """In windows of their own, where all that attends may have weight zero, levels or not."""
    weight = np.where(np.arange(70) % 9, 1.0, 0.0)
    frame = pd.DataFrame({"x": X[:, 0], "level": pd.Categorical(np.arange(70) % 3)})
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1], window=Nearest(9))
    found, kept = kernpool.row_diagnostics(model.fit(frame, Y, sample_weight=weight)).attention, weight > 0
    again = kernpool.row_diagnostics(model.fit(frame[kept], Y[kept])).attention
    np.testing.assert_allclose(found[kept], again, rtol=1e-12)
    assert not found[~kept].any()


def test_default_floor_and_its_absence():
    found = LocalLinearRegressor(window=Floor(6)).fit(X, Y)
    assert found.loo_error_ == pytest.approx(found.leave_one_out().error, rel=1e-10)
    assert 1.0 < NadarayaWatsonClassifier().fit(X, Y > 0).window_.rows <= 12.0
    for given in (
        LocalLinearRegressor(),
        NadarayaWatsonClassifier(bandwidth=0.5),
        LocalLinearRegressor(bandwidth="loo"),
        LocalLinearRegressor(bandwidth=0.5),
        NadarayaWatsonRegressor(),
    ):
        assert given.fit(X, Y > 0).window_ == "fixed"
        np.testing.assert_array_equal(given.get_prediction(NEW).widening, np.ones(25))
    assert NadarayaWatsonClassifier(window="fixed").fit(X, Y > 0).window_ == "fixed"
    assert found.expected_error() > found.loo_error_


def test_columns_without_spread():
    model = LocalLinearRegressor().fit(pd.DataFrame({"level": pd.Categorical(LEVEL)}), Y)
    assert model.window_ == "fixed"
    constant = NadarayaWatsonRegressor(bandwidth=1.0, window=Floor(5)).fit(np.ones((9, 1)), np.arange(9.0))
    assert constant.predict([[1.0]]) == 4.0


WIDENING = np.array(FACTORS)[RNG.integers(0, len(FACTORS), size=25)]


def problem_of(degree, **options):
    return with_widths(Problem.from_arrays(NEW, X, Y, bandwidth=0.5, degree=degree, **options), WIDENING)


@pytest.mark.parametrize(
    ("algorithm", "degree"),
    [*((name, degree) for name in ("reference", "brute") for degree in (0, 1, 2)), ("kd_tree", 0), ("kd_tree", 1)],
)
@pytest.mark.parametrize("kernel", ["gaussian", "tricube", "laplace"])
def test_every_algorithm_sums_in_windows_of_each_query(kernel, algorithm, degree):
    problem = problem_of(degree, kernel=kernel)
    state = choose(problem, algorithm).reduce(problem)
    weights = weight_tables(lambda _: problem, empty="zero")[0]
    mean = np.divide(state.numerator[:, 0], state.denominator, where=state.denominator > 0, out=np.zeros(25))
    np.testing.assert_allclose(mean, weights @ Y, rtol=1e-11, atol=1e-13)
    for i in range(0, 25, 6):
        one = Problem.from_arrays(NEW[[i]], X, Y, kernel=kernel, bandwidth=0.5 * WIDENING[i], degree=degree)
        alone = choose(one, algorithm).reduce(one)
        np.testing.assert_allclose(state.numerator[i], alone.numerator[0], rtol=1e-12, atol=1e-14)


def test_groups_and_gradients():
    code = (np.arange(70) % 7).astype(np.int64)
    problem = with_widths(Problem.from_arrays(X, X, Y, bandwidth=0.5), np.resize(WIDENING, 70))
    problem = problem.excluding(code, Exclusion(code))
    state = choose(problem).reduce(problem)
    dense = weight_tables(lambda _: problem)[0]
    assert not dense[code[:, None] == code].any()
    np.testing.assert_allclose(state.numerator[:, 0] / state.denominator, dense @ Y, rtol=1e-11)
    assert isinstance(problem.excluded, ExcludedPairs)
    problem = problem_of(0)
    state, step = choose(problem).reduce(problem), 1e-6
    slope = choose(problem).pullback(problem, state, np.ones((25, 1)), ["query"]).query
    for a in range(2):
        moved = [replace(problem, query=NEW + sign * step * np.eye(2)[a]) for sign in (1.0, -1.0)]
        above, below = (choose(one).reduce(one).finalize()[:, 0] for one in moved)
        np.testing.assert_allclose(slope[:, a], (above - below) / (2 * step), rtol=1e-5, atol=1e-7)


def test_held_out_fits_have_windows_of_their_own():
    group = np.arange(70) % 7
    model = NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)).fit(X, Y, groups=group)
    near = NEW[np.abs(NEW[:, 0] - 2.0) < 1.0]
    there, residual = np.empty((7, len(near))), np.empty(70)
    for g in range(7):
        rest = group != g
        one = NadarayaWatsonRegressor(bandwidth=H, window=Floor(6)).fit(X[rest], Y[rest])
        there[g], residual[~rest] = one.predict(near), np.abs(Y[~rest] - one.predict(X[~rest]))
    found = model.prediction_interval(near, level=0.5, method="jackknife+")
    ends, share = there[group] + residual[:, None], np.full(70, 1 / 10)
    for j in range(len(near)):
        order = np.argsort(ends[:, j])
        upper = ends[order[np.searchsorted(np.cumsum(share[order]), 0.5 * 8 - 1e-12)], j]
        assert found.upper[j] == pytest.approx(upper, rel=1e-10)


def test_coverage_is_approximate_where_a_new_row_is_not_counted():
    near = NEW[np.abs(NEW[:, 0] - 2.0) < 1.0]
    for window, words in ((Floor(6), "windows follow the rows in them"), ("fixed", "exchangeable with these")):
        model = NadarayaWatsonRegressor(bandwidth=H, window=window).fit(X, Y)
        assert words in model.prediction_interval(near, level=0.6, method="cv+").guarantee


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda model: model.prediction_interval(NEW, method="jackknife+"), "planes"),
        (lambda model: model.significance_test([0]), "nearest planes"),
        (lambda model: model.confidence_interval(NEW, quantity="derivative"), "nearest constants"),
        (lambda model: model.confidence_interval(NEW, simultaneous="tube"), "constants"),
    ],
)
def test_what_is_of_fixed_windows_is_refused(ask, kind):
    model = MODELS[kind].fit(X, Y)
    with pytest.raises(ValueError, match="window"):
        ask(model)


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
@pytest.mark.parametrize("ratio", [0.1, 100.0])
def test_extrapolation_does_not_depend_on_the_unit_of_ratios_nor_on_rows_of_weight_zero(kernel, ratio):
    rows, y, weight = np.r_[X[:, :1], 1e3 + 1e3 * X[:, :1]], np.r_[Y, Y], np.repeat([1.0, 0.0], 70)
    model = NadarayaWatsonRegressor(kernel, ratio, window=Nearest(15)).fit(rows, y, sample_weight=weight)
    with pytest.warns(kernpool.ExtrapolationWarning):
        model.predict([[50.0]])


def test_default_floor_is_at_least_one_row():
    model, rows = NadarayaWatsonClassifier("epanechnikov"), TrainingRows.from_arrays(X, Y[:, None])
    found = Found(np.full(2, 1e-4), np.zeros(0))  # all windows are empty
    assert find_floor(model, found, rows, NO_CATEGORIES).window == Floor(1.0)


def test_explanations_of_many_queries_are_of_their_windows():
    """Enough pairs for the compiled search, which takes the queries of each width together."""
    many = np.random.default_rng(1)
    rows, queries = many.normal(size=(3000, 2)), many.uniform(-2.5, 2.5, size=(2000, 2))
    model = NadarayaWatsonRegressor(bandwidth=0.1, window=Floor(12)).fit(rows, rows[:, 0])
    found = model.get_prediction(queries).explain(2)
    some = np.arange(0, 2000, 400)
    share = model.attention_weights(queries[some])
    np.testing.assert_array_equal(found.row[some], np.argsort(-share, axis=1, kind="stable")[:, :2])
    np.testing.assert_allclose(found.weight[some], np.take_along_axis(share, found.row[some], axis=1), rtol=1e-11)
    np.testing.assert_allclose(found.effective_rows[some], 1.0 / np.sum(share**2, axis=1), rtol=1e-10)
