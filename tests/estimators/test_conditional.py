"""Conditional distributions and quantiles of models are those of their weights; scores, and bandwidths for them."""

import pickle
from contextlib import nullcontext
from functools import partial
from math import comb

import numpy as np
import pandas as pd
import pytest

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    distribution_bandwidth,
    open_chunks,
    pool_quantile,
    pooling_weights,
)
from kernpool.distribution.scoring_rules import indicators
from kernpool.kernels import get_kernel
from tests.support.dense_distribution import dense_cdf, dense_crps, dense_pit, dense_smooth
from tests.support.dense_quantiles import assert_quantiles
from tests.support.searches import search_bandwidth

LEVELS = [0.9, 0.1, 0.5]
THRESHOLDS = [-0.3, 0.2, 9.0]
REGRESSORS = [NadarayaWatsonRegressor, LocalLinearRegressor]
close = partial(np.testing.assert_allclose, rtol=0, atol=1e-12)
both_regressors = pytest.mark.parametrize("regressor", REGRESSORS)


def width_of(model, method="rule"):
    """Return the bandwidth in y of one output that a method finds."""
    return model.conditional_distribution(y_bandwidth=method).y_bandwidth[0]


def make_rows(n=150, d=1, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.3 * generator.normal(size=n), generator


def weighed_by(model, X, y):
    """Return values that the weights of a model are of, and what is added to them."""
    if isinstance(model, NadarayaWatsonRegressor):
        return y, np.zeros(len(y) if X is None else len(X))
    left_out = model.leave_one_out().prediction[:, 0]
    return y - left_out, left_out if X is None else model.predict(X)


def check(model, at, weights, y, seen, uniform=0.0):
    """Compare answers at rows, or at the training rows, with those of a table of weights of training rows."""
    value, center = weighed_by(model, at, y)
    steps, smooth = (model.conditional_distribution(at, y_bandwidth=width) for width in (None, 0.2))
    own = () if at is None else (seen,)
    for thresholds in (THRESHOLDS, seen[:, None] + [0.003, -0.4]):
        close(steps.cdf(thresholds), dense_cdf(weights, value, thresholds, center))
        close(smooth.cdf(thresholds), dense_smooth(weights, value, thresholds, 0.2, center))
        close(smooth.pdf(thresholds), dense_smooth(weights, value, thresholds, 0.2, center, density=True), atol=2e-12)
    close(steps.crps(*own), dense_crps(weights, value, seen, center), rtol=1e-11)
    close(steps.pit(*own, random_state=5), dense_pit(weights, value, value if at is None else seen - center, uniform))
    if not center.any():
        assert_quantiles(model.quantile(at, LEVELS), weights, y, LEVELS)


@both_regressors
@pytest.mark.parametrize("with_groups", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_every_answer_is_that_of_weights(regressor, d, with_groups):
    X, y, generator = make_rows(d=d)
    weight = None if with_groups else generator.integers(0, 4, len(y))
    groups = generator.integers(0, 12, len(y)) if with_groups else None
    model = regressor(bandwidth=0.6).fit(X, y, sample_weight=weight, groups=groups)
    weights = pooling_weights(X[:20], X, bandwidth=0.6, key_weight=weight)
    check(model, X[:20], weights, y, generator.normal(size=20))
    around = pool_quantile(X[:20], X, weighed_by(model, X, y)[0], LEVELS, bandwidth=0.6, key_weight=weight)
    close(model.quantile(X[:20], LEVELS), weighed_by(model, X[:20], y)[1][:, None] + around)
    np.testing.assert_array_equal(model.quantile(X[:20]), model.quantile(X[:20], [0.5])[:, 0])


@both_regressors
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_function_is_the_inverse_of_quantiles(regressor, dtype):
    """To the last bit of a quantile, though sums of residuals and predictions are rounded."""
    X, y, _ = make_rows()
    model = regressor(bandwidth=0.3).fit(X.astype(dtype), np.round(y, 1).astype(dtype))
    at = X[:40].astype(dtype)
    found, steps = model.quantile(at, LEVELS), model.conditional_distribution(at)
    assert (steps.cdf(found) >= np.array(LEVELS) - 1e-13).all()
    assert (steps.cdf(np.nextafter(found, dtype(-np.inf))) < np.array(LEVELS) + 1e-13).all()
    smooth = model.quantile(at, LEVELS, y_bandwidth=0.2)
    assert found.dtype == smooth.dtype == steps.sample(2, random_state=np.random.default_rng(0)).dtype == dtype
    back = model.conditional_distribution(at, y_bandwidth=0.2).cdf(smooth)
    close(back, np.tile(LEVELS, (40, 1)), atol=1e-11 if dtype == np.float64 else 1e-6)


@both_regressors
@pytest.mark.parametrize("with_groups", [False, True])
def test_training_rows_are_left_out_of_their_own_distribution(regressor, with_groups):
    X, y, generator = make_rows(n=90)
    groups = generator.integers(0, 12, len(y)) if with_groups else None
    weight = None if with_groups else generator.integers(1, 3, len(y)).astype(float)
    model = regressor(bandwidth=0.3).fit(X, y, sample_weight=weight, groups=groups)
    others = {"attn_mask": groups[:, None] != groups} if with_groups else {"exclude_self": True}
    weights = pooling_weights(X, X, empty="zero", bandwidth=0.3, key_weight=weight, **others)
    # With a weight of two the other unit of a row is among its neighbours, and ties with it.
    check(model, None, weights, y, y, np.random.RandomState(5).uniform(size=(90, 1))[:, 0])


@pytest.mark.parametrize("noise", ["normal", "skew"])
def test_transforms_of_new_values_are_uniform(noise):
    """Spread and shape differ over x; windows of 150 rows have 1 in 150 values beyond their own."""
    generator = np.random.default_rng(3)

    def draw(n):
        x = generator.uniform(size=(n, 1))
        error = generator.normal(size=n) if noise == "normal" else generator.exponential(size=n) - 1
        return x, np.sin(3 * x[:, 0]) + (0.2 + x[:, 0]) * error

    model = LocalLinearRegressor(bandwidth=0.05).fit(*draw(1500))
    X_new, y_new = draw(2000)
    for found in (
        model.conditional_distribution(X_new).pit(y_new, random_state=0),
        model.conditional_distribution().pit(random_state=0),
    ):
        share = np.histogram(found, bins=10, range=(0, 1))[0] / len(found)
        assert np.abs(share - 0.1).max() < 0.03


@both_regressors
def test_intervals_are_between_quantiles_at_levels_around(regressor):
    X, y, generator = make_rows()
    weight = generator.integers(0, 4, len(y)).astype(float)
    model = regressor(bandwidth=0.3).fit(X, y, sample_weight=weight)
    at, kept = X[:15], weight > 0
    weights = pooling_weights(at, X, bandwidth=0.3, key_weight=weight)
    squares = np.sum(weights[:, kept] ** 2 / weight[kept], axis=1)
    value, center = weighed_by(model, at, y)
    found = model.conditional_distribution(at).quantile_interval([0.5, 0.02], level=0.9)
    np.testing.assert_allclose(found.effective_rows, 1 / squares, rtol=1e-9)
    np.testing.assert_array_equal(found.center, model.quantile(at, [0.5, 0.02]))
    for number, tau in enumerate([0.5, 0.02]):
        for i, n in enumerate(np.floor(1 / squares).astype(int)):
            below = np.cumsum([comb(n, k) * tau**k * (1 - tau) ** (n - k) for k in range(n + 1)])
            ranks = [r for r in range(n + 1) if r == 0 or below[r - 1] <= 0.05]  # at least r rows are below
            least, most = max(ranks), min([s for s in range(1, n + 1) if below[s - 1] >= 0.95], default=np.inf)
            for rank, end, none in ((least, found.lower, -np.inf), (most, found.upper, np.inf)):
                expected = none
                if 0 < rank <= n:
                    one = pool_quantile(at[i][None], X, value, rank / n, bandwidth=0.3, key_weight=weight)
                    expected = one[0] + center[i]
                np.testing.assert_allclose(end[i, number], expected, rtol=0, atol=1e-12)
    assert np.isneginf(found.lower[:, 1]).any()


@pytest.mark.parametrize("tau", [0.05, 0.15, 0.2, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
def test_intervals_of_few_rows_cover(n, tau):
    """Rows at one place are a plain sample, of which binomial probabilities say how often the quantile is inside."""
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(np.zeros((n, 1)), np.arange(1.0, n + 1))
    found = model.conditional_distribution([[0.0]]).quantile_interval(tau)
    low, high = (np.clip(end[0], 0.0, n + 1.0) for end in (found.lower, found.upper))
    inside = sum(comb(n, k) * tau**k * (1 - tau) ** (n - k) for k in range(n + 1) if low <= k < high)
    assert inside >= 0.95 - 1e-12


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
def test_nothing_is_known_of_a_quantile_in_an_empty_window(empty):
    x = np.arange(30.0)
    model = NadarayaWatsonRegressor("boxcar", bandwidth=0.1, empty=empty).fit(x[:, None] / 30, x)
    with pytest.warns(EmptyWindowWarning, match="1 of 2") if empty == "nearest" else nullcontext():
        found = model.conditional_distribution([[1.5], [0.5]]).quantile_interval()
    assert (found.effective_rows[0], found.lower[0], found.upper[0]) == (0, -np.inf, np.inf)
    assert np.isfinite(found.center).all()


@pytest.mark.parametrize("make", REGRESSORS)
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning", "ignore::kernpool.RankDeficiencyWarning")
def test_a_single_row_has_no_spread_and_is_told_so(make):
    model = make(bandwidth=2.0).fit([[3.0]], [5.0])
    for rows in ([[3.0]], None):
        with pytest.raises(ValueError, match="y_bandwidth cannot be found: no row has another one in its window; give"):
            model.conditional_distribution(rows, y_bandwidth="rule")
    steps, smooth = (model.conditional_distribution([[3.0]], y_bandwidth=width) for width in (None, 1.0))
    assert steps.cdf([5.0]).tolist() == [[1.0]]
    assert steps.crps([5.0]).tolist() == [0.0]
    assert smooth.pdf(5.0) == pytest.approx([1.0 / np.sqrt(2.0 * np.pi)])


@pytest.mark.slow
@both_regressors
def test_intervals_cover(regressor):
    """The true quantiles of normal noise at the middle, in 400 samples."""
    covered, truth = np.zeros(3), np.array([-0.6744897501960817, 0.0, 0.8416212335729143])
    for seed in range(400):
        generator = np.random.default_rng(seed)
        x = generator.uniform(-1, 1, (300, 1))
        model = regressor(bandwidth=0.25).fit(x, 0.5 * x[:, 0] + generator.normal(size=300))
        found = model.conditional_distribution([[0.0]]).quantile_interval([0.25, 0.5, 0.8])
        covered += (found.lower[0] <= truth) & (truth <= found.upper[0])
    assert (np.abs(covered / 400 - 0.95) < 0.035).all(), covered / 400


@both_regressors
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")  # of the nearest
def test_empty_windows_have_what_is_asked_for(regressor):
    X = np.linspace(0, 1, 101)[:, None]
    y = 10 * X[:, 0]
    far, seen = [[5.0]], [4.0]
    for empty, value in (("mean", y), ("nearest", y[-1:]), ("zero", np.zeros(1))):
        model = regressor("epanechnikov", 0.2, empty=empty).fit(X, y + 0.001 * np.cos(1e4 * y))
        even = np.full((1, len(value)), 1 / len(value))
        steps, smooth = (model.conditional_distribution(far, y_bandwidth=width) for width in (None, 0.5))
        close(steps.cdf([3.005, -1.0]), dense_cdf(even, value, [3.005, -1.0]), atol=1e-9)
        close(smooth.cdf([3.0, 0.4]), dense_smooth(even, value, [3.0, 0.4], 0.5), atol=1e-3)
        close(smooth.pdf([3.0, 0.4]), dense_smooth(even, value, [3.0, 0.4], 0.5, density=True), atol=2e-3)
        close(steps.crps(seen), dense_crps(even, value, seen), atol=2e-3)
        close(steps.pit([3.005]), dense_cdf(even, value, [3.005])[0], atol=1e-9)
        close(model.quantile(far, LEVELS)[0], np.quantile(value, LEVELS, method="inverted_cdf"), atol=2e-3)
        close(model.quantile(far, y_bandwidth=0.5), np.median(value), atol=2e-3)
        assert steps.quantile_interval().effective_rows.tolist() == [0.0]
    model = regressor("epanechnikov", 0.2, empty="nan").fit(X, y)
    steps, smooth = (model.conditional_distribution(far, y_bandwidth=width) for width in (None, 0.1))
    for ask in (
        lambda: steps.cdf(1.0),
        lambda: smooth.pdf(1.0),
        lambda: steps.crps(seen),
        lambda: steps.pit(seen),
        lambda: smooth.quantile(),
        lambda: steps.quantile_interval().center,
    ):
        with pytest.warns(EmptyWindowWarning, match="1 of 1 queries"):
            assert np.isnan(ask()).all()


def test_a_value_of_zero_meets_zero_by_chance():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor("boxcar", 0.1, empty="zero").fit(X, y)
    found = model.conditional_distribution(np.full((3, 1), 9.0)).pit([-1.0, 0.0, 1.0], random_state=0)
    assert found[[0, 2]].tolist() == [0.0, 1.0]
    assert 0 < found[1] < 1


def test_bandwidths_for_the_distribution_are_those_of_indicators():
    X, y, generator = make_rows(n=120, d=2)
    weight = generator.integers(1, 3, len(y)).astype(float)
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, y, sample_weight=weight)
    found = distribution_bandwidth(model)
    expected = search_bandwidth(X, indicators(y, weight, 19), weight, kernel=get_kernel("gaussian"), standardise=False)
    np.testing.assert_array_equal(found.bandwidth, expected.bandwidth)
    np.testing.assert_allclose(found.error, criterion(X, y, weight, found.bandwidth), rtol=1e-10)


def criterion(X, y, weight, bandwidth):
    """Equation 7 of Li, Lin and Racine, in full."""
    levels = np.arange(1, 20) / 20
    thresholds = np.quantile(y, levels, weights=weight, method="inverted_cdf")
    weights = pooling_weights(X, X, bandwidth=bandwidth, key_weight=weight, exclude_self=True)
    squares = ((y[:, None] <= thresholds) - dense_cdf(weights, y, thresholds)) ** 2
    return weight @ squares.sum(axis=1) / weight.sum()


def test_bandwidths_for_the_distribution_of_a_frame():
    X, y, generator = make_rows(n=120)
    kind = generator.choice(list("ab"), len(y))
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(kind)})
    y = generator.normal(size=len(y)) * np.where(kind == "a", 0.1, 2.0)  # whose mean depends on nothing
    model = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=[0.5]).fit(frame, y)
    found = distribution_bandwidth(model)
    assert found.smoothing[0] < 0.1
    again = NadarayaWatsonRegressor(bandwidth=found.bandwidth, smoothing=found.smoothing).fit(frame, y)
    assert again.conditional_distribution().crps().mean() < model.conditional_distribution().crps().mean()


