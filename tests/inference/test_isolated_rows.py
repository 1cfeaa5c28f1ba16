"""Beyond an isolated row shares of planes are differences of large numbers, and their norms are right all the same."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.fitted_model import smoother_of
from kernpool.smoother import EvaluationPoints, WeightTables, estimate, inner, squared_norm

pytestmark = pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning", "ignore::kernpool.InferenceWarning")

GAP = np.linspace(3.0, 9.0, 13)  # bandwidths between an isolated row and the others


def isolated(gap, columns=1, seed=0):
    """Twenty rows within two bandwidths, and one far from them; the bandwidth is one."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2.0, 0.0, size=(21, columns))
    X[-1] = gap
    return X, np.sin(X[:, 0]) + 0.3 * generator.normal(size=21), generator.integers(1, 4, size=21)


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
            np.testing.assert_allclose(squared_norm(found.terms, smoother.sums, weighted), expected, rtol=1e-7)
        one, other = found.terms[0][1], found.terms[-1][1]
        each = [WeightTables.of([(1.0, share)]).rows(slice(None)) for share in (one, other)]
        scale = np.sqrt(np.prod([np.sum(rows**2 / weight, axis=1) for rows in each], axis=0))
        expected = np.sum(each[0] * each[1] / weight, axis=1)
        np.testing.assert_array_less(np.abs(inner(one, other, smoother.sums) - expected), 1e-7 * scale)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # up to three bandwidths beyond
@pytest.mark.parametrize("regressor", [LocalLinearRegressor, NadarayaWatsonRegressor])
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
