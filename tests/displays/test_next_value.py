"""Pictures of what to expect of the next value: what is drawn are the numbers of the model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from scipy.stats import binomtest

from kernpool import (
    CoverageDisplay,
    KernelCurveDisplay,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    QuantileFanDisplay,
    open_chunks,
)
from tests.support.pictures import ends, entries, pixels_of


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 5, 90))
    return x[:, None], 2 * np.sin(x) + (0.2 + 0.2 * x) * random.normal(size=90)


@pytest.fixture(params=[NadarayaWatsonRegressor, LocalLinearRegressor], ids=["constant", "linear"])
def model(request, rows):
    return request.param(bandwidth=0.4).fit(*rows)


@pytest.fixture
def new_rows():
    random = np.random.default_rng(1)
    x = random.uniform(0, 5, 60)
    return x[:, None], 2 * np.sin(x) + (0.2 + 0.2 * x) * random.normal(size=60)


def title(ax):
    return ax.get_legend().get_title().get_text()


def test_a_fan_is_the_quantiles_of_the_model(rows, model):
    display = QuantileFanDisplay.from_estimator(model, *rows, levels=(0.9, 0.5, 0.1, 0.25, 0.75), target="yield")
    at = display.x[:, None]
    for shade, (low, high) in zip(display.bands_, [(0.1, 0.9), (0.25, 0.75)], strict=True):  # the widest first
        x, lower, upper = ends(shade)
        assert_array_equal(x, display.x)
        assert_array_equal(lower, model.quantile(at, low))
        assert_array_equal(upper, model.quantile(at, high))
    assert_array_equal(display.line_.get_ydata(), model.quantile(at, 0.5))
    assert_array_equal(display.scatter_.get_offsets(), np.c_[rows[0][:, 0], rows[1]])
    assert entries(display.ax_) == [
        "80 % of values: quantiles 0.1 to 0.9", "50 % of values: quantiles 0.25 to 0.75", "training samples", "median",
    ]  # fmt: skip
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel(), title(display.ax_)) == ("x", "yield", "")
    outer, inner = (shade.get_facecolor()[0] for shade in display.bands_)
    assert sum(outer[:3]) > sum(inner[:3]) + 0.2  # to be told apart in print
    assert outer[3] == inner[3] == 1.0  # the colors of the legend are those of the picture
    for artist in (*display.bands_, display.line_, display.scatter_):
        assert pixels_of(display.figure_, artist) > 300


@pytest.mark.filterwarnings("ignore:.*determine no slope in some direction")
@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")  # two thin windows
def test_one_level_is_a_line_and_empty_windows_leave_gaps_in_the_fan(rows, model):
    line = QuantileFanDisplay.from_estimator(model, *rows, levels=0.3)
    assert line.bands_ == []
    assert entries(line.ax_) == ["training samples", "quantile 0.3"]
    even = QuantileFanDisplay.from_estimator(model, *rows, levels=[0.2, 0.8], subsample=30)
    assert even.line_ is None  # an even number of levels has no middle
    assert len(even.scatter_.get_offsets()) == 30
    x = np.r_[np.linspace(0, 1, 40), np.linspace(3, 4, 40)]
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=0.3, empty="nan").fit(x[:, None], np.cos(5 * x))
    display = QuantileFanDisplay.from_estimator(model, x[:, None], np.cos(5 * x), levels=[0.1, 0.5, 0.9])
    assert np.isnan(display.line_.get_ydata()).any()
    curve = KernelCurveDisplay.from_estimator(model, x[:, None], np.cos(5 * x), band="confidence")
    for shade in (display.bands_[0], curve.bands_[0]):
        assert len(shade.get_paths()) == 2
        assert not np.any((ends(shade)[0] > 1.31) & (ends(shade)[0] < 2.69))


def test_given_quantiles(rows, model):
    at = np.linspace(0.5, 4.5, 40)
    found = model.quantile(at[:, None], [0.5, 0.1, 0.9])
    fan = QuantileFanDisplay(x=at, quantile=found, levels=[0.5, 0.1, 0.9])
    display = fan.plot(color="green")
    x, lower, upper = ends(display.bands_[0])
    assert_array_equal(x, at)
    assert_array_equal((lower, upper), found[:, [1, 2]].T)
    assert_array_equal(display.line_.get_ydata(), found[:, 0])
    assert entries(display.ax_) == ["80 % of values: quantiles 0.1 to 0.9", "median"]
    assert display.scatter_ is None
    red, green, blue, _ = display.bands_[0].get_facecolor()[0]
    assert green > red == blue


@pytest.mark.parametrize("method", ["adaptive", "jackknife+"])
def test_the_prediction_band_is_that_of_the_model(rows, model, method):
    display = KernelCurveDisplay.from_estimator(
        model, *rows, band="confidence", prediction=0.8, prediction_method=method
    )
    expected = model.prediction_interval(display.x[:, None], level=0.8, method=method)
    x, lower, upper = ends(display.expected_)
    assert_array_equal(x, display.x)
    assert_array_equal((lower, upper), (expected.lower, expected.upper))
    (shade,) = display.bands_
    inner = model.confidence_interval(display.x[:, None])
    assert_array_equal(ends(shade)[1], inner.lower)
    assert entries(display.ax_)[:3] == [
        "training samples", "80 % prediction interval", "95 % pointwise interval",
    ]  # fmt: skip
    assert tuple(display.expected_.get_facecolor()[0][:3]) != tuple(shade.get_facecolor()[0][:3])
    assert display.expected_.get_linestyle() != shade.get_linestyle()  # dashed ends: to be told apart without colors
    assert display.expected_.get_zorder() < shade.get_zorder()
    for artist in (display.expected_, shade):
        assert pixels_of(display.figure_, artist) > 500
    assert KernelCurveDisplay.from_estimator(model, *rows).expected_ is None


def test_the_default_method_is_that_of_the_model(rows):
    for robust in (False, True):
        model = LocalLinearRegressor(bandwidth=0.2, robust=robust).fit(*rows)
        display = KernelCurveDisplay.from_estimator(model, *rows, prediction=0.8)
        assert display.prediction_interval.method == ("cv+" if robust else "adaptive")
    chunked = LocalLinearRegressor(bandwidth=0.4).fit(open_chunks([rows]))
    KernelCurveDisplay.from_estimator(chunked, *rows, prediction=0.9)  # by rows that are held back


def drawn(display):
    """Centers, coverage, and ends of the bars of all slices, from left to right."""
    found = []
    for container in display.bars_:
        line, _, bars = container.lines
        down = bars[-1].get_segments()
        found += [
            (x, y, low, high)
            for x, y, ((_, low), (_, high)) in zip(*line.get_data(), down, strict=True)
        ]  # fmt: skip
    return np.array(sorted(found)).T


def test_coverage_is_counted_slice_by_slice(model, new_rows):
    X, y = new_rows
    display = CoverageDisplay.from_estimator(model, X, y, against=0, level=0.8, slices=5, target="yield")
    found = model.prediction_interval(X, level=0.8)
    inside = (found.lower <= y) & (y <= found.upper)
    order = np.argsort(X[:, 0])
    center, coverage, low, high = drawn(display)
    parts = np.array_split(order, 5)
    assert_allclose(center, [np.median(X[part, 0]) for part in parts])
    assert_allclose(coverage, [inside[part].mean() for part in parts])
    limits = [binomtest(int(inside[part].sum()), 12).proportion_ci(0.95, "exact") for part in parts]
    assert_allclose(np.stack([low, high], axis=1), limits, atol=1e-12)
    assert display.coverage == pytest.approx(inside.mean())
    assert list(display.line_.get_ydata()) == [0.8, 0.8]
    assert title(display.ax_) == f"all 60 rows: {100 * inside.mean():.1f} % inside"
    assert entries(display.ax_)[:2] == ["promised: 80 %", "slices of 12 rows, 95 % binomial bars"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x", "fraction of yield inside the interval")
    for artist in (display.line_, display.bars_[0].lines[0]):
        assert pixels_of(display.figure_, artist) > 50
    display = CoverageDisplay.from_estimator(model, *new_rows)  # by default slices are of the prediction
    by = np.sort(model.predict(new_rows[0])).reshape(10, 6)
    assert_allclose((display.slices.left, display.slices.right), (by[:, 0], by[:, -1]))
    assert display.ax_.get_xlabel() == "prediction of y"


def test_slices_that_miss_the_level_look_different():
    x = np.arange(100.0)
    y = np.where(x < 50, 0.0, 9.0)
    ends_of = np.where(np.arange(100) % 10 == 0, 5.0, -1.0), np.full(100, 8.0)  # 90 % on the left, none on the right
    display = CoverageDisplay.from_intervals(x, y, ends_of, level=0.9, slices=2)
    holds, misses = display.bars_
    assert holds.lines[0].get_xydata().tolist() == [[24.5, 0.9]]
    assert misses.lines[0].get_xydata().tolist() == [[74.5, 0.0]]
    assert holds.lines[0].get_marker() != misses.lines[0].get_marker()
    assert holds.lines[0].get_color() != misses.lines[0].get_color()
    assert entries(display.ax_)[-1] == "slices whose bar misses it"
    only = CoverageDisplay.from_intervals(x, y, ends_of, level=0.5, slices=1)
    assert [bar.get_label() for bar in only.bars_] == ["slices of 100 rows, 95 % binomial bars"]


def test_rows_of_one_value_stay_together_and_labels_are_slices():
    x = np.repeat([1.0, 2.0, 3.0], [5, 80, 15])
    ends_of = np.zeros(100), np.ones(100)
    display = CoverageDisplay.from_intervals(x, np.r_[np.ones(85), np.full(15, 2.0)], ends_of, level=0.9, slices=10)
    assert display.slices.center.tolist() == [1.0, 2.0, 3.0]
    assert display.slices.rows.tolist() == [5, 80, 15]
    assert display.slices.coverage.tolist() == [1.0, 1.0, 0.0]
    assert entries(display.ax_)[1] == "slices of 5 to 80 rows, 95 % binomial bars"
    named = CoverageDisplay.from_intervals(
        np.array(["b", "a"])[(x > 2).astype(int)], np.ones(100), ends_of, level=0.9, x_label="street"
    )
    assert [text.get_text() for text in named.ax_.get_xticklabels()] == ["a", "b"]
    assert named.slices.rows.tolist() == [15, 85]


def test_infinite_and_missing_intervals_are_counted():
    y, x = np.zeros(40), np.arange(40.0)
    lower, upper = np.full(40, -1.0), np.full(40, 1.0)
    upper[:4], lower[4], x[5] = np.inf, np.nan, np.nan
    lower[5] = np.nan
    display = CoverageDisplay.from_intervals(x, y, (lower, upper), level=0.9, slices=2)
    assert title(display.ax_) == "all 38 rows: 100.0 % inside, 4 intervals infinite, 2 rows without interval left out"
    assert display.slices.rows.tolist() == [19, 19]


def test_confidence_intervals_are_asked_about_the_truth(rows, model):
    at = np.linspace(0.2, 4.8, 50)
    interval = model.confidence_interval(at[:, None])
    display = CoverageDisplay.from_intervals(at, 2 * np.sin(at), interval, slices=5, target="truth")
    assert display.level == 0.95
    inside = (interval.lower <= 2 * np.sin(at)) & (2 * np.sin(at) <= interval.upper)
    assert_allclose(drawn(display)[1], inside.reshape(5, 10).mean(axis=1))
