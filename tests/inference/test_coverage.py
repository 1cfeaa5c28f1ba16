"""Intervals and bands cover as often as they say, at bandwidths found on the same rows."""

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
    """Binomial errors of 400 runs are 1.1 percent for a place and the band, and less for the mean of seven places.

    A place that is covered in 94 percent, the bar of `benchmarks/interval_coverage.py`, may so be seen at .905; a bound
    of .92 three errors away takes 1400 runs.
    """
    g, covered, held = np.random.default_rng(0), [], []
    for _ in range(RUNS):
        x = g.uniform(size=200)
        y = truth(x) + (0.2 + 0.3 * x) * g.normal(size=200)
        model = LocalLinearRegressor(bandwidth="loo").fit(x[:, None], y)
        single = model.confidence_interval(PLACES[:, None])
        covered.append((single.lower <= truth(PLACES)) & (truth(PLACES) <= single.upper))
        band = model.confidence_interval(CURVE[:, None], simultaneous=True)
        held.append(np.all((band.lower <= truth(CURVE)) & (truth(CURVE) <= band.upper)))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.all(np.mean(covered, axis=0) >= 0.90)
    assert 0.92 <= np.mean(held) <= 0.99
