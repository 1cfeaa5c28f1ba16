"""A link restores the view, "copy as Python" reproduces it, and both languages say the same."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernpool.explorer as explorer_room
from kernpool import explore
from kernpool.explorer.explore import _framed
from tests.support.browser import opened
from tests.support.explorer_view import control, copied, facts, link_state, number, settle, state

WORDS = {
    path.stem: json.loads(path.read_text("utf-8")) for path in Path(explorer_room.__file__).parent.glob("words/*.json")
}
SIZE = {"width": 1200, "height": 1000}
TABLE = """
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
size, town, age = rng.uniform(0, 9, 80), rng.choice(["north", "south"], 80), rng.uniform(0, 3, 80)
X = pd.DataFrame({"size": size, "town": town, "age": age})
y = X["size"] + (X["town"] == "north") + X["age"] ** 2 + rng.normal(0, 0.1, 80)
"""
CLASSES = """
import numpy as np
rng = np.random.default_rng(1)
X = rng.uniform(0, 3, (60, 1))
y = np.array(["low", "middle", "high"])[np.clip((X[:, 0] + rng.normal(0, 0.3, 60)).astype(int), 0, 2)]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("links")


@pytest.fixture(scope="module")
def page(browser, folder):
    path = explore("make_sine_power", seed=0).to_html(folder / "sine.html")
    with opened(browser, path.as_uri(), viewport=SIZE, locale="en-US") as found:
        found.wait_for_selector("path.kp-curve[d]", state="attached")
        yield found


def test_a_link_restores_the_view(page, browser):
    control(page, "kernel").select_option("tricube")
    control(page, "degree").select_option("1")
    control(page, "bandwidth-0").fill("290")
    control(page, "query").fill("111")
    control(page, "pin").click()
    control(page, "query").fill("222")
    settle(page)
    link, before = copied(page, "copy.link"), facts(page)
    assert link_state(link) == state(page)
    with opened(browser, link, viewport=SIZE, locale="en-US") as other:
        other.wait_for_selector("path.kp-curve[d]", state="attached")
        settle(other)
        assert facts(other) == before
        assert control(other, "kernel").input_value() == "tricube"
        assert other.locator("text.kp-pin-a").text_content() == "A"
        assert other.locator("path.kp-curve").get_attribute("d") == page.locator("path.kp-curve").get_attribute("d")


def test_a_link_that_is_followed_is_not_written_over(page):
    """The address is written half a second after a change: if it has been changed meanwhile, the link wins.

    Both timers are due when the loop ends, so the link comes first, then the page writes, then it hears of the link.
    """
    plain = re.sub("kernel=[a-z]+", "kernel=cosine", copied(page, "copy.link").partition("#")[2])
    page.wait_for_timeout(700)
    page.evaluate(
        """(hash) => {
          document.querySelector("[data-control=pin]").click();
          setTimeout(() => { location.hash = hash; }, 400);
          for (const from = performance.now(); performance.now() - from < 900; );
        }""",
        plain,
    )
    page.wait_for_timeout(700)
    assert page.evaluate("location.hash") == f"#{plain}"
    assert copied(page, "copy.link").partition("#")[2] == plain


def test_a_link_takes_away_what_its_view_did_not_have(page):
    control(page, "query").focus()
    page.keyboard.press("Escape")
    plain = copied(page, "copy.link").partition("#")[2]
    page.locator("[data-option=seed]").select_option("7")
    page.locator("[data-action=step]").click()
    control(page, "pin").click()
    settle(page)
    page.evaluate("(hash) => { location.hash = hash; }", plain)
    page.wait_for_function("() => document.querySelector('[data-option=seed]').value === '0'")
    settle(page)
    assert copied(page, "copy.link").partition("#")[2] == plain
    assert page.locator("text.kp-pin-a").text_content() == ""
    assert page.locator("[data-option=seed]").input_value() == "0"
    assert page.locator("[data-panel=training] .kx-dots").get_attribute("d") == ""  # those epochs were of other rows


def test_menus_and_title_follow_the_sample_of_a_link(page):
    page.evaluate("location.hash = '#kernpool?sample=13'")
    settle(page)
    assert page.locator("[data-option=generator]").input_value() == "make_sine_linear"
    assert page.locator("[data-option=seed]").input_value() == "3"
    assert page.locator("h1").inner_text() == "make_sine_linear"
    page.evaluate("location.hash = '#kernpool?sample='")
    settle(page)
    assert page.locator("h1").inner_text() == "make_sine_power"


def test_a_page_within_a_page_has_no_link_to_copy(browser):
    framed = _framed(explore("make_sine_power", language="en").html())
    with opened(browser, f"<!doctype html><html lang=en><title>notebook</title>{framed}") as outer:
        frame = outer.frame_locator("iframe")
        frame.locator("[data-control='copy.python']").wait_for()
        assert frame.locator("[data-control='copy.link']").count() == 0


@pytest.mark.parametrize(
    "hash",
    [
        "#kernpool?",
        "#kernpool?kernel=nonsense&degree=7&composition=none&h=-1&column=9&query=x&theme=pink&lang=fr&pins=1,2,3;;",
        "#kernpool?h=Infinity&query=NaN&sample=99&pins=%00",
        "#kernpool?h=1,2,3&query=1e999&smoothing=0.1",
        "#kernpool?%E0%A4%A&h=%%%",
        "#a-heading",
        "#" + "kernpool?" + "h" * 5000,
    ],
)
def test_a_bad_hash_changes_nothing(page, hash):
    settle(page)
    before = copied(page, "copy.link")
    page.evaluate("(hash) => { location.hash = hash; }", hash)
    settle(page)
    assert copied(page, "copy.link") == before
    page.evaluate("history.replaceState(null, '', location.pathname)")


