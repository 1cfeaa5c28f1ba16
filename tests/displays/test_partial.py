"""A fit over each of its columns: panels show what the methods of the estimator return at rows made by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas", reason="frames need pandas")
pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from sklearn.linear_model import LinearRegression

from kernpool import (
    KernelCurveDisplay,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    PartialDisplay,
    QuantileFanDisplay,
    RankDeficiencyWarning,
    ResidualDisplay,
)

N = 90
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "x": RNG.uniform(size=N),
        "day": pd.date_range("2020-02-27", periods=N),
        "size": pd.Categorical(RNG.choice(["s", "m", "l"], N, p=[0.2, 0.5, 0.3]), ["s", "m", "l"], ordered=True),
        "city": RNG.choice(["Osaka", "Kobe"], N),
    }
)
Y = pd.Series(np.sin(4 * FRAME["x"]) + FRAME["size"].cat.codes + 0.2 * RNG.normal(size=N), name="sales")
TYPICAL = {"x": FRAME["x"].median(), "day": FRAME["day"].median(), "size": "m", "city": FRAME["city"].mode()[0]}
HOW = {"bandwidth": [0.2, 30.0], "smoothing": [0.2, 0.3]}
LINES = {"bandwidth": [0.2, 30.0, 2.0], "smoothing": [0.2], "ridge": 0.1}  # local lines read two cities as 0 and 1
ESTIMATORS = {
    "means": lambda: NadarayaWatsonRegressor(**HOW).fit(FRAME, Y),
    "lines": lambda: LocalLinearRegressor(**LINES).fit(FRAME, Y),
    "classes": lambda: NadarayaWatsonClassifier(**HOW).fit(FRAME, np.where(Y > 1, "high", "low")),
}


def rows(column, cells):
    """Return a frame of typical rows with some cells in one column, by pandas alone."""
    frame = pd.DataFrame({name: [value] * len(cells) for name, value in TYPICAL.items()})
    frame[column] = cells
    frame["size"] = pd.Categorical(frame["size"], ["s", "m", "l"], ordered=True)
    return frame


def cells_of(panel):
    if panel.label == "day":
        return pd.to_datetime(panel.x, unit="D").astype(FRAME["day"].dtype)
    return panel.x if panel.categories is None else [name.split("\n")[0] for name in panel.categories]


@pytest.mark.filterwarnings("ignore::kernpool.inference.InferenceWarning", "ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_panels_are_answers_at_typical_rows(name):
    model = ESTIMATORS[name]()
    display = PartialDisplay.from_estimator(model, grid_resolution=12)
    assert [panel.label for panel in display.panels] == list(FRAME)
    for panel in display.panels:
        query = rows(panel.label, cells_of(panel))
        if name == "classes":
            expected, found = model.predict_proba(query), model.probability_interval(query)
        else:
            expected, found = model.predict(query)[:, None], model.confidence_interval(query)
        assert_allclose(panel.prediction, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(panel.interval.lower, found.lower, rtol=1e-7, atol=1e-9)
        assert_allclose(panel.interval.upper, found.upper, rtol=1e-7, atol=1e-9)
    size = display.panels[2]
    assert [int(label.split("(")[1][:-1]) for label in size.categories] == FRAME["size"].value_counts(
        sort=False
    ).tolist()
    assert display.axes_[0].get_ylabel() == ("probability" if name == "classes" else "sales")
    assert [len(lines) for lines in display.lines_] == [2 if name == "classes" else 1] * 4
    legend = display.figure_.legends[0]
    if name == "classes":  # the entry of the bands shows the color of each class
        colors = {to_hex(patch.get_facecolor()) for patch in legend.findobj(Rectangle)}
        assert colors >= {to_hex(band.get_facecolor()[0]) for band in display.bands_[0]}
        assert [text.get_text() for text in legend.get_texts()] == ["high", "low", "95 % pointwise interval"]
    assert np.ptp([ax.get_ylim() for ax in display.axes_], axis=0).max() == 0.0


def test_given_rows_are_drawn_as_those_that_the_model_holds():
    model = ESTIMATORS["means"]()
    displays = [
        PartialDisplay.from_estimator(model, *given, grid_resolution=9, band=None) for given in ((), (FRAME, Y))
    ]
    for display in displays:
        assert display.y_label == "sales"
        assert display.bands_ == [[]] * 4
        for mine, first in zip(display.panels, displays[0].panels, strict=True):
            assert_array_equal(mine.prediction, first.prediction)
            assert mine.categories == first.categories


@pytest.mark.parametrize("name", ["means", "classes"])
def test_averages_are_partial_dependence(name):
    model = ESTIMATORS[name]()
    ask = model.predict if name == "means" else model.predict_proba
    display = PartialDisplay.from_estimator(model, kind="average", subsample=N, grid_resolution=5)
    for panel in display.panels:
        for at, cell in enumerate(cells_of(panel)):
            frame = FRAME.assign(**{panel.label: cell}).astype({"size": FRAME["size"].dtype, "day": FRAME["day"].dtype})
            assert_allclose(panel.prediction[at], np.mean(ask(frame), axis=0), rtol=1e-9)
        assert panel.interval is None
    assert "averaged over rows" in display.note


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("kind", ["average", "typical"])
def test_a_row_of_weight_three_is_three_rows(kind):
    weight = np.random.default_rng(5).integers(1, 4, N)
    rows = np.repeat(np.arange(N), weight)
    options = {"kind": kind, "subsample": len(rows), "grid_resolution": 5, "band": None}
    weighted, repeated = (
        PartialDisplay.from_estimator(NadarayaWatsonRegressor(**HOW).fit(*one), **options)
        for one in ((FRAME, Y, weight), (FRAME.iloc[rows], Y.iloc[rows]))
    )
    assert weighted.note == repeated.note
    for one, other in zip(weighted.panels, repeated.panels, strict=True):
        assert_allclose(one.prediction, other.prediction, rtol=1e-9)


def test_estimators_of_others_have_no_bands():
    frame = FRAME[["x"]].assign(z=FRAME["x"] ** 2)
    model = LinearRegression().fit(frame, Y)
    display = PartialDisplay.from_estimator(model, frame, Y, features=["z"])
    (panel,) = display.panels
    assert_allclose(panel.prediction[:, 0], model.predict(pd.DataFrame({"x": frame["x"].median(), "z": panel.x})))
    few = NadarayaWatsonRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    assert PartialDisplay.from_estimator(few).bands_ == [[]]


def test_one_column_has_its_rows_and_bias_is_shown():
    x = np.linspace(0, 1, 300)
    model = NadarayaWatsonRegressor(bandwidth=0.08).fit(x[:, None], np.sin(15 * x) + 0.05 * RNG.normal(size=300))
    display = PartialDisplay.from_estimator(model, feature_names=["dose"], target="response")
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("dose", "response")
    assert_array_equal(display.x_train, x)
    assert len(display.centers_) == 1
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["prediction", "95 % pointwise interval", "bias-corrected curve"]


def test_predictions_far_beyond_the_outputs_do_not_flatten_the_rest():
    X = pd.DataFrame({"a": [*RNG.uniform(size=60), 9.0], "b": [*RNG.uniform(size=60), 8.0]})
    y = np.sin(9 * X["a"])
    model = LocalLinearRegressor(bandwidth=[0.4, 0.4], ridge=0.0).fit(X, y)
    with pytest.warns(RankDeficiencyWarning, match=r"^over 'a': around \d+ of 200 queries"):
        display = PartialDisplay.from_estimator(model, band=None)
    assert max(np.ptp(panel.prediction) for panel in display.panels) > 3 * np.ptp(y)
    bottom, top = display.axes_[0].get_ylim()
    assert top - bottom <= 2.3 * np.ptp(y)


def test_the_most_frequent_of_many_categories():
    names = [f"c{i:02d}" for i in range(40)]
    cells = np.repeat(names, [3 if i % 4 else 1 for i in range(40)])
    X = pd.DataFrame({"city": cells, "x": np.arange(len(cells)) / 10})
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.3).fit(X, X["x"])
    display = PartialDisplay.from_estimator(model, band=None, features=["city"])
    assert [label.split("\n")[0] for label in display.panels[0].categories] == [n for i, n in enumerate(names) if i % 4]
    assert display.figure_.get_figheight() > 4.7  # with upright labels


def test_models_whose_intervals_are_refused_are_drawn_without():
    labels, groups = np.where(Y > 1, "high", "low"), np.arange(N) // 3
    model = NadarayaWatsonClassifier(**HOW).fit(FRAME, labels, groups=groups)
    assert PartialDisplay.from_estimator(model, grid_resolution=5).bands_ == [[]] * 4
    display = ResidualDisplay.from_estimator(ESTIMATORS["lines"](), against="city")  # two categories are numbers
    assert_array_equal(display.at, FRAME["city"] == "Osaka")


@pytest.mark.filterwarnings("ignore::kernpool.inference.InferenceWarning")
def test_curves_over_a_column_beside_categories():
    model = ESTIMATORS["means"]()
    curve = KernelCurveDisplay.from_estimator(model, feature="x", grid_resolution=7)
    assert_allclose(curve.prediction, model.predict(rows("x", curve.x)))
    fan = QuantileFanDisplay.from_estimator(model, feature="x", grid_resolution=7)
    assert_allclose(fan.quantile, model.quantile(rows("x", fan.x), fan.levels))
    assert curve.ax_.get_ylabel() == fan.ax_.get_ylabel() == "sales"
