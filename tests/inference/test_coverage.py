"""Intervals and bands cover as often as they say, at bandwidths found on the same rows.

Coverage is a coarse measure: of 400 runs the share at one place is known to 1.1 percent. What makes it is known better: the
errors in standard errors, whose mean is a bias, seen within .05, and whose root mean square says whether standard errors
are right, within 4 percent. `benchmarks/interval_coverage.py` has 2000 runs of this and other settings.
"""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor
from tests.support.inference_cases import PLACES

RUNS = 400
CURVE = np.linspace(0.0, 1.0, 101)


def truth(x):
    return np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2)


@pytest.mark.slow
def test_coverage_of_a_curve_with_a_peak_and_growing_noise():
    g, covered, held, errors = np.random.default_rng(0), [], [], []
    for _ in range(RUNS):
        x = g.uniform(size=200)
        y = truth(x) + (0.2 + 0.3 * x) * g.normal(size=200)
        model = LocalLinearRegressor(bandwidth="loo", algorithm="brute", n_jobs=1).fit(x[:, None], y)
        single = model.confidence_interval(PLACES[:, None])
        covered.append((single.lower <= truth(PLACES)) & (truth(PLACES) <= single.upper))
        errors.append((single.center - truth(PLACES)) / single.standard_error)
        band = model.confidence_interval(CURVE[:, None], simultaneous=True)
        held.append(np.all((band.lower <= truth(CURVE)) & (truth(CURVE) <= band.upper)))
    least = 0.94 - 3.0 * np.sqrt(0.94 * 0.06 / RUNS)  # .94 at each place, as seen in so many runs
    bias, spread = np.mean(errors, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    print(np.mean(covered, axis=0), bias, spread, np.mean(held))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.all(np.mean(covered, axis=0) >= least)
    assert 0.92 <= np.mean(held) <= 0.99
