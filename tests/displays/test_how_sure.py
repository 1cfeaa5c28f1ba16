"""Pictures of how sure a fit is: what is drawn are the numbers of the model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from matplotlib.colors import to_rgba

from kernpool import KernelCurveDisplay, LocalLinearRegressor, NadarayaWatsonRegressor, ResidualDisplay
from tests.support.pictures import ends, entries, pixels_of

POINTWISE, SIMULTANEOUS = "pointwise interval", "simultaneous band"


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 5, 80))
    return x[:, None], 2 * np.sin(x) + x**0.8 + 0.5 * random.normal(size=80)


@pytest.fixture
def model(rows):
    return LocalLinearRegressor(bandwidth=0.4).fit(*rows)


@pytest.mark.covering
@pytest.mark.parametrize("of", ["fit", "derivative"])
@pytest.mark.parametrize("band", ["confidence", "simultaneous"])
def test_shades_are_the_intervals_of_the_model(rows, model, of, band):
    display = KernelCurveDisplay.from_estimator(model, *rows, quantity=of, band=band, level=0.9, target="yield")
    at = display.x[:, None]
    kinds = [True, False] if band == "simultaneous" else [False]
    assert len(display.bands_) == len(kinds)
    for shade, simultaneous in zip(display.bands_, kinds, strict=True):
        expected = model.confidence_interval(at, level=0.9, quantity=of, simultaneous=simultaneous)
        x, lower, upper = ends(shade)
        assert_array_equal(x, display.x)
        assert_array_equal(lower, expected.lower.ravel())
        assert_array_equal(upper, expected.upper.ravel())
        assert_array_equal(display.center_line_.get_ydata(), expected.center.ravel())
    (curve,) = display.lines_
    prediction = model.get_prediction(at)
    assert_array_equal(curve.get_ydata(), prediction.mean if of == "fit" else prediction.slope[:, 0])
    words = [f"90 % {SIMULTANEOUS}"] * (band == "simultaneous") + [f"90 % {POINTWISE}"]
    words += ["prediction" if of == "fit" else "slope", "bias-corrected curve"]
    assert entries(display.ax_) == ["training samples"] * (of == "fit") + words
    assert display.ax_.get_ylabel() == ("yield" if of == "fit" else "slope of yield per unit of x")
    assert display.center_line_.get_linestyle() == ":"
    if band == "simultaneous":
        wide, narrow = display.bands_
        assert wide.get_alpha() < narrow.get_alpha()  # two shades, also on paper
        assert pixels_of(display.figure_, wide) > 1000
    for artist in (display.bands_[-1], display.center_line_):
        assert pixels_of(display.figure_, artist) > 100


def test_a_center_that_is_the_curve_is_not_drawn_twice(rows, model):
    display = KernelCurveDisplay.from_estimator(model, *rows, band="confidence", method="naive", variance="nn")
    assert display.center_line_ is None
    expected = model.confidence_interval(display.x[:, None], method="naive", variance="nn")
    assert_array_equal(ends(display.bands_[0])[1], expected.lower)
    assert entries(display.ax_) == ["training samples", f"95 % {POINTWISE}", "prediction"]
    bare = KernelCurveDisplay.from_estimator(model, *rows)
    assert (bare.bands_, bare.center_line_) == ([], None)


def test_given_intervals_are_drawn_in_the_order_of_the_places(rows, model):
    at = np.random.default_rng(1).permutation(np.linspace(0.5, 4.5, 40))
    intervals = [model.confidence_interval(at[:, None], simultaneous=kind) for kind in (False, True)]
    display = KernelCurveDisplay.from_predictions(at, model.predict(at[:, None]), bands=intervals)
    order = np.argsort(at)
    for shade, interval in zip(display.bands_, intervals[::-1], strict=True):  # the wider one lies below
        x, lower, upper = ends(shade)
        assert_array_equal(x, at[order])
        assert_array_equal(lower, interval.lower[order])
        assert_array_equal(upper, interval.upper[order])
    assert_array_equal(display.bands[0].df, intervals[1].df[order])
    expected, green = model.prediction_interval(at[:, None]), {"color": "green", "label": "mine"}
    one = KernelCurveDisplay.from_predictions(
        at, at, prediction_interval=expected, bands=intervals, curve_kwargs=green, band_kwargs=green, scatter_kwargs={}
    )
    assert_array_equal(ends(one.expected_), (at[order], expected.lower[order], expected.upper[order]))
    for color in (one.lines_[0].get_color(), *(band.get_facecolor()[0] for band in one.bands_)):
        assert to_rgba(color)[:3] == to_rgba("green")[:3]
    assert "mine" in entries(one.ax_)


def test_ends_that_run_away_leave_the_curve_its_room(rows, model):
    at = np.linspace(0, 5, 50)
    interval, expected = model.confidence_interval(at[:, None]), model.prediction_interval(at[:, None])
    interval.upper[-3:] += 1e4
    expected.lower[-3:] -= 1e4
    expected.upper[10:20] = np.inf
    display = KernelCurveDisplay.from_predictions(
        at, model.predict(at[:, None]), bands=[interval], prediction_interval=expected
    )
    low, high = display.ax_.get_ylim()
    assert -50 < low < display.prediction.min()
    assert high < 10
    assert ends(display.bands_[0])[2].max() > 1e4  # cut by the picture, not by the numbers
    assert_array_equal(ends(display.expected_)[0], np.delete(at, np.s_[10:20]))  # a gap


def test_one_of_two_columns_has_intervals_at_each_place(rows):
    X = np.c_[rows[0], np.cos(np.arange(80))]
    model = NadarayaWatsonRegressor(bandwidth=[0.5, 0.8]).fit(X, rows[1])
    for of in ("fit", "derivative"):
        display = KernelCurveDisplay.from_estimator(model, X, rows[1], feature=1, quantity=of, band="confidence")
        at = np.c_[np.full(display.x.size, np.median(X[:, 0])), display.x]
        expected = model.confidence_interval(at, quantity=of)
        lower = expected.lower if of == "fit" else expected.lower[:, 1]
        assert_array_equal(ends(display.bands_[0])[1], lower)
    both = KernelCurveDisplay.from_estimator(model, X, rows[1], feature=1, band="simultaneous")
    wide = model.confidence_interval(np.c_[np.full(both.x.size, np.median(X[:, 0])), both.x], simultaneous=True)
    assert_array_equal(ends(both.bands_[0])[1], wide.lower)


@pytest.mark.parametrize("against", [None, 0])
def test_residuals(rows, model, against):
    display = ResidualDisplay.from_estimator(model, against=against, target="yield")
    found = model.residuals()
    at = found.fitted if against is None else rows[0][:, 0]
    assert_array_equal(display.scatter_.get_offsets(), np.c_[at, found.residual])
    first = np.argsort(-found.leverage)[:5]
    assert sorted(zip(*display.marked_.get_data(), strict=True)) == sorted(
        zip(at[first], found.residual[first], strict=True)
    )
    assert {text.get_text().strip() for text in display.ax_.texts} == {str(row) for row in first}
    x, lower, upper = ends(display.noise_)
    assert_array_equal(lower, -upper)
    if against == 0:
        assert_array_equal(x, rows[0][:, 0])
        assert_array_equal(upper, 2 * found.noise)
    else:
        assert np.all((found.noise.min() <= upper / 2) & (upper / 2 <= found.noise.max()))
        assert (x[0], x[-1]) == (at.min(), at.max())
    assert display.ax_.get_xlabel() == ("fit of yield" if against is None else "x")
    assert display.ax_.get_ylabel() == "leave-one-out residual of yield"
    low, high = np.sort(found.leverage)[[-5, -1]]
    assert entries(display.ax_)[-1] == f"rows of largest leverage $H_{{ii}}$, {low:.2g} to {high:.2g}"
    for artist in (display.noise_, display.scatter_, display.marked_):
        assert pixels_of(display.figure_, artist) > 100


def test_residuals_of_some_rows(rows):
    import pandas

    X = pandas.DataFrame({"size": rows[0][:, 0], "age": np.cos(np.arange(80.0))})
    weight = np.r_[np.zeros(10), np.ones(70)]
    both = np.c_[rows[1], -rows[1]]
    model = LocalLinearRegressor(bandwidth=[0.5, 0.8]).fit(X, both, sample_weight=weight)
    display = ResidualDisplay.from_estimator(model, against="age", output=1, marked=2, subsample=30)
    assert display.ax_.get_ylabel() == "leave-one-out residual of y"
    found = model.residuals()
    assert_array_equal(display.residual, found.residual[10:, 1])
    assert_array_equal(display.at, X["age"][10:])
    assert display.row[0] == 10  # numbers are those of all rows
    assert len(display.scatter_.get_offsets()) == 30
    assert len(display.marked_.get_xdata()) == 2
    assert display.ax_.get_xlabel() == "age"
    assert display.plot(marked=0).marked_ is None
    flat = NadarayaWatsonRegressor(kernel="constant").fit(*rows)
    assert_allclose(ResidualDisplay.from_estimator(flat).noise, flat.residuals().noise[0])
