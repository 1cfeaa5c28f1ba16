"""Whether columns matter: statistics against dense sums, laws, and what is refused."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, kernel_names
from kernpool.core import NO_CATEGORIES, Categories, Keys
from kernpool.inference.hypothesis_tests.significance import slope_norms, slope_statistic, zheng_statistic
from kernpool.inference.resampling import random_draws
from kernpool.inference.resampling.bootstrap import predicted
from kernpool.kernels import kernel_of_family
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother
from tests.support.dense_resampling import kernel_matrix, leave_one_out, p_value, pair_statistic, shares, smoother
from tests.support.inference_cases import PLACES, bend
from tests.support.thinning import slow

TABLE = np.array([[1.0, 0.3, 0.09], [0.3, 1.0, 0.3], [0.09, 0.3, 1.0]])
ORDERED = Categories((kernel_of_family("li_racine", ordered=True),), (np.arange(3.0),))


def rows(n=60, effect=1.0, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, 2))
    return X, np.sin(6 * X[:, 0]) + effect * X[:, 1] ** 2 + (0.1 + 0.2 * X[:, 0]) * random.normal(size=n)


def fit_to(recipe, X, y, code=None):
    """The smoother of rows, with or without an ordered column of smoothing .3, whose weights are those of TABLE."""
    categories, smoothing = (NO_CATEGORIES, np.zeros(0)) if code is None else (ORDERED, np.array([0.3]))
    return Smoother(Keys.read(X, y), recipe, code, categories, smoothing)


@pytest.mark.parametrize("kernel", [name for name in kernel_names() if name != "constant"])
@pytest.mark.parametrize("categorical", [False, True])
def test_the_statistic_of_pairs(kernel, categorical):
    X, y = rows()
    code = (np.arange(60)[:, None] * 7) % 3
    h = np.array([0.3, 0.5])
    u = np.stack([y - y.mean(), 1e6 + y], axis=1)
    found = zheng_statistic(fit_to(Recipe.of(kernel, h), X, y, code if categorical else None))(u)
    K = kernel_matrix(X, X, h, kernel, *([(TABLE,), code] if categorical else []))
    assert_allclose(found, [pair_statistic(column, K) for column in u.T], rtol=1e-11)
    if not categorical:  # products of kernels
        found = zheng_statistic(fit_to(Recipe.of(f"product {kernel}", h), X, y))(u)
        K = np.prod([kernel_matrix(X[:, [a]], X[:, [a]], h[a], kernel) for a in (0, 1)], axis=0)
        assert_allclose(found, [pair_statistic(column, K) for column in u.T], rtol=1e-11)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace", "cosine"])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("categorical", [False, True])
def test_slopes_and_their_norms(kernel, ridge, categorical):
    X, y = rows()
    code = (np.arange(60)[:, None] * 7) % 3
    h = np.array([0.5, 0.8])
    recipe = Recipe.of(kernel, h, degree=1, ridge=ridge)
    K = kernel_matrix(X, X, h, kernel, *([(TABLE,), code] if categorical else []))
    penalty = ridge * kernpool.get_kernel(kernel).profile(np.zeros(1))[0]
    L = shares(K, X, X, 1, ridge=penalty * h**2)[:, 1:]
    fit, norms = fit_to(recipe, X, y, code if categorical else None), np.sqrt((L**2).sum(axis=2))
    assert_allclose(slope_norms(fit) / h, norms, rtol=1e-10)
    A = K / K.sum(axis=1, keepdims=True)
    spread = np.sqrt(A @ y**2 - (A @ y) ** 2)
    expected = (((L @ y) / (norms * spread[:, None])) ** 2).mean(axis=0)
    for tested in ([0], [1], [0, 1]):
        found = slope_statistic(fit, tested)(y[:, None])
        assert_allclose(found[0], expected[tested].sum(), rtol=1e-9)


def test_the_local_spread_is_that_of_np():
    """Standard errors of R's np of a local linear fit: the spread times the norm of the shares (npreg, errors=TRUE)."""
    (x, y), places = bend(), PLACES[:, None]
    means = fit_to(Recipe.of("gaussian", 0.06), x[:, None], y)
    moments = predicted(means, EvaluationPoints(places), np.stack([y - y.mean(), (y - y.mean()) ** 2], axis=1))
    spread = np.sqrt(moments[:, 1] - moments[:, 0] ** 2)
    S = smoother(x[:, None], 0.06, 1, places)
    published = [
        0.131514496579073548, 0.073301135739493803, 0.065079580444657101, 0.078387827825857473,
        0.085019149827415222, 0.073387653817811635, 0.191512544850656052,
    ]  # fmt: skip
    assert_allclose(spread * np.sqrt((S**2).sum(axis=1)), published, rtol=1e-12)