def test_a_hash_of_which_one_part_is_good_restores_that_part(page):
    page.evaluate("location.hash = '#kernpool?kernel=laplace&h=none'")
    settle(page)
    assert control(page, "kernel").input_value() == "laplace"


def run_copied(page, load=""):
    code = copied(page, "copy.python")
    names = {}
    exec(load, names)
    exec(code, names)
    return code, names


def test_copied_python_reproduces_the_view_of_a_generator(page):
    control(page, "kernel").select_option("gaussian")
    control(page, "degree").select_option("1")
    control(page, "bandwidth-0").fill("250")
    control(page, "query").fill("77")
    settle(page)
    code, names = run_copied(page)
    assert "LocalLinearRegressor" in code
    assert "make_sine_power(random_state=0)" in code
    assert names["model"].bandwidth_.tolist() == state(page)["h"]
    assert names["query"] == [state(page)["query"]]
    assert number(facts(page)["Estimate"]) == pytest.approx(names["model"].predict(names["query"])[0], rel=6e-4)


def test_copied_python_reproduces_columns_of_all_kinds(browser, folder):
    names = {}
    exec(TABLE, names)
    model = explore(names["X"], names["y"], bandwidth=[2.0, 1.0], smoothing=[0.3], load=TABLE, target="price")
    path = model.to_html(folder / "table.html")
    with opened(browser, path.as_uri(), viewport=SIZE, locale="en-US") as page:
        page.wait_for_selector("path.kp-curve[d]", state="attached")
        control(page, "composition").select_option("product")
        control(page, "smoothing-0").fill("100")
        settle(page)
        code, names = run_copied(page)
        assert 'composition="product"' in code
        assert "unordered=[1]" in code
        found = names["model"].predict(names["query"])[0]
        assert number(facts(page)["Estimate"]) == pytest.approx(found, rel=6e-4)
        size = names["model"].get_prediction(names["query"]).effective_sample_size[0]
        assert number(facts(page)["Effective sample size"]) == pytest.approx(size, rel=6e-3)
        assert isinstance(names["query"], pd.DataFrame)


def test_copied_python_reproduces_probabilities(browser, folder):
    names = {}
    exec(CLASSES, names)
    path = explore(names["X"], names["y"], load=CLASSES, target="level").to_html(folder / "classes.html")
    with opened(browser, path.as_uri(), viewport=SIZE, locale="en-US") as page:
        page.wait_for_selector("path.kp-curve[d]", state="attached")
        control(page, "bandwidth-0").fill("240")
        settle(page)
        _, names = run_copied(page)
        expected = names["model"].predict_proba(names["query"])[0]
        shown = [number(facts(page)[f"P({name})"]) for name in names["model"].classes_]
        assert shown == pytest.approx(expected.tolist(), rel=6e-4)
        assert page.locator("path.kp-curve").count() == 3


def test_a_switch_of_language_changes_every_text_and_keeps_the_focus_and_the_state(page):
    before = state(page)
    control(page, "language").click()
    settle(page)
    assert page.locator(".kp").get_attribute("lang") == "zh-Hans"
    assert page.evaluate("document.activeElement.dataset.control") == "language"
    text = page.locator(".kp").inner_text()
    assert "有效样本量" in text
    assert "Effective" not in text
    assert "Bandwidth" not in text
    after = state(page)
    assert after.pop("lang") == "zh"
    assert before.pop("lang") == "en"
    assert after == before
    control(page, "language").click()
    settle(page)
    assert "Effective sample size" in facts(page)


def test_both_languages_have_the_same_texts_with_the_same_gaps():
    english, chinese = WORDS["en"], WORDS["zh"]
    gaps = {key: set(re.findall(r"\{\w+\}", text)) for key, text in english.items()}
    kernels = {key for key in set(english) ^ set(chinese) if key.startswith("kernel.")}  # English names are their names
    assert set(english) - kernels == set(chinese) - kernels
    assert [key for key in gaps if key in chinese and set(re.findall(r"\{\w+\}", chinese[key])) != gaps[key]] == []


def test_every_text_that_sources_ask_for_exists():
    sources = "\n".join(path.read_text("utf-8") for path in (Path(explorer_room.__file__).parent / "js").glob("*.js"))
    asked = set(re.findall(r"\bwords\(\"([^\"]+)\"", sources))
    assert len(asked) > 30
    beginnings = {name for name in asked if name.endswith(".")}  # to which a value is added
    assert all(any(key.startswith(name) for key in WORDS["en"]) for name in beginnings)
    assert sorted(asked - set(WORDS["en"]) - beginnings) == []


def test_numbers_are_written_with_a_true_minus_and_few_digits(page):
    control(page, "query").fill("400")
    control(page, "bandwidth-0").fill("0")
    settle(page)
    shown = " ".join(page.locator(".kp td, .kp dd").all_inner_texts())
    assert not re.search(r"-\d", shown)
    assert np.isfinite(number(facts(page)["Effective sample size"]))
