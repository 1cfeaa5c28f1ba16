"""The explorer's panels beside a single column: heat map, leave-one-out path, residuals and training."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import NadarayaWatsonRegressor, explore, pool, pooling_weights
from kernpool.datasets import make_sine_linear, make_sine_power
from tests.support.explorer_panels import numbers, panel, press, wait_until_idle

SAMPLE = make_sine_power(random_state=0)
X, Y = SAMPLE.x_train, SAMPLE.y_train


@pytest.fixture(scope="module")
def page(shown):
    with shown(explore("make_sine_power"), viewport={"width": 1600, "height": 1000}, reduced_motion="reduce") as found:
        yield found


def choose(page, generator, seed):
    page.locator("[data-option=generator]").select_option(generator)
    page.locator("[data-option=seed]").select_option(str(seed))


def enter(part, option, text):
    part.locator(f"[data-option={option}]").fill(text)
    part.locator(f"[data-option={option}]").press("Enter")


def slider_value(page, name):
    """Return what the slider of a panel stands at: the query of the heat map, the bandwidth of the path."""
    return float(panel(page, name).locator("[role=slider]").get_attribute("aria-valuenow"))


@pytest.fixture
def fresh(page):
    page.mouse.move(1598, 500)
    choose(page, "make_sine_power", 0)
    if page.locator("[data-control=model]").is_enabled():
        page.locator("[data-control=model]").click()
    wait_until_idle(page)
    return page


def loo_error(h, x=X, y=Y, kernel="gaussian"):
    return np.mean((y - pool(x, x, y, bandwidth=h, kernel=kernel, exclude_self=True, empty="mean")) ** 2)


def descent(x, y, *, w=1.0, rate=0.5, epochs=5, summed=False):
    """Gradient descent on w as the course teaches it, by NumPy: keys and values of the others, (n, n - 1)."""
    n = len(x)
    others = ~np.eye(n, dtype=bool)
    keys, values = np.tile(x, (n, 1))[others].reshape(n, -1), np.tile(y, (n, 1))[others].reshape(n, -1)
    widths, losses = [], []
    for _ in range(epochs + 1):
        square = (x[:, None] - keys) ** 2
        logit = -square * w**2 / 2
        alpha = np.exp(logit - logit.max(axis=1, keepdims=True))
        alpha /= alpha.sum(axis=1, keepdims=True)
        fit = (alpha * values).sum(axis=1)
        slope = (alpha * (-w * square) * (values - fit[:, None])).sum(axis=1)
        scale = n if summed else 1
        widths.append(w)
        losses.append(scale * np.mean((fit - y) ** 2))
        w = w - rate * scale * np.mean(2 * (fit - y) * slope)
    return np.array(widths), np.array(losses)


def test_cells_of_the_heat_map_are_the_weights_of_the_engine(fresh):
    found = numbers(fresh, "heat")
    expected = pooling_weights(found["places"], np.sort(X), bandwidth=slider_value(fresh, "path"))
    assert found["count"] == len(X)
    assert_allclose(found["cells"].reshape(50, -1), expected, rtol=0, atol=1e-12)
    assert_allclose(found["places"], np.linspace(X.min(), X.max(), 50), rtol=1e-14)
    assert found["largest"] == pytest.approx(expected.max(), abs=1e-12)


def test_the_heat_map_moves_the_query_by_pointer_and_keys(fresh):
    slider = panel(fresh, "heat").locator("[role=slider]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    fresh.mouse.click(box["x"] + 30, box["y"] + 0.25 * box["height"])
    wait_until_idle(fresh)
    span = X.max() - X.min()
    expected = X.min() + (0.25 * 50 - 0.5) / 49 * span  # 50 rows, the first and the last centered on the ends
    assert slider_value(fresh, "heat") == pytest.approx(expected, abs=span / 200)
    before = slider_value(fresh, "heat")
    press(fresh, slider, "ArrowDown", 3)
    assert slider_value(fresh, "heat") == pytest.approx(before + 3 * span / 49, rel=1e-9)


def test_the_path_is_that_of_the_engine_and_so_is_its_minimum(fresh):
    fresh.locator("[data-control=kernel]").select_option("boxcar")
    wait_until_idle(fresh)
    found, distance = numbers(fresh, "path"), abs(X[:, None] - X)
    np.fill_diagonal(distance, np.inf)
    assert_array_equal(found["empty"], [(distance.min(axis=1) > h).sum() for h in found["grid"]])
    assert_allclose(found["errors"], [loo_error(h, kernel="boxcar") for h in found["grid"]], rtol=1e-10)
    assert "some rows have no other row within the support" in panel(fresh, "path").locator(".kx-readout").inner_text()
    fresh.locator("[data-control=kernel]").select_option("gaussian")
    wait_until_idle(fresh)
    found = numbers(fresh, "path")
    expected = [loo_error(h) for h in found["grid"]]
    assert_allclose(found["errors"], expected, rtol=1e-10)
    searched = NadarayaWatsonRegressor(bandwidth="loo").fit(X[:, None], Y)
    assert found["minimum"]["error"] <= min(expected)
    assert found["minimum"]["h"] == pytest.approx(searched.bandwidth_[0], rel=1e-3)
    assert found["minimum"]["error"] == pytest.approx(searched.loo_error_, rel=1e-6)


def test_the_path_sets_the_bandwidth_and_its_mark_follows(fresh):
    path = panel(fresh, "path")
    slider = path.locator("[role=slider]")
    before = slider_value(fresh, "path")
    press(fresh, slider, "ArrowRight", 2)
    assert slider_value(fresh, "path") == pytest.approx(before * 1.05**2, rel=1e-9)
    grid = numbers(fresh, "path")["grid"]
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    fresh.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 20)
    wait_until_idle(fresh)
    assert slider_value(fresh, "path") == pytest.approx(grid[0] * (grid[-1] / grid[0]) ** 0.75, rel=0.02)
    path.locator("[data-action=minimum]").click()
    wait_until_idle(fresh)
    assert slider_value(fresh, "path") == pytest.approx(numbers(fresh, "path")["minimum"]["h"], rel=1e-12)
    assert_array_equal(numbers(fresh, "path")["grid"], grid)  # the mark moves, not the axis


def test_residuals_are_those_of_the_engine_and_a_click_selects_the_row(fresh):
    h = slider_value(fresh, "path")
    found, fit = numbers(fresh, "residuals"), pool(X, X, Y, bandwidth=h, exclude_self=True)
    assert_allclose(found["value"], fit, rtol=0, atol=1e-10)
    assert_allclose(found["residual"], Y - fit, rtol=0, atol=1e-10)
    part = panel(fresh, "residuals")
    slider = part.locator("[role=slider]")
    press(fresh, slider, "End")
    last = int(np.argmax(fit))
    assert f"Row {last}:" in part.locator(".kx-readout").inner_text()
    query = slider_value(fresh, "heat")
    assert query == X[last]


@pytest.mark.parametrize(("make", "seed"), [(make_sine_power, 0), (make_sine_linear, 3)])
def test_training_is_gradient_descent_as_it_is_taught(fresh, make, seed):
    """Rate 0.5 on w from 1, full batch, the mean of squared leave-one-out errors."""
    choose(fresh, make.__name__, seed)
    part = panel(fresh, "training")
    part.locator("[data-action=reset]").click()
    for _ in range(5):
        part.locator("[data-action=step]").click()
    wait_until_idle(fresh)
    x, y = make(random_state=seed)[:2]
    widths, losses = descent(x, y)
    found = numbers(fresh, "training")
    assert_allclose(found["widths"], widths, rtol=0, atol=1e-10)
    assert_allclose(found["losses"], losses, rtol=0, atol=1e-10)
    assert slider_value(fresh, "path") == pytest.approx(1 / widths[-1], rel=1e-10)  # the explorer follows


def test_the_summed_loss_that_overshoots_is_said(fresh):
    part, seed = panel(fresh, "training"), 0
    choose(fresh, "make_sine_linear", seed)
    part.locator("[data-option=loss]").select_option("sum")
    for _ in range(5):
        part.locator("[data-action=step]").click()
    wait_until_idle(fresh)
    _, losses = descent(*make_sine_linear(random_state=seed)[:2], summed=True)
    found = numbers(fresh, "training")["losses"]
    assert_allclose(found[:2], losses[:2], rtol=1e-9)
    first = int(np.argmax(np.diff(losses) > 0)) + 1
    assert f"in epoch {first}" in part.locator("[role=status]").inner_text()
    part.locator("[data-option=loss]").select_option("mean")
    enter(part, "rate", "1e308")
    part.locator("[data-action=play]").click()
    wait_until_idle(fresh)
    assert "became infinite" in part.locator("[role=status]").inner_text()
    enter(part, "rate", "0.5")


def test_with_motion_training_plays_and_pauses_and_steps_follow_by_themselves(fresh):
    fresh.emulate_media(reduced_motion="no-preference")
    part = panel(fresh, "training")
    enter(part, "epochs", "40")
    play = part.locator("[data-action=play]")
    play.click()
    assert play.inner_text() == "Pause"
    fresh.wait_for_function("() => document.querySelector('[data-panel=training]').numbers.widths.length > 3")
    play.click()
    assert play.inner_text() == "Play"
    found = numbers(fresh, "training")["widths"]
    fresh.wait_for_timeout(800)  # more than two epochs
    assert_array_equal(numbers(fresh, "training")["widths"], found)
    assert_allclose(found, descent(X, Y, epochs=len(found) - 1)[0], rtol=0, atol=1e-10)
    fresh.locator("[data-control=slow]").press("Enter")
    told = fresh.locator("[data-part=quotient]")
    assert told.inner_text().startswith("1.")
    told.filter(has_text="4.").wait_for()
    fresh.locator("[data-control=slow]").click()
    assert not told.is_visible()
    fresh.emulate_media(reduced_motion="reduce")


@pytest.mark.parametrize("x", [[1.0], [2.0, 2.0, 2.0], [0.0, 5.0]], ids=["one row", "a constant column", "two rows"])
def test_few_rows_or_places_break_nothing(shown, x):
    """`opened` fails on errors, and on attributes that are NaN."""
    model = NadarayaWatsonRegressor(bandwidth=1.0, kernel="boxcar").fit(np.array(x)[:, None], np.arange(len(x)))
    with shown(explore(model), viewport={"width": 900, "height": 900}) as page:
        for slider in page.locator("section [role=slider]").all():
            for key in ("ArrowRight", "End", "Home"):
                press(page, slider, key)
        assert page.locator("[data-panel=path]").count() == (len(x) > 1)
        words = page.locator("body").inner_text().split()
        assert not {"null", "undefined", "NaN", "[object"} & set(words)


def test_residuals_count_as_their_rows_do_and_groups_are_not_trained_on(shown):
    weight, group = 1.0 + np.arange(len(X)) % 5, np.arange(len(X)) // 5
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X[:, None], Y, sample_weight=weight, groups=group)
    with shown(explore(model)) as page:
        text = panel(page, "residuals").locator("svg").get_attribute("aria-label")
        root = float(re.search(r"root mean square ([\d.]+),", text)[1])
        assert root == pytest.approx(np.sqrt(model.leave_one_out().error), rel=6e-3)
        assert panel(page, "training").count() == 0


def test_one_mean_is_shown_step_by_step(fresh):
    """Without motion each press shows the next step: weights, products, sums, quotient."""
    part, button = panel(fresh, "slow"), fresh.locator("[data-control=slow]")
    table = part.locator("[data-part=slow]")
    fresh.locator("[data-control=query]").fill("300")
    filled = []
    for _ in range(4):
        button.click()
        fresh.wait_for_timeout(50)
        rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
        filled.append([sum(bool(row[c].strip()) for row in rows) for c in range(4)])
    assert filled == [[9, 8, 9, 0], [9, 8, 9, 9], [10, 8, 10, 10], [10, 8, 10, 10]]
    q, h = slider_value(fresh, "heat"), slider_value(fresh, "path")
    weight = np.exp(-0.5 * ((q - X) / h) ** 2)
    order = np.argsort(-weight)[:8]
    assert [int(row[0]) for row in rows[:8]] == order.tolist()
    assert [float(row[2]) for row in rows[:8]] == pytest.approx(weight[order].tolist(), rel=6e-4)
    assert float(rows[9][2]) == pytest.approx(weight.sum(), rel=6e-4)
    assert float(rows[9][3]) == pytest.approx(weight @ Y, rel=6e-4)
    told = part.locator("[data-part=quotient]").inner_text()
    assert float(told.rstrip(".").split("= ")[1]) == pytest.approx(pool(np.array([q]), X, Y, bandwidth=h)[0], rel=6e-4)
    fresh.locator("[data-control=degree]").select_option("1")  # no mean
    wait_until_idle(fresh)
    assert not part.is_visible()
    fresh.locator("[data-control=degree]").select_option("0")
    button.click()
    assert not table.is_visible()


def test_training_of_other_rows_ends_at_the_smallest_error(shown):
    """In any unit, and from where a wide window would lead to the mean of all; without motion at the last epoch."""
    rng, scale = np.random.default_rng(0), 1e4
    x = rng.uniform(0, 10, 200)
    y = np.sin(x) + 0.3 * rng.normal(size=200)
    with shown(explore(scale * x[:, None], scale * y, bandwidth=2 * scale), reduced_motion="reduce") as page:
        panel(page, "training").locator("[data-action=play]").click()
        wait_until_idle(page)
        assert panel(page, "training").locator("[data-action=play]").inner_text() == "Play"
        losses = numbers(page, "training")["losses"]
        assert np.all(np.diff(losses) <= 1e-12 * losses[0])
        assert losses[-1] == pytest.approx(numbers(page, "path")["minimum"]["error"], rel=5e-3)