def test_the_whole_test_by_residuals():
    X, y = rows(effect=0.2)
    model = LocalLinearRegressor(bandwidth=[0.1, 0.3]).fit(X, y)
    found = model.significance_test(1, n_resamples=99, random_state=3)
    alone = LocalLinearRegressor(bandwidth="loo").fit(X[:, :1], y).bandwidth_
    g = X.std(axis=0, ddof=1) * 60 ** (-1 / 6)
    S, K = smoother(X[:, :1], alone, 1), kernel_matrix(X, X, g)
    sign = random_draws.multipliers("wild", 3, slice(0, 99), 60)
    again = (S @ y)[:, None] + leave_one_out(S, y)[:, None] * sign
    resampled = [pair_statistic(column - S @ column, K) for column in again.T]
    statistic = pair_statistic(y - S @ y, K)
    assert_allclose(found.statistic, statistic, rtol=1e-10)
    assert_allclose(found.resampled, resampled, rtol=1e-9, atol=1e-10)
    assert_allclose(found.bandwidth, g)
    assert found.p_value == p_value(statistic, resampled)
    assert found.n_resamples == 99
    assert found.null == "y does not depend on column 1, given the others"


def test_the_whole_test_by_slopes():
    X, y = rows(effect=0.2)
    h = np.array([0.2, 0.3])
    found = (
        NadarayaWatsonRegressor(bandwidth=h)
        .fit(X, y)
        .significance_test(1, method="gradient", n_resamples=99, random_state=3)
    )
    level = np.column_stack([X[:, 0], np.full(60, np.median(X[:, 1]))])
    S = smoother(X, h, 0)
    sign = random_draws.multipliers("wild", 3, slice(0, 99), 60)
    again = (smoother(X, h, 0, level) @ y)[:, None] + leave_one_out(S, y)[:, None] * sign
    L = shares(kernel_matrix(X, X, h), X, X, 1)[:, 2]

    def statistic(v):
        spread = S @ v**2 - (S @ v) ** 2
        return np.mean((L @ v) ** 2 / (spread * (L**2).sum(axis=1)))

    assert_allclose(found.statistic, statistic(y), rtol=1e-10)
    assert_allclose(found.resampled, [statistic(v) for v in again.T], rtol=1e-9)
    assert_allclose(found.bandwidth, h)


def test_it_finds_what_matters_and_nothing_else():
    X, y = rows(80, effect=0.0)
    for model in (
        LocalLinearRegressor(search={"rows": 50}),
        NadarayaWatsonRegressor(bandwidth="loo"),
        LocalLinearRegressor("product epanechnikov", bandwidth="silverman", ridge=0.1),
    ):
        model.fit(X, y)
        for method in ("residual", "gradient"):
            assert model.significance_test(0, method=method, n_resamples=99).p_value == 0.01
            assert model.significance_test(1, method=method, n_resamples=99).p_value > 0.05
        assert model.significance_test([0, 1], n_resamples=99).p_value == 0.01
        assert model.significance_test([-1, 0, 1], n_resamples=99).null == "y does not depend on columns 0, 1"
    found = NadarayaWatsonRegressor(bandwidth=0.1).fit(X[:, :1], y).significance_test(0, n_resamples=99)
    K = kernel_matrix(X[:, :1], X[:, :1], found.bandwidth)
    assert_allclose(found.statistic, pair_statistic(y - y.mean(), K), rtol=1e-10)
    assert (found.p_value, found.null) == (0.01, "y does not depend on column 0")


def frame(n=90):
    random = np.random.default_rng(1)
    x, code, other = random.uniform(size=n), np.arange(n) % 3, random.integers(0, 2, n)
    y = np.sin(6 * x) + 0.5 * (code == 1) + 0.2 * random.normal(size=n)
    table = {"x": x, "site": np.array(list("abc"))[code], "idle": np.array(["no", "yes"])[other]}
    return pandas.DataFrame(table), y, code, other


