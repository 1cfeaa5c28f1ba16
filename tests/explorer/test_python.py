"""What "copy as Python" gives runs, and says what the page says: levels, weights, groups, pairs, clipped lines."""

import ast
import re
from contextlib import ExitStack

import numpy as np
import polars
import pytest
from numpy.testing import assert_allclose

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import opened, violations
from tests.support.explorer_panels import numbers, wait_until_idle
from tests.support.explorer_view import control, copied, facts, link_state, number, settle, state

ROWS = "import numpy as np\nrng = np.random.default_rng(0)\nsize = rng.uniform(0, 9, 80)\n"
ZIPS = """import pandas as pd
X = pd.DataFrame({"size": size, "zip": rng.choice(["02139", "94305", "1"], 80)})
y = size + (X["zip"] == "02139") + rng.normal(0, 0.1, 80)
"""
NUMBERS = """import pandas as pd
X = pd.DataFrame({"size": size, "town": pd.Categorical(rng.integers(0, 3, 80))})
y = size + X["town"].astype(int) + rng.normal(0, 0.1, 80)
"""
FRAME = ZIPS + 'import polars\nX = polars.DataFrame({"size": size, "zip": list(X["zip"])})\n'
MORE = """import pandas as pd
X = pd.DataFrame({"size": size, "town": rng.choice(["north", "south"], 80), "age": rng.uniform(0, 3, 80)})
y = X["size"] + (X["town"] == "north") + X["age"] ** 2 + rng.normal(0, 0.1, 80)
"""
PAIRS = """import pandas as pd
X = pd.DataFrame({"smoker": rng.choice(["no", "yes"], 80), "size": size})
y = np.sin(size) + 2 * (X["smoker"] == "yes") + rng.normal(0, 0.2, 80)
"""
LINE = "X, y = size[:, None], size + rng.normal(0, 0.1, 80)\n"


CLASSES = """X = size[:, None]
y = np.array(["low", "middle", "high"])[np.clip((size / 3 + rng.normal(0, 0.3, 80)).astype(int), 0, 2)]
"""
COUNTED = LINE + "sample_weight, groups = rng.integers(1, 5, 80), np.arange(80) // 4\n"


@pytest.fixture
def made(shown):
    """Explore what some lines of Python make; return the page and the names that these lines made."""
    with ExitStack() as pages:

        def make(load, call):
            names = {"kernpool": kernpool}
            exec(load, names)
            explorer = eval(call, {**names, "explore": lambda *a, **k: explore(*a, load=load, **k)})
            return pages.enter_context(shown(explorer)), names

        yield make


def run_copied(page):
    """Run what is copied, its last call included; return the text and the names it made."""
    code = copied(page, "copy.python")
    tree = ast.parse(code)
    tree.body[-1] = ast.Assign([ast.Name("explorer", ast.Store())], tree.body[-1].value)
    names = {}
    exec(compile(ast.fix_missing_locations(tree), "copied", "exec"), names)
    return code, names


def assert_reproduces(page, names):
    model, query = names["model"], names["query"]
    if hasattr(model, "classes_"):
        shares = model.predict_proba(query)[0]
        expected = {f"P({name})": share for name, share in zip(model.classes_, shares, strict=True)}
    else:
        expected = {"Estimate": model.predict(query)[0]}
    said = facts(page)
    assert {name: number(said[name]) for name in expected} == pytest.approx(expected, rel=6e-4)
    size = model.get_prediction(query).effective_sample_size[0]
    assert number(said["Effective sample size"]) == pytest.approx(size, rel=6e-3)
    assert model.bandwidth_.tolist() == state(page)["h"]
    again = names["explorer"].subject
    numeric, codes = again.query
    assert [*numeric, *codes] == state(page)["query"]


@pytest.mark.parametrize("load", [ZIPS, NUMBERS, FRAME], ids=["text that looks like numbers", "numbers", "polars"])
def test_levels_are_written_as_python_has_them(made, load):
    page, names = made(ROWS + load, "explore(X, y, bandwidth=[2.0], smoothing=[0.2])")
    for code in ("0", "1", "2"):
        page.locator("[data-panel=slices] tbody select").select_option(code)
        settle(page)
        _, names = run_copied(page)
        assert_reproduces(page, names)
    if load == FRAME:
        assert isinstance(names["query"], polars.DataFrame)


