"""Whether a parametric model is enough: against dense sums, refits, laws."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from kernpool import specification_test
from kernpool.inference.resampling import random_draws
from tests.support.dense_resampling import kernel_matrix, p_value, pair_statistic


def rows(n=70, effect=0.5, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    return X, 1 + X @ [1, -2] + effect * X[:, 0] ** 2 + (0.2 + 0.2 * np.abs(X[:, 1])) * random.normal(size=n)


def hsiao_li_racine(u, K, h):
    """J of R's npcmstest, as its authors write it."""
    n, volume = len(u), np.prod(h)
    W = (K - np.diag(np.diag(K))) / volume
    moment = u @ W @ u / n**2
    variance = 2.0 * volume * (u**2) @ (W**2) @ (u**2) / n**2
    return n * np.sqrt(volume) * moment / np.sqrt(variance)


@pytest.mark.parametrize("kind", ["wild", "mammen", "gaussian"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_the_whole_test(kind, kernel):
    X, y = rows()
    h = np.array([0.4, 0.5])
    found = specification_test(X, y, kernel=kernel, bandwidth=h, kind=kind, n_resamples=99, random_state=2)
    design = np.column_stack([np.ones(70), X])
    H = design @ np.linalg.pinv(design)
    K, u = kernel_matrix(X, X, h, kernel), y - H @ y
    again = (H @ y)[:, None] + u[:, None] * random_draws.multipliers(kind, 2, slice(0, 99), 70)
    resampled = [pair_statistic(column - H @ column, K) for column in again.T]
    assert_allclose(found.statistic, hsiao_li_racine(u, K, h), rtol=1e-12)
    assert_allclose(found.resampled, resampled, rtol=1e-10, atol=1e-11)
    assert found.p_value == p_value(found.statistic, found.resampled)
    assert found.null == "LinearRegression() has the right form"


def test_least_squares_is_one_projection():
    """The default, LinearRegression itself, and the same model by refits; collinear columns count once."""
    X, y = rows()
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(70)])
    found = [
        specification_test(X, y, model, n_resamples=20).resampled
        for model in (None, LinearRegression(), make_pipeline(LinearRegression()))
    ]
    assert_allclose(found[1], found[0], rtol=1e-12)
    assert_allclose(found[2], found[0], rtol=1e-9, atol=1e-9)


def test_any_regressor():
    X, y = rows(150)
    assert specification_test(X, y).p_value < 0.05
    bent = make_pipeline(PolynomialFeatures(2), LinearRegression())
    found = specification_test(X, y, bent, n_resamples=99)
    assert found.p_value > 0.05
    assert found.null.startswith("Pipeline(steps=[('polynomialfeatures'")
    assert "\n" not in found.null
    without = specification_test(X, y, LinearRegression(fit_intercept=False), n_resamples=19)
    assert without.p_value == 0.05
    assert specification_test(X, y, Ridge(1e-9), n_resamples=19).n_resamples == 19


@pytest.mark.slow  # fits of mixed tables
def test_frames_with_levels():
    X, y = rows(120, effect=0.0)
    site = np.array(list("abc"))[np.arange(120) % 3]
    table = pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "site": site})
    numbers = specification_test(table[["x", "z"]], y, n_resamples=29)
    assert_allclose(numbers.resampled, specification_test(X, y, n_resamples=29).resampled, rtol=1e-10)
    with pytest.raises(ValueError, match="a pipeline that encodes them"):
        specification_test(table, y)
    shifted = y + 1.5 * (site == "b") * X[:, 0]
    encoded = make_pipeline(OneHotEncoder(sparse_output=False, min_frequency=1), LinearRegression())
    step = (site == "b") + 0.1 * X[:, 0]
    assert specification_test(table[["site"]], step, encoded, n_resamples=49).p_value > 0.02
    columns = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    additive = make_pipeline(columns, LinearRegression())
    assert specification_test(table, y, additive, n_resamples=49).p_value > 0.02
    assert specification_test(table, shifted, additive, n_resamples=49).p_value == 0.02


def test_no_rows_within_reach_are_refused():
    with pytest.raises(ValueError, match="use a larger one"):
        specification_test(*rows(), bandwidth=1e-9, kernel="boxcar")
