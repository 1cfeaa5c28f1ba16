"""Places whose rows determine no plane, or that are beyond all digits: told once, and no interval looks sure there.

Beyond an isolated row shares of planes are differences of large numbers, and their norms are right all the same.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    InferenceWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    RankDeficiencyWarning,
)
from kernpool.estimators.limits import smoother_of
from kernpool.smoother import EvaluationPoints, WeightTables, estimate, squared_norm
from tests.support.inference_cases import bend

BOTH = [NadarayaWatsonRegressor, LocalLinearRegressor]
X, Y = bend()[0][:, None], bend()[1]
# These places are about other things than the bias that their bandwidths leave.
MUCH_BIAS = ".*the correction for bias is larger than two standard errors"
pytestmark = pytest.mark.filterwarnings(f"ignore:{MUCH_BIAS}")
METHODS = ["robust", "quadratic", "naive", "undersmoothed"]


def told(ask):
    """Return the answer and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", MUCH_BIAS)
        answer = ask()
    return answer, [(one.category, str(one.message)) for one in caught]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("of", ["fit", "derivative"])
@pytest.mark.filterwarnings("ignore:.*determine no slope by column")
def test_two_equal_columns_are_named_by_an_interval_as_by_a_prediction(method, of):
    twice = np.hstack([X, X])
    model = LocalLinearRegressor(bandwidth=0.1).fit(twice, Y)
    _, said = told(lambda: model.confidence_interval(twice[:9], method=method, quantity=of))
    (message,) = [words for category, words in said if category is RankDeficiencyWarning and "tell no" not in words]
    assert "columns 0, 1 are linearly dependent" in message
    assert told(lambda: model.predict(twice[:9]))[1] == []  # it was said, once per fit
    assert told(lambda: LocalLinearRegressor(bandwidth=0.1).fit(twice, Y).predict(twice[:9]))[1] == [
        (RankDeficiencyWarning, message)
    ]