ROWS = make_rows()[:2]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda at: at().cdf(np.zeros((3, 1))), r"y\[:, None\]"),
        (lambda at: at(y_bandwidth=-1.0), "y_bandwidth must be a positive number or one for each"),
        (lambda at: at(y_bandwidth="scott"), "y_bandwidth must be a positive number, 'rule'"),
        (lambda at: at(None, y_bandwidth="cv"), "'rule' or 'ml', got 'cv'"),
        (lambda at: at().pit(), "pit needs y, the value observed at each row"),
        (lambda at: at(None).crps(ROWS[1]), "crps at the training rows takes their own y"),
        (lambda at: at().pdf(0.0), "a density needs a bandwidth in y"),
        (lambda at: at(y_bandwidth=1.0).crps(ROWS[1]), "without smoothing"),
        (lambda at: at().pit(ROWS[1][:5]), r"one value for each row of X, shape \(150,\), got shape \(5,\)"),
        (lambda at: at().quantile_interval(50), "levels must be between 0 and 1, got 50"),
        (lambda at: at().quantile_interval(level=95), "level must lie between 0 and 1, got 95"),
        (lambda at: at(np.ones((2, 3))).cdf(0.0), "features"),
        (lambda at: at().sample(0), "size must be an integer from 1 on, got 0"),
        (lambda at: distribution_bandwidth(at.model, "aicc"), "criterion must be 'loo' or 'regularised'"),
        (lambda at: distribution_bandwidth(at.model, thresholds=0), "thresholds must be an integer"),
        (
            lambda _: distribution_bandwidth(LocalLinearRegressor(bandwidth=0.4).fit(*ROWS)),
            "distribution_bandwidth is for local",
        ),
    ],
)
def test_what_is_refused(ask, message):
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(*ROWS)

    def at(X=ROWS[0], **options):
        return model.conditional_distribution(X, **options)

    at.model = model
    with pytest.raises((TypeError, ValueError), match=message):
        ask(at)


