"""How often tests reject, by Monte Carlo with wide bounds; `benchmarks/test_size.py` has narrow ones.

With 120 runs a size of 5 % is seen as 5 +- 2 %. Bounds are three standard deviations away.
"""

import warnings

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, specification_test

pytestmark = pytest.mark.slow

RUNS, RESAMPLES = 120, 99


def share(p_value, runs=RUNS):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small samples
        return np.mean([p_value(np.random.default_rng([seed, 7])) <= 0.05 for seed in range(runs)])


def columns(random):
    X = random.uniform(size=(100, 2))
    return X, np.sin(2 * np.pi * X[:, 0]) + (0.2 + 0.3 * X[:, 0]) * random.normal(size=100)


def significance(random):
    # The bandwidths of the model do not enter the test by residuals.
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(*columns(random))
    return model.significance_test(1, n_resamples=RESAMPLES).p_value


def test_columns_that_do_not_matter():
    assert 0.005 <= share(significance) <= 0.11


def line(random):
    x = random.uniform(-1, 1, size=(100, 1))
    y = 1 + x[:, 0] + (0.2 + 0.2 * np.abs(x[:, 0])) * random.normal(size=100)
    return specification_test(x, y, n_resamples=RESAMPLES).p_value


def test_lines_that_are_lines():
    assert 0.005 <= share(line) <= 0.11