@pytest.mark.parametrize("simultaneous", [False, "multiplier", "tube"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regressor", BOTH)
def test_planes_of_thin_windows_are_told_once_for_all_smoothings(regressor, method, simultaneous):
    model, at = regressor(bandwidth=0.1).fit(X, Y), [[0.5], [49.0]]
    _, said = told(lambda: model.confidence_interval(at, method=method, simultaneous=simultaneous, n_resamples=39))
    if regressor is NadarayaWatsonRegressor and method == "naive":
        assert [category for category, _ in said] == [ExtrapolationWarning]
        return
    (first, _), (category, message) = said
    assert (first, category) == (ExtrapolationWarning, RankDeficiencyWarning)
    assert "around 1 of 2 queries (the first is query 1)" in message
    assert "use a larger bandwidth" in message


def test_columns_that_tell_nothing_do_not_worry_a_model_of_constants():
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(np.hstack([X, X, np.ones_like(X)]), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.confidence_interval([[0.5, 0.5, 1.0]], method="undersmoothed")


def test_windows_with_a_plane_and_no_quadratic_are_told_as_such():
    x = np.r_[np.linspace(0.0, 1.0, 30), 5.0, 5.2]
    model = LocalLinearRegressor("epanechnikov", 0.5).fit(x[:, None], np.sin(5 * x) + 0.1 * np.cos(40 * x))
    found, said = told(lambda: model.confidence_interval([[0.5], [5.1]], method="quadratic", variance="nn"))
    plain = model.confidence_interval([[5.1]], method="naive", variance="nn")
    assert (found.center[1], found.standard_error[1]) == pytest.approx(
        (plain.center[0], plain.standard_error[0]), rel=1e-9
    )
    ((_, message),) = said
    assert "around 1 of 2 queries (the first is query 1) the keys do not determine a quadratic" in message


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("regressor", BOTH)
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # where it is not looked for
def test_far_away_all_answers_are_finite_together_or_none_with_a_word(regressor, columns, kernel):
    """Rounding of weights that far takes every digit: norms of shares came out as zero, or as e."""
    Z = np.column_stack([X[:, 0], np.cos(9 * X[:, 0])])[:, :columns]
    model = regressor(kernel, 0.0937).fit(Z, Y)
    for distance in 10.0 ** np.array([1, 2, 4, 5, 6, 7, 8, 12, 20, 100]):
        at = np.full((2, columns), 0.5)
        at[1] = 1.0123 * distance * np.arange(1, columns + 1)
        asked = [
            lambda at=at: model.predict(at, return_std=True)[1],
            lambda at=at: model.get_prediction(at).standard_error,
        ]
        asked += [
            lambda at=at, method=method: model.confidence_interval(at, method=method).width
            for method in ("robust", "naive")
        ]
        answers = [told(ask) for ask in asked]
        for answer, said in answers:
            (message,) = [words for category, words in said if category is ExtrapolationWarning]
            assert "1 of 2 queries (the first is query 1) are far beyond" in message
            assert not any(category is InferenceWarning for category, _ in said)
            assert answer[0] > 0
            assert np.isnan(answer[1]) or answer[1] > 1e-3
        assert len({bool(np.isnan(answer[1])) for answer, _ in answers}) == 1
        if kernel == "gaussian" and 1e4 <= distance <= 1e5:  # one row has all of the weight
            noise = model.predict(at, return_std=True)[1][1] / np.sqrt(2)
            assert_allclose(model.get_prediction(at).standard_error[1], noise, rtol=0.01)
            found = model.confidence_interval(at)
            assert_allclose(found.standard_error[1], noise, rtol=0.01)
            assert_allclose(found.df[1], 1.0, rtol=0.01)


@pytest.mark.parametrize(
    ("kernel", "places", "category", "words"),
    [
        ("laplace", [[1e20], [-3e30]], ExtrapolationWarning, r"\(the first is query 11\) are far beyond"),
        ("boxcar", [[7.0], [-7.0]], EmptyWindowWarning, r"\(the first is query 11\) have no key"),
    ],
)
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_bands_leave_out_places_without_an_interval(kernel, places, category, words):
    model = LocalLinearRegressor(kernel, bandwidth=0.1).fit(X, Y)
    near = np.linspace(0.0, 1.0, 11)[:, None]
    expected = model.confidence_interval(near, simultaneous="multiplier", n_resamples=99)
    far = np.vstack([near, places])
    with pytest.warns(category, match=f"2 of 13 queries {words}"):
        found = model.confidence_interval(far, simultaneous="multiplier", n_resamples=99)
    assert found.critical == pytest.approx(expected.critical, rel=1e-12)
    assert_allclose(found.lower[:11], expected.lower, rtol=1e-12)
    assert np.isnan(found.upper[11:]).all()


@pytest.mark.parametrize("variance", ["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3", "clusters", "cr0"])
@pytest.mark.parametrize("regressor", BOTH)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning", "ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")
def test_a_window_without_rows_has_no_standard_error(regressor, variance, exact, generator):
    """Whatever residuals are: sums over no rows are zero, and zero would look certain."""
    Z, at = generator.uniform(size=(70, 2)), generator.uniform(0.05, 0.95, size=(90, 2))
    y = Z @ [2.0, -1.0] if exact else np.cos(5 * Z[:, 1]) + 0.3 * generator.normal(size=70)
    model = regressor("triweight", [0.1, 0.08]).fit(Z, y)
    empty = model.get_prediction(at).effective_sample_size == 0
    assert 3 < empty.sum() < 80
    options = {"variance": variance}
    if variance in ("clusters", "cr0"):
        options = {"groups": np.arange(70) // 2, "variance": "local" if variance == "clusters" else "hc0"}
    names = ("standard_error", "slope_standard_error")[: 1 + (regressor is LocalLinearRegressor)]
    for name in names:
        found = getattr(model.get_prediction(at, **options), name)
        assert np.isnan(found[empty]).all()
        assert np.isfinite(found[~empty]).any() or exact
    whole = model.confidence_interval(at, method="naive", **options)
    assert np.isnan(whole.width[empty]).all()
    _, std = model.predict(at, return_std=True)
    assert np.isnan(std[empty]).all()


def test_a_place_in_a_gap_of_millions_of_bandwidths_is_told_as_such():
    x = np.r_[np.linspace(0.0, 1.0, 20), 1e9 + np.linspace(0.0, 1.0, 20)][:, None]
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(x, np.cos(9 * x[:, 0] % 7))
    with pytest.warns(ExtrapolationWarning, match=r"1 of 2 queries \(the first is query 1\) are so far from all rows"):
        assert np.isnan(model.get_prediction([[0.5], [5e8]]).standard_error).tolist() == [False, True]


GAP = np.linspace(3.0, 9.0, 13)  # bandwidths between an isolated row and the others


def isolated(gap, columns=1, seed=0):
    """Twenty rows within two bandwidths, and one far from them; the bandwidth is one."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2.0, 0.0, size=(21, columns))
    X[-1] = gap
    return X, np.sin(X[:, 0]) + 0.3 * generator.normal(size=21), generator.integers(1, 4, size=21)


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning", "ignore::kernpool.InferenceWarning")
@pytest.mark.covering
@pytest.mark.parametrize("method", ["naive", "robust", "quadratic"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
def test_norms_are_those_of_the_shares_one_by_one(kernel, columns, method):
    for gap in GAP:
        X, y, weight = isolated(gap, columns)
        smoother = smoother_of(LocalLinearRegressor(kernel, 1.0).fit(X, y, sample_weight=weight))
        places = EvaluationPoints(gap + np.linspace(-1.0, 3.0, 9)[:, None] * np.ones(columns))
        found, psi = estimate(smoother, places, method), np.linspace(0.5, 2.0, 21)
        tables = WeightTables.of(found.terms)
        share = tables.rows(slice(None))
        for weighted in (None, psi):
            expected = np.sum(share**2 * (1.0 if weighted is None else weighted) / weight, axis=1)
            assert_allclose(squared_norm(found.terms, smoother.sums, weighted), expected, rtol=1e-7)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # up to three bandwidths beyond
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning", "ignore::kernpool.InferenceWarning")
@pytest.mark.parametrize("regressor", BOTH)
def test_no_standard_error_is_zero_where_there_is_noise(regressor):
    """At 4.8 bandwidths between the last two rows it was, 2 bandwidths beyond the last."""
    for gap in GAP:
        X, y, _ = isolated(gap)
        model = regressor(bandwidth=1.0).fit(X, y)
        for of in ("fit", "derivative"):
            found = model.confidence_interval(gap + np.linspace(0.0, 3.0, 13)[:, None], quantity=of)
            known = np.isfinite(found.standard_error)
            assert (found.standard_error[known] > 1e-3).all()
            assert known.all() or of == "derivative"


def test_a_row_of_weight_zero_far_from_all_others_has_a_residual():
    """At 38.5 bandwidths the weights of the others are subnormal in units of its own."""
    x, weight = np.r_[0.0, np.linspace(38.5, 40.0, 12)], np.r_[0.0, np.ones(12)]
    found = NadarayaWatsonRegressor(bandwidth=1.0).fit(x, x, sample_weight=weight).residuals()
    assert np.isfinite(found.fitted).all()
    assert found.leverage[0] == 0.0