REGRESSOR = "explore(kernpool.NadarayaWatsonRegressor({}).fit({}){})"


@pytest.mark.parametrize(
    ("load", "make", "moves", "said"),
    [
        (ROWS + COUNTED, REGRESSOR.format("bandwidth=0.4", "X, y, sample_weight=sample_weight, groups=groups", ""),
         {"bandwidth-0": "210"}, ("# sample_weight: ", "# groups: ", "groups=groups")),
        (ROWS + ZIPS, REGRESSOR.format('bandwidth=[1.0], smoothing=[0.3], unseen="unlike"', "X, y", ", query=[3, 'n']"),
         {"bandwidth-0": "210"}, ('unseen="unlike"',)),
        (ROWS + LINE, REGRESSOR.format('"boxcar", 0.5, empty="nearest"', "X, y", ""), {"degree": "1"},
         ('empty="nearest"', "LocalLinearRegressor")),
        (ROWS + MORE, "explore(X, y, bandwidth=[2.0, 1.0], smoothing=[0.3], target='price')",
         {"composition": "product", "smoothing-0": "100"}, ('kernel="product ', "unordered=[1]")),
        (ROWS + CLASSES, "explore(X, y, target='level')", {"bandwidth-0": "240"}, ("NadarayaWatsonClassifier",)),
        ("", "kernpool.explore('make_sine_power', seed=0)", {"degree": "1", "bandwidth-0": "250", "query": "77"},
         ("LocalLinearRegressor", "make_sine_power(random_state=0)")),
    ],
    ids=["weights and groups", "no row's level", "empty windows", "columns of all kinds", "classes", "generator"],
)  # fmt: skip
def test_what_is_copied_reproduces_what_was_chosen(made, load, make, moves, said):
    page, _ = made(load, make)
    for name, value in moves.items():
        (control(page, name).fill if value.isdigit() and name != "degree" else control(page, name).select_option)(value)
    settle(page)
    code, names = run_copied(page)
    assert [part for part in said if part not in code] == []
    assert_reproduces(page, names)


@pytest.mark.parametrize("ridge", [0.7, None])
def test_columns_of_two_levels_are_a_choice_and_written_as_levels(made, ridge):
    more = "" if ridge is None else f", ridge={ridge}, bandwidth=[1.5, 0.8]"
    page, _ = made(ROWS + PAIRS, f"explore(X, y, degree=1{more})")
    slices = page.locator("[data-panel=slices]")
    assert slices.locator("select").count() == 1
    assert slices.locator("input[type=range]").count() == 1
    assert slices.locator("input[type=radio]").count() == 1  # a pair is no axis
    assert "size" in page.locator("[data-panel=scatter] .kp-axes .kp-name").first.text_content()
    assert control(page, "degree").count() == 0  # as levels they would need a smoothing
    values = []
    for level in ("no", "yes"):
        slices.locator("select").select_option(label=level)
        settle(page)
        code, names = run_copied(page)
        assert f'query = [["{level}",' in code.replace("'", '"')
        assert_reproduces(page, names)
        values.append(number(facts(page)["Estimate"]))
    assert values[1] - values[0] > 1  # so that the test can tell
    control(page, "pin").click()
    settle(page)
    assert "yes" in page.locator("[data-part=compare]").inner_text()


def test_names_title_and_truth_of_a_generator(made):
    page, _ = made("", "kernpool.explore('make_sine_linear', seed=2, target='price', language='en')")
    page.locator("[data-option=seed]").select_option("5")
    settle(page)
    code, names = run_copied(page)
    assert "make_sine_linear(random_state=5)" in code
    subject = names["explorer"].subject
    assert (subject.target, subject.title) == ("price", "make_sine_linear")
    np.testing.assert_array_equal(subject.truth[1], names["sample"].y_truth)
    assert_reproduces(page, names)


def test_a_truth_that_the_page_cannot_write_is_said(made):
    page, _ = made(ROWS + LINE, "explore(X, y, bandwidth=1.0, truth=np.sin, title='a\"b')")
    code, names = run_copied(page)
    assert re.search(r"^# .*truth=", code, re.MULTILINE)
    assert names["explorer"].subject.title == 'a"b'