@pytest.mark.parametrize("model", [*slow(LocalLinearRegressor()), NadarayaWatsonRegressor(bandwidth="loo")])
def test_levels_and_names(model):
    table, y, _, _ = frame()
    model.fit(table, y)
    assert model.significance_test("site", n_resamples=99).p_value == 0.01
    assert model.significance_test("idle", n_resamples=99).p_value > 0.02
    both = model.significance_test(["x", "site"], n_resamples=99)
    assert both.p_value == 0.01
    assert both.null == "y does not depend on columns 'x', 'site', given the others"
    assert model.significance_test("x", method="gradient", n_resamples=99).p_value == 0.01
    with pytest.raises(ValueError, match="categorical columns have none: use method='residual'"):
        model.significance_test("site", method="gradient")


def test_every_column_by_itself():
    table, y, _, _ = frame()
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.6, 0.0]).fit(table, pandas.Series(y, name="crop"))
    every = model.significance_test(n_resamples=19)
    alone = {name: model.significance_test(name, n_resamples=19) for name in table}
    assert [*every.results] == [*table]
    for name, result in every.results.items():
        assert (str(result), result.p_value) == (str(alone[name]), alone[name].p_value)
    assert alone["site"].null == "crop does not depend on column 'site', given the others"
    assert_allclose(alone["site"].smoothing, [90 ** (-2 / 5), 0.0])  # of the tested column at most so much
    assert str(every).splitlines()[-2].split() == ["site", f"{alone['site'].statistic:.4g}", "0.05"]
    X, y = rows()
    assert [*LocalLinearRegressor(bandwidth=0.5).fit(X, y).significance_test(n_resamples=9).results] == [0, 1]


def test_levels_are_told_apart_however_far_the_fit_smooths_them():
    """The statistic of pairs has at most the smoothing n^(-2 / (4 + d)) for tested levels, and the fitted one else."""
    table, y, code, other = frame()
    model = NadarayaWatsonRegressor(
        bandwidth=0.1, smoothing=[0.9, 0.8], unordered=["site", "idle"], categorical_kernel="li_racine"
    ).fit(table, y)
    found = model.significance_test("site", n_resamples=9)
    rest = NadarayaWatsonRegressor(bandwidth="loo", unordered=["idle"], categorical_kernel="li_racine")
    rest.fit(table[["x", "idle"]], y)
    u = y - rest.predict(table[["x", "idle"]])
    x = table[["x"]].to_numpy()
    K = kernel_matrix(x, x, x.std(ddof=1) * 90 ** (-1 / 5))
    K *= np.where(code[:, None] == code, 1.0, 90 ** (-2 / 5)) * np.where(other[:, None] == other, 1.0, 0.8)
    assert_allclose(found.statistic, pair_statistic(u, K), rtol=1e-9)
    alone = model.significance_test(["x", "idle"], n_resamples=9)
    assert np.isfinite(alone.statistic)


def test_levels_alone():
    table, y, _, _ = frame()
    model = NadarayaWatsonRegressor(bandwidth="loo").fit(table[["site", "idle"]], y)
    assert model.significance_test("site", n_resamples=99).p_value < 0.05
    assert model.significance_test(1, n_resamples=99).p_value > 0.05
    assert model.significance_test(["site", "idle"], n_resamples=99).p_value < 0.05


def test_rows_that_are_refused():
    X, Y = rows()
    model, (table, y, _, _) = LocalLinearRegressor(bandwidth=0.5), frame()
    named, narrow = NadarayaWatsonRegressor(bandwidth="loo").fit(table, y), NadarayaWatsonRegressor(bandwidth=1e-7)
    for ask, message in (
        (lambda: model.fit(np.c_[X[:, 0], np.ones(60)], Y).significance_test(1), "column 1 does not vary"),
        (lambda: named.significance_test("sight"), r"positions 0 to 2, or \['x', 'site', 'idle'\]"),
        (lambda: model.fit(X[:, :1], Y).significance_test(1), "no such column; it has position 0$"),
        (lambda: narrow.fit(X, Y).significance_test(0, method="gradient"), "passes through every row.* a larger one"),
        (lambda: model.fit(X, Y, np.full(60, 3.0)).significance_test(0), "fit each row once, without weights"),
        (lambda: zheng_statistic(fit_to(Recipe.of("boxcar", 1e-9), X, X[:, 0])), "no two rows are within reach"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
