"""Accumulated local effects: compared with loops over bins and rows, and with what each output changes."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, PartialDisplay

plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra plot")

N = 40
RANDOM = np.random.default_rng(2)
X = RANDOM.uniform(0.0, 2.0, (N, 2))
X[:, 1] = 0.5 * X[:, 0] + 0.5 * X[:, 1]
Y = np.sin(2.0 * X[:, 0]) + X[:, 0] * X[:, 1] + RANDOM.normal(0.0, 0.1, N)
ZONE = np.array(list("abc"), dtype=object)[np.arange(N) % 3]


def draw(model, **options):
    options = {"kind": "ale", "subsample": N, "grid_resolution": 6, "band": None} | options
    return PartialDisplay.from_estimator(model, **options)


def centred(edge, steps, value):
    """Effects at the edges, less the mean over rows of that at the middle of each row's bin."""
    effect = np.append(0.0, np.cumsum(steps))
    place = np.clip(np.searchsorted(edge, value) - 1, 0, len(edge) - 2)
    return effect - np.mean((effect[place] + effect[place + 1]) / 2)


@pytest.mark.parametrize("column", [0, 1])
def test_effects_are_mean_differences_within_bins(column):
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, Y)
    panel = draw(model, features=[column]).panels[0]
    edge, value = panel.x, X[:, column]
    assert len(edge) == 7
    steps = []
    for b in range(6):
        inside = [i for i in range(N) if (edge[b] < value[i] or b == 0) and value[i] <= edge[b + 1]]
        low, high = X[inside].copy(), X[inside].copy()
        low[:, column], high[:, column] = edge[b], edge[b + 1]
        steps.append(np.mean(model.predict(high) - model.predict(low)))
    np.testing.assert_allclose(panel.prediction[:, 0], centred(edge, steps, value), rtol=1e-10, atol=1e-13)


def test_effects_of_a_plane_are_its_slopes_whatever_the_correlation():
    model = LinearRegression().fit(X, Y)
    for column, panel in enumerate(draw(model, X=X, y=Y).panels):
        slope = np.diff(panel.prediction[:, 0]) / np.diff(panel.x)
        np.testing.assert_allclose(slope, model.coef_[column], rtol=1e-9)


def test_effects_of_categories_go_from_one_to_the_next():
    model = NadarayaWatsonRegressor(bandwidth=0.4, unordered=[2], smoothing=[0.2])
    rows = np.column_stack([X.astype(object), ZONE])
    panel = draw(model.fit(rows, Y + (ZONE == "b")), features=[2]).panels[0]
    steps = []
    for one, other in ("ab", "bc"):
        inside = rows[(one == ZONE) | (other == ZONE)]
        low, high = inside.copy(), inside.copy()
        low[:, 2], high[:, 2] = one, other
        steps.append(np.mean(model.predict(high) - model.predict(low)))
    effect = np.append(0.0, np.cumsum(steps))
    effect -= np.mean(effect[np.arange(N) % 3])
    np.testing.assert_allclose(panel.prediction[:, 0], effect, rtol=1e-10, atol=1e-13)
    assert len(panel.categories) == 3


@pytest.mark.parametrize("groups", [None, np.arange(N) % 8])
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_bands_are_standard_errors_of_sums_over_outputs(make, groups):
    """An effect is linear in the outputs: what it changes by if one output does is the weight of that output."""
    options = {"bandwidth": 0.4} | ({"ridge": 0.3} if make is LocalLinearRegressor else {})
    weight = RANDOM.integers(1, 3, N).astype(float)
    model = make(**options).fit(X, Y, sample_weight=weight, groups=groups)
    panel = draw(model, features=[0], band="confidence", level=0.9).panels[0]
    linear = np.empty((len(panel.x), N))
    for j in range(N):
        other = make(**options).fit(X, Y + (np.arange(N) == j), sample_weight=weight)
        linear[:, j] = draw(other, features=[0]).panels[0].prediction[:, 0] - panel.prediction[:, 0]
        plt.close("all")
    found = model.residuals()
    if groups is None:
        variance = linear**2 @ (found.noise**2 / weight)
    else:
        variance = sum((linear[:, groups == g] @ found.residual[groups == g]) ** 2 for g in range(8))
    away = norm.ppf(0.95) * np.sqrt(variance)
    np.testing.assert_allclose(panel.interval.upper, panel.prediction[:, 0] + away, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(panel.interval.lower, panel.prediction[:, 0] - away, rtol=1e-7, atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*repeat another row")
@pytest.mark.parametrize("column", [0, 2], ids=["numbers", "categories"])
def test_a_weight_of_three_is_three_rows(column):
    weight = np.arange(N) % 4
    rows, repeat = np.column_stack([X.astype(object), ZONE]), np.repeat(np.arange(N), weight)
    options = {"bandwidth": 0.4, "unordered": [2], "smoothing": [0.2]}
    one = NadarayaWatsonRegressor(**options).fit(rows, Y, sample_weight=weight)
    many = NadarayaWatsonRegressor(**options).fit(rows[repeat], Y[repeat])
    few, all_rows = (
        draw(model, features=[column], band="confidence", subsample=len(repeat)).panels[0] for model in (one, many)
    )
    np.testing.assert_array_equal(few.x, all_rows.x)
    assert few.categories == all_rows.categories
    np.testing.assert_allclose(few.prediction, all_rows.prediction, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(few.interval.upper, all_rows.interval.upper, rtol=1e-9, atol=1e-12)


def test_what_is_drawn():
    display = draw(LocalLinearRegressor(bandwidth=0.4).fit(X, Y), band="auto", target="wage")
    assert display.axes_[0].get_ylabel() == "effect on wage"
    assert [len(bands) for bands in display.bands_] == [1, 1]
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["accumulated local effect", "95 % pointwise interval"]
    classes = draw(NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 1.0), band="auto")
    assert [len(lines) for lines in classes.lines_] == [2, 2]
    assert classes.bands_ == [[], []]
    np.testing.assert_allclose(classes.panels[0].prediction.sum(axis=1), 0.0, atol=1e-12)
    constant = draw(LocalLinearRegressor(bandwidth=0.4, ridge=1.0).fit(np.c_[X[:, 0], np.ones(N)], Y), features=[1])
    assert constant.panels[0].prediction.tolist() == [[0.0]]


def test_what_has_no_effects_or_bands_is_refused():
    with pytest.raises(TypeError, match="intervals of effects are of a kernel regressor"):
        draw(NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 1.0), band="confidence")
    with pytest.raises(ValueError, match="grid_resolution must be at least 1"):
        draw(NadarayaWatsonRegressor(bandwidth=0.4).fit(X, Y), grid_resolution=0)
    with pytest.raises(ValueError, match="one output can be drawn"):
        draw(NadarayaWatsonRegressor(bandwidth=0.4).fit(X, np.c_[Y, Y]))
    few = draw(NadarayaWatsonRegressor(bandwidth=0.4).fit(X[:4], Y[:4]), band="auto")
    assert few.panels[0].interval is None