DATES = """import pandas as pd
day = pd.Timestamp("2021-05-01", tz="UTC") + pd.to_timedelta(np.sort(rng.integers(0, 500, 80)), unit="D")
X = pd.DataFrame({"day": day, "wait": pd.to_timedelta(size, unit="D"), "size": size[::-1]})
y = np.sin(np.arange(80) / 9) + rng.normal(0, 0.1, 80)
"""


def test_dates_and_durations(made):
    """Axes have ticks of dates, the query is a date, and what is copied runs and predicts what the page shows."""
    make = "explore(kernpool.NadarayaWatsonRegressor(bandwidth=[30.0, 2.0, 3.0]).fit(X, y))"
    page, _ = made(ROWS + DATES, make)
    ticks = page.locator(".kp-axes text").all_text_contents()
    assert "day (UTC)" in ticks
    assert any(re.fullmatch(r"202[12]-\d\d", tick) for tick in ticks)
    slider = page.locator("input[type=range][aria-valuetext]").first
    assert re.search(r"\d{4}-\d\d-\d\d", slider.get_attribute("aria-valuetext"))
    code, names = run_copied(page)
    assert re.search(r'datetime\.fromisoformat\("202[12]-', code)
    assert "timedelta(days=" in code
    estimate = number(facts(page)["Estimate"])
    np.testing.assert_allclose(names["model"].predict(names["query"])[0], estimate, rtol=1e-3)


def test_windows_follow_the_rows_in_controls_links_python_and_errors(shown, browser):
    """k is how many rows the bandwidth reaches; then keys and the slider change it."""
    sample = make_sine_power(random_state=0)
    with shown(explore("make_sine_power", seed=0, language="en")) as page:
        before = link_state(copied(page, "copy.link"))
        control(page, "widths").select_option("nearest")
        settle(page)
        k = int(np.sum(np.abs(sample.x_train - before["query"][0]) <= before["h"][0]))
        assert control(page, "neighbors").input_value() == str(k)
        assert page.locator("text.kp-h").text_content().startswith(f"k = {k}, h = ")
        control(page, "neighbors").focus()
        for key in ("ArrowRight", "]", "]", "["):
            page.keyboard.press(key)
        settle(page)
        assert control(page, "neighbors").input_value() == str(k + 2)
        control(page, "kernel").select_option("tricube")  # has no weight at its edge
        control(page, "neighbors").fill("11")
        settle(page)
        link, shown_facts = copied(page, "copy.link"), facts(page)
        with opened(browser, link, viewport={"width": 1200, "height": 1000}) as other:
            other.wait_for_selector("path.kp-curve[d]", state="attached")
            settle(other)
            assert facts(other) == shown_facts
            control(other, "language").click()
            settle(other)
            assert "近邻数 k" in other.locator("[data-panel=controls]").inner_text()
        code, names = run_copied(page)
        assert "window=Nearest(11)," in code
        assert_allclose(names["model"].predict(names["query"])[0], number(facts(page)["Estimate"]), rtol=1e-3)
        control(page, "degree").select_option("1")
        wait_until_idle(page)
        found = numbers(page, "path")
        X, y = sample.x_train[:, None], sample.y_train
        assert (found["grid"][0], found["grid"][-1]) == (4, 50)
        for k, error in list(zip(found["grid"], found["errors"], strict=True))[::8]:
            model = LocalLinearRegressor("tricube", window=Nearest(int(k)), ridge=0.0, bandwidth=1.0).fit(X, y)
            assert_allclose(error, model.leave_one_out().error, rtol=1e-9)
        assert violations(page) == []


def test_a_column_that_comes_round_has_its_period_in_python(shown):
    rng = np.random.default_rng(2)
    X = rng.uniform(-24, 72, (90, 1))
    load = f"import numpy as np\nX = np.array({X.tolist()!r})\ny = np.sin(2 * np.pi * X[:, 0] / 24)"
    told = {"bandwidth": [2.0], "periodic": {0: 24.0}, "empty": "nan"}
    model = NadarayaWatsonRegressor(**told).fit(X, np.sin(2 * np.pi * X[:, 0] / 24))
    with shown(explore(model, target="y", language="en", load=load)) as page:
        assert [control(page, name).count() for name in ("widths", "lesson")] == [0, 0]
        control(page, "bandwidth-0").fill("210")
        settle(page)
        code, names = run_copied(page)
        assert "periodic={0: 24}" in code
        assert_reproduces(page, names)
