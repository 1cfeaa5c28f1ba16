"""Quantiles of scores around points: every width is that of a table of weights."""

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
from kernpool.conformal.methods import ROUNDING
from kernpool.conformal.split_conformal import WINDOW
from kernpool.kernels import get_categorical_kernel
from tests.support.conformal_settings import setting_of, smallest_reaching


def rows(n=120, m=40, d=1, seed=0):
    g = np.random.default_rng(seed)
    X, new, other = g.uniform(size=(n, d)), g.uniform(-0.1, 1.1, size=(m, d)), g.uniform(size=(n - 20, d))

    def outputs(x):
        return np.sin(6 * x[:, 0]) + (0.1 + 0.4 * x[:, 0]) * g.normal(size=len(x))

    return X, outputs(X), new, (other, outputs(other))


def table_of_weights(model, setting, tables=()):
    """Return weights of shape (m, n) of calibration rows at points, and of rows at the points themselves, (m,)."""
    kernel, h = get_kernel(model.kernel), WINDOW * np.asarray(model.bandwidth_)

    def weigh(query, key):
        u = np.abs(query[:, None, :] - key[None, :, :]) / h
        if model.composition == "radial":
            return kernel.profile(np.sqrt(np.sum(u**2, axis=2)))
        return np.prod(kernel.profile(u), axis=2)

    places, rows = setting.places, setting.calibration.places
    near, own = weigh(places.query, rows.query), np.diagonal(weigh(places.query, places.query)).copy()
    for a, table in enumerate(tables):
        density = table / table.sum(axis=1, keepdims=True)  # of a row of one level at another one
        near = near * density[rows.code[:, a]][:, places.code[:, a]].T
        own *= density[places.code[:, a], places.code[:, a]]
    return near * setting.calibration.weight, own


def check(model, setting, tables=(), decided=0.9):
    """Compare every end with the reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        warnings.simplefilter("ignore", EmptyWindowWarning)
        found = prediction_interval(setting, "localized")
    near, own = table_of_weights(model, setting, tables)
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
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "tricube", "laplace", "logistic", "cosine", "boxcar"])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_every_width_is_that_of_a_table(kernel, degree, calibrated):
    X, y, new, other = rows()
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    times = np.random.default_rng(3).integers(0, 4, len(X)) if kernel == "gaussian" else None
    model = kind(kernel=kernel, bandwidth=0.08).fit(X, y, sample_weight=times)
    setting = setting_of(model, new, calibration=other if calibrated else None)
    found = check(model, setting, decided=0.5 if kernel == "boxcar" else 0.9)
    assert np.isfinite(found.upper).mean() > 0.5


@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
def test_two_columns(kernel, composition):
    X, y, new, other = rows(d=2)
    model = NadarayaWatsonRegressor(kernel=kernel, bandwidth=[0.15, 0.2], composition=composition).fit(X, y)
    check(model, setting_of(model, new, calibration=other))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_levels_and_several_outputs(level):
    X, y, new, (other, z) = rows()
    model = LocalLinearRegressor(bandwidth=0.1).fit(X, np.column_stack([y, y**2]))
    check(model, setting_of(model, new, level, (other, np.column_stack([z, z**2]))))


@pytest.mark.parametrize("n", [9, 19, 20, 99, 100])
def test_where_all_rows_count_alike_it_is_the_order_statistic_of_split(n):
    """The weights of a boxcar that holds all rows, and of the constant kernel, are those of ranks."""
    g = np.random.default_rng(n)
    X, y = g.uniform(size=(50, 1)), g.normal(size=50)
    other, new = (g.uniform(size=(n, 1)), g.normal(size=n)), g.uniform(size=(7, 1))
    for kernel in ("constant", "boxcar"):
        model = NadarayaWatsonRegressor(kernel=kernel, bandwidth=100.0).fit(X, y)
        setting = setting_of(model, new, calibration=other)
        found, expected = prediction_interval(setting, "localized"), prediction_interval(setting, "split")
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


@pytest.mark.parametrize("smoothing", [0.3, 0.0])
@pytest.mark.parametrize("kind", ["unordered", "ordered"])
def test_levels_are_weighed(kind, smoothing):
    """Rows of the table of an ordered kernel have different sums: the density of a row is one over all levels."""
    frame, outputs, _ = frames(kind)
    X, other, new = frame(160), frame(140), frame(40)
    model = NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[smoothing]).fit(X, outputs(X))
    kernel = get_categorical_kernel(FRAME_KERNELS[kind])
    table = kernel.table(np.arange(3.0) if kernel.ordered else 3, smoothing)
    check(model, setting_of(model, new, calibration=(other, outputs(other))), (table,))


def test_levels_that_the_model_has_not_seen_are_a_level_of_their_own():
    frame, outputs, _ = frames("unordered")
    X, wide = frame(160), ("a", "b", "c", "z")
    other, new = frame(140, wide), frame(40, wide)
    model = NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[0.3], unseen="unlike").fit(X, outputs(X))
    setting = setting_of(model, new, calibration=(other, outputs(other)))
    assert (setting.places.code < 0).any()
    assert (setting.calibration.places.code < 0).any()
    table = np.full((4, 4), 0.15)
    np.fill_diagonal(table, 0.7)
    check(model, setting, (table,))  # -1 finds the last row of the table


def test_places_with_too_few_rows_are_counted_in_one_warning():
    X, y, _, other = rows()
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=0.1, empty="mean").fit(X, y)
    new = np.array([[0.5], [40.0], [-30.0]])
    setting = setting_of(model, new, calibration=other)
    with pytest.warns(InferenceWarning, match=r"2 of 3 prediction intervals \(the first is of query 1\) are infinite: "
                      r"there are too few rows around them") as caught:  # fmt: skip
        found = prediction_interval(setting, "localized")
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
