"""Pictures: what is drawn, not how it looks; looking at them is done by eye."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from kernpool import KernelCurveDisplay, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def sample():
    return make_sine_power(random_state=0)


@pytest.fixture
def model(sample):
    return NadarayaWatsonRegressor(bandwidth=0.3).fit(sample.x_train[:, None], sample.y_train)


def truth(x):
    return 2 * np.sin(x) + x**0.8


def test_the_fitted_curve(sample, model, tmp_path):
    display = KernelCurveDisplay.from_estimator(model, sample.x_train[:, None], sample.y_train, truth=truth)
    true_line, curve = display.lines_
    np.testing.assert_allclose(true_line.get_ydata(), truth(true_line.get_xdata()))
    np.testing.assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    np.testing.assert_allclose(display.scatter_.get_offsets(), np.c_[sample.x_train, sample.y_train])
    assert 0 < display.scatter_.get_alpha() < 1
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["training samples", "truth", "prediction"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x", "y")
    display.figure_.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_predictions_in_any_order(sample):
    order = np.random.default_rng(0).permutation(50)
    display = KernelCurveDisplay.from_predictions(
        sample.x_test[order], sample.y_truth[order], x_train=sample.x_train, y_train=sample.y_train,
        truth=sample.y_truth[order], name="mine", curve_kwargs={"color": "black"},
    )  # fmt: skip
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), sample.x_test)
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), sample.y_truth)
    assert display.lines_[1].get_color() == "black"
    with pytest.raises(ValueError, match="one prediction per input"):
        KernelCurveDisplay.from_predictions([1.0, 2.0], [1.0])


def test_the_given_axes_are_used(sample, model):
    _, ax = plt.subplots()
    display = KernelCurveDisplay.from_estimator(model, sample.x_train[:, None], sample.y_train, ax=ax)
    assert display.ax_ is ax
    assert len(display.lines_) == 1


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
    np.testing.assert_allclose(display.prediction, model.predict(query))
    assert display.ax_.get_xlabel() == "column 1"
    assert len(display.scatter_.get_offsets()) == 1000
    for feature, message in [(None, "feature= must say"), (2, r"feature must lie in \[0, 1\]"), ("a", "not a column")]:
        with pytest.raises(ValueError, match=message):
            KernelCurveDisplay.from_estimator(model, X, y, feature=feature)
    with pytest.raises(ValueError, match=r"a single column is x\[:, None\]"):
        KernelCurveDisplay.from_estimator(model, X[:, 0], y)


def test_data_frames_keep_their_names(generator):
    import pandas

    X = pandas.DataFrame({"size": generator.normal(size=60), "age": generator.normal(size=60)})
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, X["size"])
    display = KernelCurveDisplay.from_estimator(model, X, X["size"], feature="age", target="price")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "price")


def test_several_outputs_are_refused(generator):
    X, y = generator.normal(size=(20, 1)), generator.normal(size=(20, 2))
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    with pytest.raises(ValueError, match="one output can be drawn at a time"):
        KernelCurveDisplay.from_estimator(model, X, y)
