"""Whether a curve is monotone: against dense lines, laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernpool import LocalLinearRegressor, monotonicity_test
from kernpool.bandwidth import canonical_ratio
from kernpool.inference.resampling import random_draws
from kernpool.kernels import get_kernel
from tests.support.dense_resampling import kernel_matrix, p_value, shares, smoother


def rows(n=80, dip=0.0, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(size=n)
    return x, x - dip * np.exp(-60 * (x - 0.6) ** 2) + 0.1 * random.normal(size=n)


class Falls:
    """The statistic by matrices: residuals of the others' curve, slopes, and means of squares around places."""

    def __init__(self, x, h, widths, kernel):
        x = x[:, None]
        places = np.quantile(x[:, 0], np.linspace(0, 1, 101), method="nearest")[:, None]
        own = smoother(x, h, 1, kernel=kernel)
        self.residual = (np.eye(len(x)) - own) / (1.0 - np.diag(own))[:, None]
        self.slope = [shares(kernel_matrix(places, x, w, kernel), places, x, 1)[:, 1] for w in widths]
        self.mean = [kernel_matrix(places, x, 2 * w, kernel) for w in widths]

    def __call__(self, y):
        squares, ratios = (self.residual @ y) ** 2, []
        for slope, weight in zip(self.slope, self.mean, strict=True):
            noise = np.sqrt(weight @ squares / weight.sum(axis=1))
            ratios.append(-(slope @ y) / (noise * np.linalg.norm(slope, axis=1)))
        return np.max(ratios)


@pytest.mark.parametrize("n", [80, 25])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_the_whole_test(kernel, direction, n):
    x, y = rows(n)
    widths, sign = np.array([0.5, 0.3]), {"increasing": 1.0, "decreasing": -1.0}[direction]
    found = monotonicity_test(
        x, y, direction, kernel=kernel, bandwidth=widths, kind="gaussian", n_resamples=99, random_state=2
    )
    # Residuals are of no curve that is more flexible than the most flexible line by default.
    least = np.ptp(x) * {80: 1 / 16, 25: 1 / 4}[n]
    best = LocalLinearRegressor(bandwidth="loo").fit(x[:, None], y).bandwidth_[0]
    h = max(best, least) * canonical_ratio(get_kernel(kernel))
    falls = Falls(x, h, widths, kernel)
    drawn = (falls.residual @ (sign * y))[:, None] * random_draws.multipliers("gaussian", 2, slice(0, 99), n)
    np.testing.assert_allclose(found.statistic, falls(sign * y), rtol=1e-8)
    np.testing.assert_allclose(found.resampled, [falls(column) for column in drawn.T], rtol=1e-8)
    assert found.p_value == p_value(found.statistic, found.resampled)
    assert found.null == f"the curve is {direction}"
    np.testing.assert_allclose(found.bandwidth, widths)


@pytest.mark.slow  # many searches
def test_it_sees_dips_and_the_wrong_direction():
    x, y = rows(150)
    assert monotonicity_test(x, y).p_value > 0.5
    assert monotonicity_test(x, y, "decreasing").p_value == 0.001
    assert monotonicity_test(x, -y, "decreasing").p_value > 0.5
    x, y = rows(150, dip=0.4)
    assert monotonicity_test(x, y).p_value < 0.05


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # some draws of places end far below 1
@given(st.integers(0, 10_000), st.floats(0.01, 3.0))
@settings(max_examples=40, deadline=None)
def test_local_lines_of_what_rises_do_not_fall(seed, h):
    """The reason why smoothing does not spoil the level of the test, whatever the places and the bandwidth."""
    random = np.random.default_rng(seed)
    x = np.sort(random.beta(0.5, 2.0, size=30))
    y = np.cumsum(random.exponential(size=30) * (random.random(30) < 0.2))
    places = np.linspace(0, 1, 21)[:, None]
    slopes = LocalLinearRegressor(bandwidth=h).fit(x[:, None], y).get_prediction(places).slope[:, 0]
    # A covariance of offsets whose squared mean is larger has the rounding of that, which the slope is divided by.
    offset = (x - places) / h
    share = np.exp(0.5 * (np.min(offset**2, axis=1, keepdims=True) - offset**2))
    share /= share.sum(axis=1, keepdims=True)
    mean = np.sum(share * offset, axis=1)
    spread = np.maximum(np.sum(share * (offset - mean[:, None]) ** 2, axis=1), np.finfo(float).eps ** 0.5 * mean**2)
    rounding = 3 * np.finfo(float).eps * np.abs(mean) * (1 + np.abs(mean)) / spread
    assert np.all(slopes >= -(1e-9 + rounding) * np.ptp(y) / h)


def test_bandwidths_go_down_as_far_as_there_are_rows():
    assert monotonicity_test(*rows(20), n_resamples=9).bandwidth.size == 1
    assert monotonicity_test(*rows(400), n_resamples=9).bandwidth.size == 5


def test_equal_rows_do_not_spoil_the_curve():
    """Leave-one-out finds next to no bandwidth where each row has its equal; residuals are of a wider curve."""
    x, y = rows(60)
    twice = monotonicity_test(x, y, sample_weight=np.full(60, 2.0), n_resamples=99)
    assert np.isfinite(twice.resampled).all()
    assert twice.p_value > 0.05


def test_gaps_are_no_slopes():
    """A compact kernel in a gap between rows has no line, and nothing falls there."""
    x = np.concatenate([np.linspace(0.0, 0.1, 40), np.linspace(0.9, 1.0, 40)])
    y = x + 0.01 * np.random.default_rng(0).normal(size=80)
    assert np.isfinite(monotonicity_test(x, y, kernel="epanechnikov", bandwidth=0.05).statistic)


X, Y = rows()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.stack([X, X], axis=1)}, "is for one column, got 2"),
        ({"X": np.ones(80)}, "X is 1 in every row"),
        ({"bandwidth": 0.0}, "bandwidth must be positive"),
        ({"bandwidth": 1e-9, "kernel": "boxcar"}, "no local line has a slope"),
        ({"X": X[:19], "y": Y[:19]}, "at least 20 rows of positive weight, got 19.*intervals of the slope"),
        ({"sample_weight": np.repeat([1.0, 0.0], [19, 61])}, "at least 20 rows"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        monotonicity_test(**({"X": X, "y": Y} | changes))