@pytest.mark.parametrize("make", REGRESSORS)
def test_draws_and_transforms_of_a_smoothed_distribution_follow_it(make):
    X, y, _ = make_rows()
    model = make(bandwidth=0.4).fit(X, y)
    y_at = model.conditional_distribution(X[:2], y_bandwidth=0.5)
    drawn = y_at.sample(20_000, random_state=0)
    shares = (drawn[:, :, None] <= THRESHOLDS).mean(axis=1)
    np.testing.assert_allclose(shares, y_at.cdf(THRESHOLDS), atol=0.015)  # four standard errors
    np.testing.assert_array_equal(y_at.pit(y[:2]), y_at.cdf(y[:2, None])[:, 0])
    own = model.conditional_distribution(y_bandwidth=0.5)
    np.testing.assert_allclose(own.pit(), own.cdf(y[:, None])[:, 0], rtol=0, atol=1e-14)


def test_an_object_keeps_its_rows():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, np.column_stack([y, -y]))
    y_at = model.conditional_distribution(X[:3], y_bandwidth=[0.5, 0.25])
    before = y_at.cdf(THRESHOLDS)
    lower, upper = y_at.interval(0.8)
    np.testing.assert_array_equal(np.stack([lower, upper], axis=2), y_at.quantile([0.5 - 0.4, 0.5 + 0.4]))
    model.fit(np.vstack([X, X[:1] + 0.01]), np.vstack([np.column_stack([y, -y]), [[50.0, 50.0]]]))
    np.testing.assert_array_equal(y_at.cdf(THRESHOLDS), before)
    assert (model.conditional_distribution(X[:3], y_bandwidth=[0.5, 0.25]).cdf(THRESHOLDS) != before).any()
    assert len(y_at) == 3


