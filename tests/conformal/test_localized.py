"""Quantiles of scores around places, fixed or random: every width is that of a table of weights."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    InferenceWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    get_kernel,
)
from kernpool.conformal import prediction_interval
from kernpool.conformal.localized import WINDOW, Neighbours
from kernpool.conformal.methods import ROUNDING
from kernpool.kernels import get_categorical_kernel
from tests.support.conformal_settings import setting_of, smallest_reaching

METHODS = ["localized", "rlcp"]


def rows(n=120, m=40, d=1, seed=0):
    g = np.random.default_rng(seed)
    X, new, other = g.uniform(size=(n, d)), g.uniform(-0.1, 1.1, size=(m, d)), g.uniform(size=(n - 20, d))

    def outputs(x):
        return np.sin(6 * x[:, 0]) + (0.1 + 0.4 * x[:, 0]) * g.normal(size=len(x))

    return X, outputs(X), new, (other, outputs(other))


def table_of_weights(model, setting, where, tables=()):
    """Return weights of shape (m, n) of calibration rows at places, and of the rows at the places themselves, (m,)."""
    kernel, h = get_kernel(model.kernel), WINDOW * np.asarray(model.bandwidth_)

    def weigh(query, key):
        u = np.abs(query[:, None, :] - key[None, :, :]) / h
        if model.composition == "radial":
            return kernel.profile(np.sqrt(np.sum(u**2, axis=2)))
        return np.prod(kernel.profile(u), axis=2)

    near = weigh(where.query, setting.calibration.places.query)
    own = np.diagonal(weigh(where.query, setting.places.query)).copy()
    for a, table in enumerate(tables):
        density = table / table.sum(axis=1, keepdims=True)  # of a row of one level at another one
        near = near * density[setting.calibration.places.code[:, a]][:, where.code[:, a]].T
        own *= density[setting.places.code[:, a], where.code[:, a]]
    return near * setting.calibration.weight, own


def around_of(setting, method):
    """Return around what places scores are looked at: the draws are those of the generator, and are tested alone."""
    calibration = setting.calibration
    near = Neighbours.of(setting.smoother, calibration.places, calibration.weight, setting.places)
    return setting.places if method == "localized" else near.draw(setting.places, np.random.default_rng(0))


def check(model, setting, method, tables=(), decided=0.9):
    """Compare every end with the reference."""
    where = around_of(setting, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        warnings.simplefilter("ignore", EmptyWindowWarning)
        found = prediction_interval(setting, method)
    near, own = table_of_weights(model, setting, where, tables)
    center = setting.prediction
    np.testing.assert_array_equal(found.center, center)
    exact, unknown = [], np.isnan(center)
    assert (found.upper[unknown] == np.inf).all()
    assert (found.lower[unknown] == -np.inf).all()
    for i in np.flatnonzero(~unknown.any(axis=1)):
        for c, score in enumerate(setting.calibration.score.T):
            need = setting.level * Fraction(near[i].sum() + own[i])
            low, high = smallest_reaching(score, near[i], float(need))
            width = found.upper[i, c] - center[i, c]
            rounding = 4e-15 * (1 + abs(center[i, c]))
            size = np.abs(setting.calibration.value[:, c]).max()
            assert low - rounding <= width <= high + rounding + ROUNDING * size
            assert found.lower[i, c] == center[i, c] - (found.upper[i, c] - center[i, c]) or np.isclose(
                found.lower[i, c], 2 * center[i, c] - found.upper[i, c], rtol=0, atol=1e-13
            )
            exact.append(low == high)
    assert np.mean(exact) >= decided  # or nothing would be compared
    return found


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "tricube", "laplace", "logistic", "cosine", "boxcar"])
def test_every_width_is_that_of_a_table(kernel, method, degree, calibrated):
    X, y, new, other = rows()
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(kernel=kernel, bandwidth=0.08).fit(X, y)
    setting = setting_of(model, new, calibration=other if calibrated else None)
    found = check(model, setting, method, decided=0.5 if kernel == "boxcar" else 0.9)
    assert np.isfinite(found.upper).mean() > 0.5


@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
def test_two_columns(kernel, method, composition):
    X, y, new, other = rows(d=2)
    model = NadarayaWatsonRegressor(kernel=kernel, bandwidth=[0.15, 0.2], composition=composition).fit(X, y)
    check(model, setting_of(model, new, calibration=other), method)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("method", METHODS)
def test_levels_and_several_outputs(method, level):
    X, y, new, (other, z) = rows()
    model = LocalLinearRegressor(bandwidth=0.1).fit(X, np.column_stack([y, y**2]))
    both = setting_of(model, new, level, (other, np.column_stack([z, z**2])))
    found = check(model, both, method)
    first = LocalLinearRegressor(bandwidth=0.1).fit(X, y)
    alone = check(first, setting_of(first, new, level, (other, z)), method)
    np.testing.assert_allclose(found.upper[:, :1], alone.upper, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_a_weight_of_three_is_three_rows(method):
    X, y, new, _ = rows()
    times = np.random.default_rng(3).integers(0, 4, len(X))
    weighted = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y, sample_weight=times)
    repeated = NadarayaWatsonRegressor(bandwidth=0.1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    found = check(weighted, setting_of(weighted, new), method)
    expected = prediction_interval(setting_of(repeated, new), method)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [9, 19, 20, 99, 100])
def test_where_all_rows_count_alike_it_is_the_order_statistic_of_split(method, n):
    """The weights of a boxcar that holds all rows, and of the constant kernel, are those of ranks."""
    g = np.random.default_rng(n)
    X, y = g.uniform(size=(50, 1)), g.normal(size=50)
    other, new = (g.uniform(size=(n, 1)), g.normal(size=n)), g.uniform(size=(7, 1))
    for kernel in ("constant", "boxcar")[: 1 + (method == "localized")]:  # a draw from the boxcar leads out of reach
        model = NadarayaWatsonRegressor(kernel=kernel, bandwidth=100.0).fit(X, y)
        setting = setting_of(model, new, calibration=other)
        found, expected = prediction_interval(setting, method), prediction_interval(setting, "split")
        np.testing.assert_array_equal(found.upper, expected.upper)
        np.testing.assert_array_equal(found.lower, expected.lower)


FRAME_KERNELS = {"unordered": "aitchison_aitken", "ordered": "wang_van_ryzin"}


def frames(kind, n=160, seed=2, levels=("a", "b", "c")):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    g = np.random.default_rng(seed)

    def frame(size, some=levels):
        picked = g.choice(some, size)
        return pandas.DataFrame(
            {"x": g.uniform(size=size), "k": pandas.Categorical(picked, some, ordered=kind == "ordered")}
        )

    def outputs(table):
        return table["x"].to_numpy() + (table["k"].astype(str) == "a") + 0.3 * g.normal(size=len(table))

    return frame, outputs, g


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["unordered", "ordered"])
def test_levels_are_drawn_and_weighed(kind, method):
    """Rows of the table of an ordered kernel have different sums: the density of a row is one over all levels."""
    frame, outputs, _ = frames(kind)
    X, other, new = frame(160), frame(140), frame(40)
    model = NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[0.3]).fit(X, outputs(X))
    kernel = get_categorical_kernel(FRAME_KERNELS[kind])
    setting = setting_of(model, new, calibration=(other, outputs(other)))
    (table,) = setting.smoother.categories.factors(
        setting.places.code[:0], setting.places.code[:0], setting.smoother.smoothing
    ).tables
    np.testing.assert_allclose(table, kernel.table(np.arange(3.0) if kernel.ordered else 3, 0.3))
    check(model, setting, method, (table,))
    if method == "rlcp":
        assert np.mean(around_of(setting, method).code != setting.places.code) > 0.1


def test_levels_apart_stay_apart():
    frame, outputs, _ = frames("unordered")
    X, new = frame(160), frame(40)
    model = NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[0.0]).fit(X, outputs(X))
    setting = setting_of(model, new)
    np.testing.assert_array_equal(around_of(setting, "rlcp").code, setting.places.code)
    check(model, setting, "rlcp", (np.eye(3),))


@pytest.mark.parametrize("method", METHODS)
def test_levels_that_the_model_has_not_seen_are_a_level_of_their_own(method):
    frame, outputs, _ = frames("unordered")
    X, wide = frame(160), ("a", "b", "c", "z")
    other, new = frame(140, wide), frame(40, wide)
    model = NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[0.3], unseen="unlike").fit(X, outputs(X))
    setting = setting_of(model, new, calibration=(other, outputs(other)))
    assert (setting.places.code < 0).any()
    assert (setting.calibration.places.code < 0).any()
    table = np.full((4, 4), 0.15)
    np.fill_diagonal(table, 0.7)
    check(model, setting, method, (table,))  # -1 finds the last row of the table


@pytest.mark.parametrize("method", METHODS)
def test_places_with_too_few_rows_are_counted_in_one_warning(method):
    X, y, _, other = rows()
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=0.1, empty="mean").fit(X, y)
    new = np.array([[0.5], [40.0], [-30.0]])
    setting = setting_of(model, new, calibration=other)
    with pytest.warns(InferenceWarning, match=r"2 of 3 prediction intervals \(the first is of query 1\) are infinite: "
                      r"there are too few rows around them") as caught:  # fmt: skip
        found = prediction_interval(setting, method)
    assert len(caught) == 1
    assert np.isinf(found.upper[:, 0]).tolist() == [False, True, True]
    assert np.isinf(found.lower[:, 0]).tolist() == [False, True, True]


def test_far_away_the_row_itself_has_all_the_weight():
    """A Gaussian leaves no window empty, and the ratio of two weights that underflow is still known."""
    X, y, _, other = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.05).fit(X, y)
    with pytest.warns(ExtrapolationWarning, match="2 of 2 queries"):
        setting = setting_of(model, [[1e3], [-1e8]], calibration=other)
    with pytest.warns(InferenceWarning, match="2 of 2 prediction intervals"):
        found = prediction_interval(setting, "localized")
    assert np.isinf(found.upper).all()


@pytest.mark.parametrize("method", METHODS)
def test_too_few_rows_for_the_level_name_the_least_number(method):
    X, y, new, (other, z) = rows()
    model = NadarayaWatsonRegressor(kernel="constant", bandwidth=1.0).fit(X, y)
    with pytest.warns(InferenceWarning, match="needs at least 9 rows"):
        found = prediction_interval(setting_of(model, new, calibration=(other[:8], z[:8])), method)
    assert np.isinf(found.upper).all()


def test_draws_are_those_of_the_seed():
    X, y, new, other = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y)
    first, same, another = (
        prediction_interval(setting_of(model, new, calibration=other, seed=seed), "rlcp") for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.upper, same.upper)
    assert not np.array_equal(first.upper, another.upper)


def test_what_is_promised():
    X, y, new, other = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y)
    own, given = setting_of(model, new), setting_of(model, new, calibration=other)
    assert "without a finite-sample guarantee" in prediction_interval(own, "localized").guarantee
    assert "without a finite-sample guarantee" in prediction_interval(given, "localized").guarantee
    assert "without a finite-sample guarantee" in prediction_interval(own, "rlcp").guarantee
    assert "probability of at least 0.9" in prediction_interval(given, "rlcp").guarantee


def test_a_kernel_without_draws_is_refused_for_rlcp_alone():
    from kernpool import make_kernel

    X, y, new, other = rows()
    model = NadarayaWatsonRegressor(kernel=make_kernel("slow tail", lambda u: 1 / (1 + u) ** 4), bandwidth=0.05)
    setting = setting_of(model.fit(X, y), new, calibration=other)
    with pytest.raises(ValueError, match="'slow tail' has unbounded support"):
        prediction_interval(setting, "rlcp")
    with pytest.warns(InferenceWarning, match="there are too few rows around them"):
        assert np.isfinite(prediction_interval(setting, "localized").upper).any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")  # places at the ends have few rows, and count
def test_coverage_with_calibration_rows():
    """At least the level whatever the bandwidth, and a little more where it takes few rows; errors are .25 percent.

    Of 417 samples of 100 rows and 100 places it was 91.1 percent, of 313 of 500 rows 90.3.
    """
    g, covered, right, level = np.random.default_rng(0), [], [], []
    for seed in range(140):
        X, y, _, other = rows(n=160, seed=seed)
        new = g.uniform(size=(200, 1))
        z = np.sin(6 * new[:, 0]) + (0.1 + 0.4 * new[:, 0]) * g.normal(size=200)
        model = LocalLinearRegressor(bandwidth=0.08, algorithm="brute", n_jobs=1).fit(X, y)
        setting = setting_of(model, new, calibration=other, seed=seed)
        for method, last in (("rlcp", right), ("split", level)):
            found = prediction_interval(setting, method)
            inside = (found.lower[:, 0] <= z) & (z <= found.upper[:, 0])
            last += inside[new[:, 0] > 2 / 3].tolist()
            if method == "rlcp":
                covered.append(inside.mean())
    assert 0.895 <= np.mean(covered) <= 0.92
    assert np.mean(right) >= 0.85
    assert np.mean(right) >= np.mean(level) + 0.04  # where the noise is largest one width covers least
