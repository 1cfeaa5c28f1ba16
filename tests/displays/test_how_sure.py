"""Pictures of how sure a fit is: what is drawn are the numbers of the model."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from matplotlib.colors import to_rgba

from kernpool import (
    CurveComparisonDisplay,
    KernelCurveDisplay,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    ResidualDisplay,
    SiZerDisplay,
    compare_curves,
    open_chunks,
    slope_map,
)
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
        np.testing.assert_array_equal(x, display.x)
        np.testing.assert_array_equal(lower, expected.lower.ravel())
        np.testing.assert_array_equal(upper, expected.upper.ravel())
        np.testing.assert_array_equal(display.center_line_.get_ydata(), expected.center.ravel())
    (curve,) = display.lines_
    prediction = model.get_prediction(at)
    np.testing.assert_array_equal(curve.get_ydata(), prediction.mean if of == "fit" else prediction.slope[:, 0])
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
    np.testing.assert_array_equal(ends(display.bands_[0])[1], expected.lower)
    assert entries(display.ax_) == ["training samples", f"95 % {POINTWISE}", "prediction"]


def test_without_a_band_nothing_is_shaded(rows, model):
    display = KernelCurveDisplay.from_estimator(model, *rows)
    assert (display.bands_, display.center_line_) == ([], None)


def test_given_intervals_are_drawn_in_the_order_of_the_places(rows, model):
    at = np.random.default_rng(1).permutation(np.linspace(0.5, 4.5, 40))
    intervals = [model.confidence_interval(at[:, None], simultaneous=kind) for kind in (False, True)]
    display = KernelCurveDisplay.from_predictions(at, model.predict(at[:, None]), bands=intervals)
    order = np.argsort(at)
    for shade, interval in zip(display.bands_, intervals[::-1], strict=True):  # the wider one lies below
        x, lower, upper = ends(shade)
        np.testing.assert_array_equal(x, at[order])
        np.testing.assert_array_equal(lower, interval.lower[order])
        np.testing.assert_array_equal(upper, interval.upper[order])
    np.testing.assert_array_equal(display.bands[0].df, intervals[1].df[order])
    both = LocalLinearRegressor(bandwidth=0.4).fit(rows[0], np.c_[rows[1], rows[1]]).confidence_interval(at[:, None])
    for wrong in (both, model.confidence_interval(at[:-1, None])):
        with pytest.raises(ValueError, match="bands must hold intervals for the 40 points of the curve"):
            KernelCurveDisplay.from_predictions(at, at, bands=[wrong])


def test_one_of_two_columns_has_intervals_at_each_place(rows):
    X = np.c_[rows[0], np.cos(np.arange(80))]
    model = NadarayaWatsonRegressor(bandwidth=[0.5, 0.8]).fit(X, rows[1])
    for of in ("fit", "derivative"):
        display = KernelCurveDisplay.from_estimator(model, X, rows[1], feature=1, quantity=of, band="confidence")
        at = np.c_[np.full(display.x.size, np.median(X[:, 0])), display.x]
        expected = model.confidence_interval(at, quantity=of)
        lower = expected.lower if of == "fit" else expected.lower[:, 1]
        np.testing.assert_array_equal(ends(display.bands_[0])[1], lower)
    both = KernelCurveDisplay.from_estimator(model, X, rows[1], feature=1, band="simultaneous")
    wide = model.confidence_interval(np.c_[np.full(both.x.size, np.median(X[:, 0])), both.x], simultaneous=True)
    np.testing.assert_array_equal(ends(both.bands_[0])[1], wide.lower)


@pytest.mark.filterwarnings("ignore:.*determine no slope in some direction")
@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")  # two thin windows
def test_empty_windows_leave_gaps_in_the_shade():
    x = np.r_[np.linspace(0, 1, 40), np.linspace(3, 4, 40)]
    y = np.cos(5 * x) + 0.1 * np.sin(99 * np.arange(80))
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=0.3, empty="nan").fit(x[:, None], y)
    display = KernelCurveDisplay.from_estimator(model, x[:, None], y, band="confidence")
    assert len(display.bands_[0].get_paths()) == 2
    places = ends(display.bands_[0])[0]
    assert not np.any((places > 1.31) & (places < 2.69))


def test_shades_that_run_away_leave_the_curve_its_room(rows, model):
    at = np.linspace(0, 5, 50)
    interval = model.confidence_interval(at[:, None])
    interval.upper[-3:] += 1e4
    display = KernelCurveDisplay.from_predictions(at, model.predict(at[:, None]), bands=[interval])
    low, high = display.ax_.get_ylim()
    assert high < 10
    assert low < display.prediction.min()
    assert ends(display.bands_[0])[2].max() > 1e4  # cut by the picture, not by the numbers


STYLES = [
    ("curve_kwargs", lambda display: display.lines_[-1].get_color()),
    ("scatter_kwargs", lambda display: display.scatter_.get_facecolor()[0]),
    ("truth_kwargs", lambda display: display.lines_[0].get_color()),
    ("band_kwargs", lambda display: display.bands_[1].get_facecolor()[0]),
    ("center_kwargs", lambda display: display.center_line_.get_color()),
]


@pytest.mark.parametrize(("name", "color"), STYLES, ids=[name for name, _ in STYLES])
def test_every_style_of_a_curve(rows, model, name, color):
    style = {name: {"color": "green", "alpha": 1.0, "label": "mine"}}
    display = KernelCurveDisplay.from_estimator(model, *rows, band="simultaneous", truth=np.sin, **style)
    assert to_rgba(color(display)) == to_rgba("green")
    assert "mine" in entries(display.ax_)
    if name == "curve_kwargs":  # which the shades follow
        assert tuple(display.bands_[0].get_facecolor()[0][:3]) == to_rgba("green")[:3]
        assert to_rgba(display.center_line_.get_color()) == to_rgba("green")


def test_what_has_no_band(rows, model):
    X, y = rows
    for options, message in (
        ({"band": "prediction"}, "band must be one of 'confidence', 'simultaneous', None, got 'prediction'"),
        ({"band": "confidence", "level": 95}, "95 percent is level"),
        ({"band": "confidence", "method": "none"}, "method must be one of"),
        ({"quantity": "slope"}, "quantity must be 'fit' or 'derivative', got 'slope'"),
    ):
        with pytest.raises(ValueError, match=message):
            KernelCurveDisplay.from_estimator(model, X, y, **options)
    classifier = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, y > 2)
    with pytest.raises(TypeError, match=r"NadarayaWatsonClassifier has no confidence_interval.*use band=None"):
        KernelCurveDisplay.from_estimator(classifier, X, y, band="confidence")
    chunked = LocalLinearRegressor(bandwidth=0.4).fit(open_chunks([(X, y)]))
    with pytest.raises(
        TypeError, match="was fitted to rows that are not in memory, and simultaneous bands need the rows themselves"
    ):
        KernelCurveDisplay.from_estimator(chunked, X, y, band="simultaneous")
    for display in (ResidualDisplay, SiZerDisplay):
        with pytest.raises(TypeError, match="was fitted to rows that are not in memory"):
            display.from_estimator(chunked)
        with pytest.raises(TypeError, match=r"NadarayaWatsonClassifier( has no|$)"):
            display.from_estimator(classifier)


@pytest.mark.parametrize("against", [None, 0])
def test_residuals(rows, model, against):
    display = ResidualDisplay.from_estimator(model, against=against, target="yield")
    found = model.residuals()
    at = found.fitted if against is None else rows[0][:, 0]
    np.testing.assert_array_equal(display.scatter_.get_offsets(), np.c_[at, found.residual])
    first = np.argsort(-found.leverage)[:5]
    assert sorted(zip(*display.marked_.get_data(), strict=True)) == sorted(
        zip(at[first], found.residual[first], strict=True)
    )
    assert {text.get_text() for text in display.ax_.texts} == {str(row) for row in first}
    x, lower, upper = ends(display.noise_)
    np.testing.assert_array_equal(lower, -upper)
    if against == 0:
        np.testing.assert_array_equal(x, rows[0][:, 0])
        np.testing.assert_array_equal(upper, 2 * found.noise)
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
    np.testing.assert_array_equal(display.residual, found.residual[10:, 1])
    np.testing.assert_array_equal(display.at, X["age"][10:])
    assert display.row[0] == 10  # numbers are those of all rows
    assert len(display.scatter_.get_offsets()) == 30
    assert len(display.marked_.get_xdata()) == 2
    assert display.ax_.get_xlabel() == "age"
    assert display.plot(marked=0).marked_ is None
    styled = display.plot(scatter_kwargs={"color": "green"}, noise_kwargs={"color": "green"})
    for artist in (styled.scatter_, styled.noise_):
        assert tuple(artist.get_facecolor()[0][:3]) == to_rgba("green")[:3]
    for options, message in (
        ({}, "one output can be drawn at a time, and there are 2; output= says which one"),
        ({"output": 2}, r"output must lie in \[0, 1\], got 2"),
        ({"output": 0, "against": "weight"}, "against 'weight' is not a column of X"),
        ({"output": 0, "against": 2}, r"against must lie in \[0, 1\], got 2"),
        ({"output": 0, "marked": -1}, "marked must not be negative"),
    ):
        with pytest.raises(ValueError, match=message):
            ResidualDisplay.from_estimator(model, **options)


def test_residuals_of_a_fit_that_does_not_vary(rows):
    model = NadarayaWatsonRegressor(kernel="constant").fit(*rows)
    display = ResidualDisplay.from_estimator(model)
    np.testing.assert_allclose(display.noise, model.residuals().noise[0])


def test_the_map_of_slopes(rows, model):
    display = SiZerDisplay.from_estimator(model, bandwidths=[0.8, 0.05, 0.4], level=0.9)
    found = slope_map(model, bandwidths=[0.8, 0.05, 0.4], level=0.9)
    cells = np.where(found.enough, found.sign + 1, 3)
    np.testing.assert_array_equal(display.mesh_.get_array(), cells[[1, 2, 0]])  # narrow ones at the bottom
    corners = display.mesh_.get_coordinates()
    assert np.all(np.diff(corners[0, :, 0]) > 0)
    assert np.all(np.diff(corners[:, 0, 1]) > 0)
    height = corners[:, 0, 1]
    assert height[0] < 0.05 < height[1] < 0.4 < height[2] < 0.8 < height[3]
    assert display.ax_.get_yscale() == "log"
    assert list(display.line_.get_ydata()) == [0.4, 0.4]
    assert entries(display.ax_) == [
        "rises", "falls", "no significant slope", "too few rows", "bandwidth of the model",
    ]  # fmt: skip
    title = display.ax_.get_legend().get_title().get_text()
    assert title == "the curve, by 90 % intervals of its slope, simultaneous along each bandwidth"
    colors = ["red", "white", "green", "black"]
    styled = display.plot(colors=colors, labels=tuple("abcd"), line_kwargs={"color": "orange"})
    assert [to_rgba(color) for color in styled.mesh_.get_cmap().colors] == [to_rgba(color) for color in colors]
    assert entries(styled.ax_)[:4] == ["c", "a", "b", "d"]
    assert styled.line_.get_color() == "orange"


def test_a_map_of_one_bandwidth_and_few_places(rows, model):
    one = SiZerDisplay.from_estimator(model, [[1.0], [3.0]], bandwidths=0.3, simultaneous=False)
    assert one.mesh_.get_array().shape == (1, 2)
    assert "pointwise" in one.ax_.get_legend().get_title().get_text()
    assert SiZerDisplay.from_estimator(model, [[1.0]], bandwidths=[0.3]).mesh_.get_array().shape == (1, 1)
    assert one.line_ is not None
    assert SiZerDisplay.from_estimator(model, [[1.0]], bandwidths=[3.0]).line_ is None
    for options, message in (
        ({"level": 95}, "95 percent is level"),
        ({"bandwidths": [0.0]}, "bandwidths must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            SiZerDisplay.from_estimator(model, **options)
    two = LocalLinearRegressor(bandwidth=0.4).fit(np.c_[rows[0], rows[0] ** 2], rows[1])
    with pytest.raises(ValueError, match="for one column, and this model has 2"):
        SiZerDisplay.from_estimator(two)


@pytest.fixture
def groups():
    random = np.random.default_rng(0)
    x, groups = random.uniform(size=90), np.array(["a", "b", "c"])[np.arange(90) % 3]
    return x, np.sin(6 * x) + x * (groups == "b") + 0.3 * random.normal(size=90), groups


def test_curves_of_two_groups(groups):
    x, y, label = (of[groups[2] != "c"] for of in groups)
    result = compare_curves(x, y, label, n_resamples=99)
    display = CurveComparisonDisplay.from_result(result, x, y, label, level=0.9, feature="age", target="yield")
    for line, scatter, name in zip(display.lines_, display.scatter_, "ab", strict=True):
        own = label == name
        model = LocalLinearRegressor(bandwidth=result.bandwidth).fit(x[own, None], y[own])
        at, curve = line.get_data()
        inside = (at >= x[own].min()) & (at <= x[own].max())
        np.testing.assert_allclose(curve[inside], model.predict(at[inside, None]), rtol=1e-10, atol=1e-12)
        assert np.isnan(curve[~inside]).all()
        np.testing.assert_array_equal(scatter.get_offsets(), np.c_[x[own], y[own]])
        assert line.get_label() == name
    lower, upper = display.curves.reference_band(0.9)
    np.testing.assert_allclose(lower[0], lower[1], rtol=1e-12)
    lower, upper = lower[0], upper[0]
    known = np.isfinite(lower)
    (band,) = display.bands_
    at, low, high = ends(band)
    np.testing.assert_array_equal(at, display.curves.x[known])
    np.testing.assert_array_equal((low, high), (lower[known], upper[known]))
    assert entries(display.ax_) == ["where equal curves would be, 90 % pointwise", "a", "b"]
    assert display.ax_.get_title() == f"the curves of all groups are equal: p = {result.p_value:.2g}"
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "yield")
    assert len({line.get_linestyle() for line in display.lines_}) == 2  # to be told apart without colors
    styles = {"band_kwargs": {"color": "green"}, "scatter_kwargs": {"color": "green"}}
    styled = display.plot(names=["first", "second"], subsample=8, curve_kwargs={"color": "green"}, **styles)
    assert [line.get_color() for line in styled.lines_] == ["green", "green"]
    assert tuple(styled.bands_[0].get_facecolor()[0][:3]) == to_rgba("green")[:3]
    assert sum(len(scatter.get_offsets()) for scatter in styled.scatter_) == 8
    assert entries(styled.ax_)[1:] == ["first", "second"]
    with pytest.raises(ValueError, match="names must be one per group, got 1 for 2"):
        display.plot(names=["one"])


@pytest.mark.parametrize("null", ["equal", "parallel"])
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_more_groups_and_parallel_curves_have_bands_of_their_own(groups, names, null):
    x, y, label = (of[np.isin(groups[2], list(names))] for of in groups)
    y = y + 3.0 * (label == "b")
    result = compare_curves(x, y, label, null=null, n_resamples=9)
    display = CurveComparisonDisplay.from_result(result, x, y, label)
    lower, upper = display.curves.reference_band(0.95)
    one = (names, null) == ("ab", "equal")
    assert len(display.bands_) == (1 if one else len(names))
    for k, band in enumerate(display.bands_):
        known = np.isfinite(lower[k])
        at, low, high = ends(band)
        np.testing.assert_array_equal(at, display.curves.x[known])
        np.testing.assert_array_equal((low, high), (lower[k][known], upper[k][known]))
        if not one:
            assert to_rgba(band.get_facecolor()[0])[:3] == to_rgba(display.lines_[k].get_color())[:3]
    assert entries(display.ax_) == [f"where {null} curves would be, 95 % pointwise", *names]
    assert display.ax_.get_title().startswith(f"the curves of all groups are {null}: p = ")
    if null == "parallel":  # the bands are as far from each other as the groups
        apart = (upper + lower)[1] - (upper + lower)[0]
        np.testing.assert_allclose(apart[np.isfinite(apart)] / 2, display.curves.offset[1], rtol=1e-9)
        assert display.curves.offset[1] == pytest.approx(3.5, abs=0.3)  # and half the slope of b


def test_comparisons_that_are_none(groups):
    x, y, label = groups
    result = compare_curves(x, y, label, n_resamples=9)
    with pytest.raises(TypeError, match=r"result must be what compare_curves returns, got 0\.05"):
        CurveComparisonDisplay.from_result(0.05, x, y, label)
    two = label != "c"
    with pytest.raises(ValueError, match="95 percent is level"):
        CurveComparisonDisplay.from_result(result, x[two], y[two], label[two], level=95)
    surfaces = compare_curves(np.c_[x, y[::-1]], y, label, n_resamples=9)
    with pytest.raises(ValueError, match="the test compared surfaces over 2"):
        CurveComparisonDisplay.from_result(surfaces, np.c_[x, y[::-1]], y, label)


def test_a_map_of_a_model_of_infinite_bandwidth_looks_at_finite_ones():
    """The bandwidths of the map are those of the rows alone, and its signs those of any other model of these rows."""
    random = np.random.default_rng(4)
    x = random.uniform(size=(70, 1))
    y = np.cos(5 * x[:, 0]) + 0.1 * random.normal(size=70)
    found = slope_map(LocalLinearRegressor(bandwidth=np.inf).fit(x, y))
    expected = slope_map(LocalLinearRegressor(bandwidth=0.2).fit(x, y), bandwidths=found.bandwidth)
    assert found.bandwidth[-1] == pytest.approx(np.ptp(x))
    np.testing.assert_array_equal(found.sign, expected.sign)
    np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-9)
    assert (found.sign != 0).any()