@pytest.fixture(params=["constants", "planes", "chunks"])
def model(request):
    """Return a model of the same rows in arrays, of constants or of planes, or in chunks."""
    X, y = ROWS
    if request.param == "chunks":
        return NadarayaWatsonRegressor(bandwidth=0.3).fit(open_chunks([(X[:70], y[:70]), (X[70:], y[70:])]))
    return REGRESSORS[request.param == "planes"](bandwidth=0.3).fit(X, y)


class TestOfAnyContainer:
    def test_answers_do_not_change_with_the_array_that_was_passed(self, model):
        at = np.array([[0.1], [0.5]])
        y_at = model.conditional_distribution(at)
        before = y_at.cdf(THRESHOLDS), y_at.quantile(LEVELS)
        at[:] = -0.7
        np.testing.assert_array_equal(y_at.cdf(THRESHOLDS), before[0])
        np.testing.assert_array_equal(y_at.quantile(LEVELS), before[1])

    def test_an_object_survives_pickling(self, model):
        y_at = model.conditional_distribution([[0.1], [0.5]], y_bandwidth=0.2)
        again = pickle.loads(pickle.dumps(y_at))
        np.testing.assert_array_equal(again.cdf(THRESHOLDS), y_at.cdf(THRESHOLDS))

    @pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
    def test_weights_that_underflow_are_zeros(self, model):
        with np.errstate(all="raise"):
            y_at = model.conditional_distribution([[0.0], [9.0]])
            smooth = model.conditional_distribution([[0.0], [9.0]], y_bandwidth=0.01)
            for found in (y_at.cdf(50.0), smooth.cdf(50.0), y_at.pit([50.0, 50.0]), smooth.pit([50.0, 50.0])):
                np.testing.assert_allclose(found, 1.0, rtol=1e-14)
            assert (smooth.pdf(50.0) == 0.0).all()
            assert (y_at.pit([0.0, 0.0], random_state=0) <= 1.0).all()


