"""Pictures: what is drawn, not how it looks; looking at them is done by eye."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra 'plot'")

from kernpool import (
    AttentionDisplay,
    BandwidthPathDisplay,
    KernelCurveDisplay,
    KernelDisplay,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    PartialDisplay,
    get_kernel,
)
from kernpool.datasets import make_sine_power
from tests.support.pictures import entries, pixels_of


@pytest.fixture
def sample():
    return make_sine_power(random_state=0)


@pytest.fixture
def model(sample):
    return NadarayaWatsonRegressor(bandwidth=0.3).fit(sample.x_train[:, None], sample.y_train)


def truth(x):
    return 2 * np.sin(x) + x**0.8


def test_the_fitted_curve(sample, model):
    _, ax = plt.subplots()
    display = KernelCurveDisplay.from_estimator(model, sample.x_train[:, None], sample.y_train, truth=truth, ax=ax)
    assert display.ax_ is ax
    true_line, curve = display.lines_
    assert_allclose(true_line.get_ydata(), truth(true_line.get_xdata()))
    assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    assert_allclose(display.scatter_.get_offsets(), np.c_[sample.x_train, sample.y_train])
    assert 0 < display.scatter_.get_alpha() < 1
    legend = entries(display.ax_)
    assert legend == ["training samples", "truth", "prediction"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x", "y")
    for artist in (true_line, curve, display.scatter_):
        assert pixels_of(display.figure_, artist) > 500


def test_predictions_in_any_order(sample):
    order = np.random.default_rng(0).permutation(50)
    display = KernelCurveDisplay.from_predictions(
        sample.x_test[order], sample.y_truth[order], x_train=sample.x_train, y_train=sample.y_train,
        truth=sample.y_truth[order], name="mine", curve_kwargs={"color": "black"},
    )  # fmt: skip
    assert_array_equal(display.lines_[1].get_xdata(), sample.x_test)
    assert_array_equal(display.lines_[1].get_ydata(), sample.y_truth)
    assert display.lines_[1].get_color() == "black"


def test_the_grid_is_fine_enough_for_the_bandwidth(generator):
    x = np.sort(generator.uniform(0, 100, 500))
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(x[:, None], np.sin(x))
    grid = KernelCurveDisplay.from_estimator(model, x[:, None], np.sin(x)).x
    assert np.diff(grid).max() < 0.5 / 7


def test_one_of_several_columns(generator):
    X = generator.normal(size=(3000, 2))
    y = X[:, 0] + X[:, 1] ** 2
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    display = KernelCurveDisplay.from_estimator(model, X, y, feature=1)
    query = np.c_[np.full(display.x.size, np.median(X[:, 0])), display.x]
    assert_allclose(display.prediction, model.predict(query))
    assert display.ax_.get_xlabel() == "column 1"
    assert len(display.scatter_.get_offsets()) == 1000


def test_data_frames_keep_their_names(generator):
    import pandas

    X = pandas.DataFrame({"size": generator.normal(size=60), "age": generator.normal(size=60)})
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, X["size"])
    display = KernelCurveDisplay.from_estimator(model, X, X["size"], feature="age", target="price")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "price")
    numbered = X.set_axis([0, 1], axis=1)
    model.fit(numbered, X["size"])
    assert KernelCurveDisplay.from_estimator(model, numbered, X["size"], feature=1).ax_.get_xlabel() == "column 1"


def test_kernels_side_by_side():
    display = KernelDisplay.from_kernels()
    assert [ax.get_title() for ax in display.axes_] == ["gaussian", "boxcar", "constant", "epanechnikov"]
    taught = np.arange(-25, 25) / 10
    for line, name in zip(display.lines_, ["gaussian", "boxcar", "constant", "epanechnikov"], strict=True):
        x, y = line.get_data()
        assert set(taught) <= set(x)
        assert_array_equal(y, get_kernel(name).profile(np.abs(x)))
    assert len({ax.get_ylim() for ax in display.axes_}) == 1
    low_first = KernelDisplay.from_kernels(["logistic", "biweight"])  # the first panel must not cut the others
    assert low_first.axes_[1].get_ylim()[1] > 15 / 16
    assert KernelDisplay.from_kernels(["tophat"], names=["box"]).axes_[0].get_title() == "box"
    assert len(KernelDisplay.from_kernels("gaussian").lines_) == 1


def test_weights_of_an_estimator_are_sorted(sample, model, generator):
    weights = model.attention_weights(sample.x_test[:, None])
    order = generator.permutation(50)
    for display in (
        AttentionDisplay.from_weights(weights),
        AttentionDisplay.from_estimator(model, sample.x_test[order, None]),
    ):
        assert_allclose(display.images_[0].get_array(), weights)
    unsorted = AttentionDisplay.from_estimator(model, sample.x_test[order, None], sort=False)
    assert_allclose(unsorted.images_[0].get_array(), weights[order])
    lightness = [sum(display.images_[0].cmap(share)[:3]) for share in np.linspace(0, 1, 30)]
    assert np.all(np.diff(lightness) < 0)  # more weight is more ink, in black and white too


def test_axes_of_weights_say_by_which_column_they_are_sorted(generator):
    X = pd.DataFrame({"sex": ["f", "m"] * 20, "age": generator.uniform(20, 60, 40)})
    model = LocalLinearRegressor(bandwidth=6.0, smoothing=0.3).fit(X, np.sin(X["age"] / 5))
    display = AttentionDisplay.from_estimator(model, X)
    order = np.argsort(X["age"].to_numpy(), kind="stable")
    assert_array_equal(display.images_[0].get_array(), model.attention_weights(X)[np.ix_(order, order)])
    panel = display.axes_[0, 0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("training rows, sorted by age", "queries, sorted by age")


STRANGE = "\u20dd"  # which STIXGeneral has, and DejaVu Sans has not


def test_labels_take_an_installed_font_for_what_theirs_lacks(monkeypatch):
    """Labels of axes, legend and ticks; drawing would warn of each glyph that is missing, and warnings are errors."""
    monkeypatch.setattr("kernpool.displays.drawing.CHINESE_FONTS", ("No Such Font", "STIXGeneral"))
    X = pd.DataFrame({"a" + STRANGE: [0.0, 1.0, 2.0, 3.0] * 3, "b": ["x" + STRANGE, "y"] * 6})
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.2).fit(X, np.arange(12.0))
    display = PartialDisplay.from_estimator(model, target="plain")
    first, second = display.axes_
    for text in (first.xaxis.label, *second.get_xticklabels()):
        assert text.get_fontfamily()[-1] == "STIXGeneral"
    assert "STIXGeneral" not in first.yaxis.label.get_fontfamily()  # which has all that it needs
    second.set_xticks(range(4), [STRANGE] * 4)
    display.figure_.draw_without_rendering()


def test_without_a_font_one_warning_names_the_remedy(monkeypatch):
    monkeypatch.setattr("kernpool.displays.drawing.CHINESE_FONTS", ())
    x = pd.Series([0.0, 1.0, 2.0], name="学习时间")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        display = KernelCurveDisplay.from_predictions(x, x, x_label=x.name, y_label="成绩")
        display.figure_.draw_without_rendering()
    (warning,) = caught
    assert "'习学成时绩间'" in str(warning.message)
    assert "Noto Sans CJK" in str(warning.message)
    assert warning.filename == __file__


def test_the_path_of_a_search(sample):
    model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    display = BandwidthPathDisplay.from_estimator(model)
    bandwidths, errors = display.lines_[0].get_data()
    assert_array_equal(display.best, model.bandwidth_)
    assert np.all(np.diff(bandwidths) >= 0)
    assert_allclose(errors.min(), model.loo_error_, rtol=1e-12)
    assert_allclose(errors[bandwidths == display.best[0]], errors.min(), rtol=1e-12)
    assert display.ax_.get_xscale() == "log"
    X = np.c_[sample.x_train, sample.x_train[::-1] ** 2]
    several = BandwidthPathDisplay.from_estimator(NadarayaWatsonRegressor(bandwidth="aicc").fit(X, sample.y_train))
    assert several.ax_.get_ylabel() == "AICc"
    assert len(several.lines_) == 2
    robust = BandwidthPathDisplay.from_estimator(NadarayaWatsonRegressor(robust=True).fit(X, sample.y_train))
    assert robust.ax_.get_ylabel() == "leave-one-out error, bounded"
    assert [text.get_text()[:8] for text in several.ax_.get_legend().get_texts()] == ["column 0", "column 1"]


def test_heads_are_on_one_scale():
    heads = np.random.default_rng(0).dirichlet(np.ones(8), size=(2, 3, 5))
    several = AttentionDisplay.from_weights(heads, title=["a", "b", "c"])  # on one scale
    assert several.axes_.shape == (2, 3)
    assert {image.get_clim() for image in several.images_} == {(0.0, heads.max())}
    assert [ax.get_title() for ax in several.axes_[0]] == ["a", "b", "c"]
    each = AttentionDisplay.from_weights(heads, title=[["a", "b", "c"], ["d", "e", "f"]])
    assert [ax.get_title() for ax in each.axes_.flat] == list("abcdef")


def test_weights_straight_from_a_layer():
    torch = pytest.importorskip("torch", reason="tensors need the extra 'torch'")
    weights = torch.full((2, 2), 0.5, requires_grad=True)
    for tensor in (weights, weights.to(torch.bfloat16), [[weights, weights]]):
        AttentionDisplay.from_weights(tensor)


def test_weights_of_local_linear_fits_are_drawn_with_their_signs(generator):
    X = np.sort(generator.uniform(size=(25, 1)), axis=0)
    model = LocalLinearRegressor(bandwidth=0.2).fit(X, X[:, 0])
    weights = model.attention_weights(X)
    assert weights.min() < 0
    display = AttentionDisplay.from_estimator(model, X)
    (image,) = display.images_
    assert_array_equal(image.get_array(), weights)
    assert image.get_cmap().name == "RdBu_r"
    assert image.get_clim() == (weights.min(), weights.max())  # small negative ones are seen, too
    assert [image.norm(one) for one in (weights.min(), 0.0, weights.max())] == [0.0, 0.5, 1.0]
    assert display.colorbar_.ax.get_yticklabels()[0].get_text() == f"−{-weights.min():.2g}"


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_curves_of_the_rows_that_a_model_holds(library, generator):
    X, y = generator.uniform(size=(30, 2)), generator.uniform(size=30)
    if library is not None:
        frames = pytest.importorskip(library, reason="frames have names")
        X = frames.DataFrame({"rain": X[:, 0], "sun": X[:, 1]})
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, y)
    one, other = (KernelCurveDisplay.from_estimator(model, *rows, feature=1) for rows in ((), (X, y)))
    for name in ("x", "prediction", "x_train", "y_train"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.x_label == other.x_label == ("sun" if library else "column 1")
