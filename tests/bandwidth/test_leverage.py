"""Rows that fit themselves: what counts for them, its derivatives, and tables on which criteria were fooled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import LocalLinearRegressor, get_kernel
from kernpool.bandwidth.criteria import SAFE, replace_at_high_leverage
from tests.support.searches import canonical_rows, check_derivatives, objective_of, search_bandwidth

PENALISED = ("aicc", "gcv")


def make_edges(seed, n):
    """Rows of five columns, two of them skewed: many have no row beyond them in some direction."""
    generator = np.random.default_rng(seed)

    def draw(size):
        X = generator.normal(size=(size, 5))
        X[:, 0] = generator.exponential(size=size)
        X[:, 1] = (generator.uniform(size=size) < 0.2) * generator.exponential(size=size)
        truth = np.sin(1.5 * X[:, 0]) + 0.7 * X[:, 1] + 0.3 * np.tanh(X[:, 2]) * X[:, 3]
        return X, truth + 0.5 * generator.normal(size=size)

    return draw(n), draw(1000)


def count_one(hat, residual=0.3, alone=2.0, bound=1e9):
    counted = replace_at_high_leverage(
        *(np.array([[number]]) for number in (residual, alone)), np.array([hat]), np.array([[bound]])
    )
    return tuple(float(np.squeeze(number)) for number in counted)


@given(st.floats(-0.5, SAFE), st.floats(-1e3, 1e3))
def test_residuals_of_safe_rows_stay_as_they_are(hat, residual):
    assert count_one(hat, residual) == (residual, 1.0, 0.0)


@given(st.floats(0.0, 1e-4))
def test_from_one_half_on_the_step_is_smooth(beyond):
    value, by_fit, by_hat = count_one(SAFE + beyond)
    assert abs(value - 0.3) <= 20 * beyond**2
    assert abs(by_fit - 1.0) <= 60 * beyond**2
    assert abs(by_hat) <= 20 * beyond


@pytest.mark.parametrize("gap", [0.4, 0.1, 1e-3, 3e-5, 1e-6, 1e-7])
def test_slopes_of_what_counts(gap):
    hat, step = 1.0 - gap, 1e-4 * gap
    residual = 0.7 * gap  # as it is there
    for bound in (1e9, 1.5):
        up, down = count_one(hat + step, residual, bound=bound)[0], count_one(hat - step, residual, bound=bound)[0]
        found = count_one(hat, residual, bound=bound)
        assert found[2] == pytest.approx((up - down) / (2 * step), rel=1e-4)
        up, down = (count_one(hat, (1 + s) * residual, bound=bound)[0] for s in (1e-4, -1e-4))
        assert found[1] == pytest.approx((up - down) / (2e-4 * residual), rel=1e-5)


@given(st.floats(0.99, 1.0), st.floats(-1e6, 1e6))
def test_what_counts_for_a_row_that_fits_itself_is_bounded(hat, residual):
    assert abs(count_one(hat, residual, bound=3.0)[0]) <= 3.0 + 2e-3 * abs(residual) / (1.0 - hat + 1e-8)
    assert abs(count_one(1.0, residual, bound=3.0)[0]) <= 3.0


def test_near_one_the_deleted_residual_counts():
    """Of a fit of four rows by a plane, with one of them far out."""
    x, y = np.array([0.0, 1.0, 2.0, 30.0]), np.array([0.0, 2.0, 1.0, 5.0])
    design = np.column_stack([np.ones(4), x])
    hat = design @ np.linalg.pinv(design)
    others = np.polyval(np.polyfit(x[:3], y[:3], 1), 30.0)
    residual = (y - hat @ y)[:, None]
    counted = replace_at_high_leverage(residual, np.zeros((4, 1)), np.diagonal(hat), np.full((4, 1), 1e9))
    assert hat[3, 3] > 0.99
    assert counted[0][3, 0] == pytest.approx(y[3] - others, rel=0.01)


@pytest.mark.parametrize("criterion", PENALISED)
@pytest.mark.parametrize("shift", [-0.6, -0.3, -0.1])
def test_gradients_in_thin_windows(criterion, shift, generator):
    X = generator.normal(size=(40, 3))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * generator.normal(size=(40, 2))
    rows = canonical_rows(X, y, np.repeat([1.0, 2.0], 20))
    objective = objective_of(rows, criterion, degree=1, kernel=get_kernel("gaussian"))
    theta = np.array([-0.3, 0.1, 0.3]) + shift
    assert objective.evaluate(theta).hat.max() > 0.7
    check_derivatives(objective, theta, 1e-5, step=1e-5)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # the tails of some columns are long
@pytest.mark.covering
@pytest.mark.filterwarnings("ignore::kernpool.core.local_fit.RankDeficiencyWarning")
@pytest.mark.parametrize("criterion", PENALISED)
@pytest.mark.parametrize("seed", [1, 3])
def test_rows_at_the_edge_do_not_get_planes_of_their_own(criterion, seed):
    """By the mean leverage alone, held-out R^2 was -4.5 and -1.7 with aicc, -3.5 and -1.1 with gcv."""
    (X, y), (new, truth) = make_edges(seed, 100)
    model = LocalLinearRegressor(bandwidth=criterion).fit(X, y)
    assert model.score(new, truth) > 0.1


def test_an_indicator_of_a_single_row_leaves_the_criterion_defined(generator):
    """Its leverage is one at any bandwidth."""
    X = generator.normal(size=(50, 2))
    X[:, 1] = np.arange(50) == 7
    y = np.sin(2 * X[:, 0]) + 0.1 * generator.normal(size=50)
    found = search_bandwidth(X, y[:, None], criterion="aicc", degree=1, kernel=get_kernel("gaussian"))
    assert np.isfinite(found.value)
    assert found.bandwidth[0] < 1.0


@pytest.mark.parametrize("hat", [1.0, 1.0 + 1e-12, 1.0 - 1e-9])
def test_a_row_alone_counts_as_predicted_by_the_others_mean(hat):
    assert count_one(hat, 1e-13) == (2.0, 0.0, 0.0)