def test_bandwidths_of_an_object_are_its_own():
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(*ROWS)
    before = width_of(model)
    model.conditional_distribution([[0.1]], y_bandwidth="rule").y_bandwidth[:] = 99.0
    assert width_of(model) == before


@both_regressors
@pytest.mark.parametrize("empty", ["mean", "nearest"])
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_outputs_of_a_row_are_drawn_together_in_empty_windows(regressor, empty):
    X, y, _ = make_rows(n=40)
    X, y = np.concatenate([X, np.ones((40, 1))]), np.append(y, 2.0 * y + 1.0)  # many rows are the nearest one
    two = np.column_stack([y, -y])
    drawn = regressor("boxcar", 0.1, empty=empty).fit(X, two).conditional_distribution([[1.25], [0.0]]).sample(400)
    assert len(np.unique(drawn[0, :, 0])) > 20
    assert np.isin(drawn[0, :, 0], y).all()
    assert regressor is LocalLinearRegressor or np.isin(drawn[1, :, 0], y).all()
    np.testing.assert_array_equal(drawn[0, :, 1], -drawn[0, :, 0])
    np.testing.assert_allclose(drawn[:, :, 1], -drawn[:, :, 0], rtol=1e-10, atol=1e-12)


def test_draws_have_the_conditional_distribution():
    X, y, _ = make_rows(n=30)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    drawn, again = (model.conditional_distribution(X[:2]).sample(20000, random_state=0) for _ in range(2))
    assert drawn.shape == (2, 20000)
    share = np.mean(drawn[:, :, None] == y, axis=1)
    close(share, model.attention_weights(X[:2]), atol=5 * np.sqrt(0.25 / 20000))
    np.testing.assert_array_equal(drawn, again)


def test_rows_that_are_alone_have_no_residual():
    """The mean of all others is no fit of an isolated row, and what it is off by is no noise."""
    X = np.append(np.linspace(0, 1, 60), 9.0)[:, None]
    y = np.append(np.zeros(60), 50.0)
    model = LocalLinearRegressor("epanechnikov", 0.3, empty="mean").fit(X, y)
    with np.errstate(all="raise"):
        found = model.quantile([[0.5], [9.0], [5.0]], [0.1, 0.9])
    close(found[0], 0.0)
    assert found[1:].tolist() == [[0.0, 0.0], [0.0, 0.0]]  # of all outputs, where no residual is near
    single = LocalLinearRegressor("epanechnikov", 1e-3, empty="nan").fit(X[:3], y[:3])
    with pytest.warns(EmptyWindowWarning, match="2 of 2 queries"):
        assert np.isnan(single.quantile(X[:2])).all()
