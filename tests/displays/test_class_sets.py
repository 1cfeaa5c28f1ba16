"""Regions of sets of classes: what is drawn are the sets of the model."""

import numpy as np
import pandas
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from matplotlib.colors import to_rgb

from kernpool import ClassSetDisplay, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.displays.class_sets import EMPTY
from tests.support.pictures import entries, pixels_of


@pytest.fixture
def rows():
    """Three clouds that overlap."""
    random = np.random.default_rng(0)
    label = np.array(["ash", "elm", "oak"])[np.arange(150) % 3]
    center = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])[np.arange(150) % 3]
    return center + 0.7 * random.normal(size=(150, 2)), label


@pytest.mark.parametrize("method", ["lac", "full"])
def test_regions_are_the_sets_of_the_model(rows, method):
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(*rows)
    display = ClassSetDisplay.from_estimator(model, *rows, method=method, level=0.8, grid_resolution=30)
    x, y = np.meshgrid(display.x, display.y)
    expected = model.predict_set(np.c_[x.ravel(), y.ravel()], 0.8, method=method).labels
    names = [display.regions_[number] for number in display.mesh_.get_array().ravel()]
    for name, labels in zip(names, expected, strict=True):
        assert sorted(name.replace(" or ", ", ").split(", ")) == (labels or [EMPTY])
    assert entries(display.ax_) == display.regions_
    assert {"ash", "elm", "oak"} <= set(display.regions_)
    assert display.ax_.get_legend().get_title().get_text() == "80 % sets of classes"
    low, high = rows[0].min(axis=0), rows[0].max(axis=0)
    assert np.all([display.x[0], display.y[0]] < low)  # the outermost rows are seen whole
    assert np.all([display.x[-1], display.y[-1]] > high)
    for scatter, label in zip(display.scatter_, model.classes_, strict=True):
        np.testing.assert_array_equal(scatter.get_offsets(), rows[0][rows[1] == label])
    markers = {tuple(map(tuple, scatter.get_paths()[0].vertices)) for scatter in display.scatter_}
    assert len(markers) == 3  # to be told apart without colors
    for artist in (display.mesh_, *display.scatter_):
        assert pixels_of(display.figure_, artist) > 200


def test_two_of_three_columns(rows):
    frame = pandas.DataFrame({"a": rows[0][:, 0], "b": np.cos(np.arange(150.0)), "c": rows[0][:, 1]})
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(frame, rows[1])
    display = ClassSetDisplay.from_estimator(
        model, frame, rows[1], features=["c", "a"], grid_resolution=12, subsample=50, set_kwargs={"by_class": True}
    )
    x, y = np.meshgrid(display.x, display.y)
    places = pandas.DataFrame({"a": y.ravel(), "b": frame["b"].median(), "c": x.ravel()})
    expected = model.predict_set(places, 0.9, by_class=True).member
    np.testing.assert_array_equal(display.member.reshape(144, 3), expected)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("c", "a")
    assert display.ax_.get_legend().get_title().get_text().endswith("other columns at their medians")
    assert sum(len(scatter.get_offsets()) for scatter in display.scatter_) == 50
    for features, message in (
        (None, "X has 3 columns, so features= must say which two to draw over"),
        (["a"], "features must be two columns"),
        ("ab", "features must be two columns"),
        (["a", "a"], "features must be two different columns"),
        (["a", "d"], "features 'd' is not a column of X"),
    ):
        with pytest.raises(ValueError, match=message):
            ClassSetDisplay.from_estimator(model, frame, rows[1], features=features)


def test_every_kind_of_region_has_its_color_and_hatch():
    member = np.zeros((4, 2, 2), dtype=bool)
    member[1, :, 0], member[2, :, 1], member[3] = True, True, True
    display = ClassSetDisplay.from_sets([0.0, 1.0], [0.0, 1.0, 2.0, 3.0], member, ["no", "yes"], note="mine")
    assert display.regions_ == [EMPTY, "no", "yes", "no or yes"]
    np.testing.assert_array_equal(display.mesh_.get_array(), np.repeat([[0], [1], [2], [3]], 2, axis=1))
    fills = [to_rgb(color) for color in display.mesh_.get_cmap().colors]
    assert len(set(fills)) == 4
    assert fills[0] == (1.0, 1.0, 1.0)
    handles = display.ax_.get_legend().legend_handles
    assert len(handles) == 4
    assert display.scatter_ == []
    styled = display.plot(colors=["green", "orange"])
    red, green, blue = styled.mesh_.get_cmap().colors[1]
    assert green > red == blue


def test_many_sets_go_by_their_size():
    member = np.array([[[bool(i >> c & 1) for c in range(4)] for i in range(16)]] * 2)
    display = ClassSetDisplay.from_sets(np.arange(16.0), [0.0, 1.0], member, list("abcd"))
    assert display.regions_ == [EMPTY, "a", "b", "c", "d", "2 classes", "3 classes", "4 classes"]
    names = [display.regions_[number] for number in display.mesh_.get_array()[0]]
    for i, name in enumerate(names):
        of = [label for c, label in enumerate("abcd") if i >> c & 1]
        assert name == (EMPTY if not of else of[0] if len(of) == 1 else f"{len(of)} classes")


def test_what_has_no_regions(rows):
    X, y = rows
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, y)
    regressor = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="NadarayaWatsonRegressor has no predict_set; use NadarayaWatsonClassifier"):
        ClassSetDisplay.from_estimator(regressor, X, y)
    for options, message in (
        ({"level": 90}, "90 percent is"),
        ({"method": "best"}, "method must be one of"),
        ({"method": "aps"}, "method='aps' draws at random at each point"),
        ({"method": "raps"}, "use method='lac' or 'full'"),
        ({"grid_resolution": 1}, "grid_resolution must be at least 2, got 1"),
        ({"colors": ["red"], "grid_resolution": 4}, "3 classes need as many colors, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ClassSetDisplay.from_estimator(model, X, y, **options)
    with pytest.raises(ValueError, match="one label per row is needed"):
        ClassSetDisplay.from_estimator(model, X, y[:-1])
    member = np.ones((2, 2, 1), dtype=bool)
    for arguments, options, message in (
        (
            ([0.0, 1.0], [0.0, 1.0], member.astype(int), ["a"]),
            {},
            "True or False for 2 x 2 grid points and 1 classes, got dtype",
        ),
        (([0.0, 1.0], [0.0, 1.0], member, ["a", "b"]), {}, r"got dtype bool and shape \(2, 2, 1\)"),
        (([1.0, 0.0], [0.0, 1.0], member, ["a"]), {}, "x must have two or more grid points, increasing"),
        (([0.0, 1.0], [0.0], member, ["a"]), {}, "y must have two or more grid points"),
        (([0.0, 1.0], [0.0, 1.0], member, ["a"]), {"X_train": [[0.0, 1.0]]}, "X_train and y_train belong together"),
    ):
        with pytest.raises(ValueError, match=message):
            ClassSetDisplay.from_sets(*arguments, **options)
