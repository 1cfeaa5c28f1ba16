"""Curves by group, several curves on one axes, and surfaces: what is drawn, and what the legend says of it."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas", reason="frames need pandas")
pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from kernpool import (
    BandwidthPathDisplay,
    CoverageDisplay,
    KernelCurveDisplay,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    PartialDisplay,
    QuantileFanDisplay,
)
from kernpool.displays import drawing
from tests.support.pictures import ends, entries

N = 120
RNG = np.random.default_rng(4)
KIND = np.array(["ash", "elm", "oak"])[np.arange(N) % 3]
FRAME = pd.DataFrame({"size": RNG.uniform(size=N) + np.arange(N) % 3, "kind": KIND, "doors": 2 + np.arange(N) // 3 % 4})
Y = pd.Series(np.sin(3 * FRAME["size"]) + np.arange(N) % 3 + 0.2 * RNG.normal(size=N), name="price")
MODEL = LocalLinearRegressor(bandwidth=[0.3, 1.0], smoothing=0.2).fit(FRAME, Y)


def title(ax):
    return ax.get_legend().get_title().get_text()


@pytest.mark.parametrize("by", ["kind", "doors"])
def test_a_curve_with_its_band_and_its_samples_for_each_level(by):
    display = KernelCurveDisplay.from_estimator(MODEL, feature="size", by=by, band="confidence", prediction=0.9)
    displays = [display, *display.others]
    for one, level in zip(displays, np.unique(FRAME[by]), strict=True):
        rows = FRAME[(FRAME[by] == level) & ((by == "kind") | (FRAME["kind"] == "ash"))]  # with categories of the curve
        assert (one.name, one.x[0], one.x[-1]) == (str(level), rows["size"].min(), rows["size"].max())
        query = pd.DataFrame({"size": one.x, "kind": "ash", "doors": 3.5}).assign(**{by: level})
        assert_allclose(one.prediction, MODEL.predict(query))
        interval = MODEL.confidence_interval(query)
        assert_allclose(ends(one.bands_[0])[1:], (interval.lower, interval.upper))
        assert_array_equal(one.x_train, rows["size"])
        colors = [to_hex(each.get_facecolor()[0]) for each in (one.scatter_, one.bands_[0], one.expected_)]
        assert colors == [one.lines_[-1].get_color()] * 3
    assert len({one.lines_[-1].get_color() for one in displays}) == len(displays)
    ax = display.ax_
    words = entries(ax)
    assert words[: len(displays)] == [one.name for one in displays]
    assert words[len(displays) :][:3] == ["training samples", "90 % prediction interval", "95 % pointwise interval"]
    others = "doors 3.5" if by == "kind" else "kind ash\nonly samples of these categories are drawn"
    assert title(ax) == f"by {by}, other columns at {others}"
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1  # it covers no points
    low, high = ax.get_ylim()
    assert low < min(Y)
    assert high > max(one.y_train.max() for one in displays)


def test_a_level_of_one_row_of_a_stack_and_a_column_of_two():
    some = FRAME[["size", "kind"]].iloc[[*range(0, N, 3), *range(1, N, 3), 2]]
    model = KernelStackingRegressor().fit(some, Y[some.index])
    display = KernelCurveDisplay.from_estimator(model, by="kind", grid_resolution=5)
    assert_allclose(display.prediction, model.predict(pd.DataFrame({"size": display.x, "kind": "ash"})))
    assert np.ptp(display.others[-1].x) == 0.0
    again = display.plot(ax=plt.figure().subplots())
    assert entries(again.ax_) == ["ash", "elm", "oak", "training samples"]
    assert PartialDisplay.from_estimator(model, grid_resolution=5).y_label == display.y_label == "price"


@pytest.mark.parametrize("draw", [KernelCurveDisplay.from_estimator, QuantileFanDisplay.from_estimator])
def test_one_curve_says_where_the_others_are_held_and_draws_samples_of_that_category(draw):
    model, sizes = NadarayaWatsonRegressor().fit(FRAME[["size", "kind"]], Y), FRAME["size"][KIND == "ash"]
    display = draw(model)
    assert title(display.ax_) == "other columns at kind ash\nonly samples of these categories are drawn"
    assert_array_equal(display.x_train, sizes)
    assert (display.x[0], display.x[-1]) == (sizes.min(), sizes.max())
    assert BandwidthPathDisplay.from_estimator(model).lines_[0].get_linestyle() == "None"


def test_levels_that_differ_in_late_digits_have_their_own_names():
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(FRAME[["size"]].assign(code=10001 + np.arange(N) % 2), Y)
    assert entries(KernelCurveDisplay.from_estimator(model, by="code").ax_)[:2] == ["10001", "10002"]
    assert title(KernelCurveDisplay.from_estimator(model, feature=0).ax_) == "other columns at code 10001.5"


def test_no_line_of_the_title_ends_between_a_column_and_its_value():
    X = pd.DataFrame(RNG.uniform(size=(20, 6)), columns=[f"column of number {i}" for i in range(6)])
    note = PartialDisplay.from_estimator(NadarayaWatsonRegressor(bandwidth=0.3).fit(X, X.sum(axis=1)), band=None).note
    assert len(note.splitlines()) > 2
    for line in note.split("\n"):
        assert re.fullmatch(r"(other columns at |)(column of number \d 0\.\d+(, ?|))+", line)


def test_several_displays_on_one_axes_have_their_own_colors_and_entries():
    _, ax = plt.subplots()
    x = FRAME["size"].to_numpy()
    models = [LocalLinearRegressor(bandwidth=h).fit(x[:, None], Y) for h in (0.1, 0.5, 2.0)]
    for model, name in zip(models, ("narrow", "prediction", "prediction"), strict=True):
        KernelCurveDisplay.from_estimator(model, band="confidence", name=name, ax=ax)
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert [line.get_color() for line in lines] == list(drawing.CURVES[:3])
    assert entries(ax)[:3] == ["narrow", "prediction", "prediction 3"]
    assert sorted(entries(ax)[3:]) == ["95 % pointwise interval", "bias-corrected curve", "training samples"]


def test_axes_are_named_by_series():
    x, fit = FRAME["size"], Y.rename("fitted")
    named = KernelCurveDisplay.from_predictions(x, fit, x_train=x, y_train=Y).ax_
    assert (named.get_xlabel(), named.get_ylabel()) == ("size", "price")
    named = KernelCurveDisplay.from_predictions(x, fit, x_label="m2").ax_
    assert (named.get_xlabel(), named.get_ylabel()) == ("m2", "fitted")
    named = CoverageDisplay.from_intervals(x, Y, (Y - 1, Y + 1), level=0.9).ax_
    assert (named.get_xlabel(), named.get_ylabel()) == ("size", "fraction of price inside the interval")


@pytest.mark.parametrize("kind", ["typical", "average"])
def test_a_surface_is_the_predictions_over_two_columns_near_rows(kind):
    frame = FRAME.assign(doors=RNG.uniform(10, 20, N))
    model = LocalLinearRegressor(bandwidth=[0.3, 4.0], smoothing=0.2).fit(frame, Y)
    display = PartialDisplay.from_estimator(
        model, features=["kind", ("size", "doors")], kind=kind, grid_resolution=7, subsample=N
    )
    surface = display.panels[1]
    x, y = np.meshgrid(*(np.linspace(*frame[name].agg(["min", "max"]), 7) for name in ("size", "doors")))
    others = frame["kind"] if kind == "average" else ["ash"]
    for i, j in np.ndindex(7, 7):
        away = np.hypot((frame["size"] - x[i, j]) / np.ptp(x), (frame["doors"] - y[i, j]) / np.ptp(y)).min()
        query = pd.DataFrame({"size": x[i, j], "kind": others, "doors": y[i, j]})
        expected = model.predict(query).mean() if away <= 0.1 else np.nan
        assert_allclose(surface.prediction[i, j], expected)
    assert np.isnan(surface.prediction).any()
    (image,) = display.surfaces_
    assert_array_equal(image.get_array().filled(np.nan).ravel(), surface.prediction.ravel())
    ax = display.axes_[1]
    assert (ax.get_xlabel(), ax.get_ylabel(), image.colorbar.ax.get_ylabel()) == ("size", "doors", "price")
    assert display.axes_[0].get_ylabel() == "price"


def test_ticks_are_of_all_rows():
    x = np.r_[np.arange(3000.0), 1e6]
    model = NadarayaWatsonRegressor(bandwidth=500.0).fit(x[:, None], x)
    (panel,) = PartialDisplay.from_estimator(model, band=None, grid_resolution=5).panels
    assert np.abs(panel.rows[:, None] - x).min(axis=0).max() <= 1e6 / 2000
