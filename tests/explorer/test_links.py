"""A link restores the view, and both languages say the same."""

import json
import re
from pathlib import Path

import pytest

import kernpool.explorer as package
from kernpool import explore
from tests.support.browser import opened, violations
from tests.support.explorer_view import control, copied, facts, link_state, settle, state

WORDS = {path.stem: json.loads(path.read_text("utf-8")) for path in Path(package.__file__).parent.glob("words/*.json")}
SIZE = {"width": 1200, "height": 1000}


@pytest.fixture(scope="module")
def page(shown):
    with shown(explore("make_sine_power", seed=0)) as found:
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


def test_the_line_that_embeds_the_page_leads_to_the_view(page):
    link = copied(page, "copy.link")
    control(page, "copy.link").press("Enter")
    control(page, "embed").press("Enter")
    line = page.locator("[data-part=copied]").input_value()
    found = violations(page)
    page.locator("dialog button").last.click()
    assert found == []
    read = "(line) => new DOMParser().parseFromString(line, 'text/html').querySelector('iframe')"
    assert page.evaluate(f"(line) => ({read})(line).src", line) == link
    assert page.evaluate(f"(line) => ({read})(line).title", line) == "make_sine_power"
    control(page, "copy.python").click()
    assert not control(page, "embed").is_visible()
    page.locator("dialog button").last.click()


def test_a_page_within_a_page_has_no_link_to_copy(browser):
    framed = explore("make_sine_power", language="en")._repr_html_()
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


def test_a_switch_of_language_changes_every_text_and_keeps_the_focus_and_the_state(page):
    page.evaluate("location.hash = '#kernpool?kernel=laplace&h=none'")  # of which one part is good
    settle(page)
    assert control(page, "kernel").input_value() == "laplace"
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
    sources = "\n".join(path.read_text("utf-8") for path in (Path(package.__file__).parent / "js").glob("*.js"))
    asked = set(re.findall(r"\bwords\(\"([^\"]+)\"", sources))
    assert len(asked) > 30
    beginnings = {name for name in asked if name.endswith(".")}  # to which a value is added
    assert all(any(key.startswith(name) for key in WORDS["en"]) for name in beginnings)
    assert sorted(asked - set(WORDS["en"]) - beginnings) == []
