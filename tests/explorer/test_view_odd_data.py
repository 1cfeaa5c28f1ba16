"""Data that make a view hard to read: values with an offset, long names, many classes, numbers as objects."""

import re

import numpy as np
import pandas as pd
import pytest

from kernpool import explore
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_view import control, facts

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, 40))
Y = np.sin(X) + RNG.normal(0, 0.2, 40)
LONG = "a_long_name_without_any_space_" * 4


@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_values_far_from_zero_are_told_apart(shown, offset):
    with shown(explore((X + offset)[:, None], Y + offset, bandwidth=0.3)) as page:
        axes = page.locator("[data-panel=scatter] .kp-axes")
        ticks = axes.locator("text:not(.kp-name)")
        for anchor in ("middle", "end"):
            texts = [one.text_content() for one in ticks.all() if one.get_attribute("text-anchor") == anchor]
            assert len(texts) == len(set(texts)) > 2
        name = re.fullmatch(r"x ([−+]) (\d+)", axes.locator(".kp-name").first.text_content())
        assert name[1] == ("−" if offset > 0 else "+")
        assert abs(int(name[2]) - abs(offset)) <= 10
        shown_value = float(facts(page)["Estimate"].replace("−", "-"))
        assert abs(shown_value - offset) > 1e-3  # and not the offset alone
        assert abs(shown_value - offset) < 2


def test_long_names_stay_inside_the_page(shown):
    frame = pd.DataFrame({LONG: X, "town": [LONG, "b"] * 20})
    with shown(explore(frame, pd.Series(Y, name=LONG), bandwidth=[0.3], smoothing=[0.2])) as page:
        control(page, "pin").click()
        wait_until_idle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        table = page.locator("[data-part=compare]")
        assert table.evaluate(
            "table => [...table.querySelectorAll('th, td')].every(c => c.scrollWidth <= c.clientWidth + 1)"
        )


def test_names_of_classes_do_not_lie_on_each_other(shown):
    names = np.where(np.sin(X) > 0.4, "Adelie", np.where(X > 3, "Gentoo", "Chinstrap"))
    rows = RNG.permutation(40)[:12]
    names[rows] = names[rows[::-1]]
    with shown(explore(X[:, None], names, bandwidth=0.3)) as page:
        for h in range(40, 400, 40):
            control(page, "bandwidth-0").fill(str(h))
            wait_until_idle(page)
            boxes = [one.bounding_box() for one in page.locator(".kx-inside:not([visibility=hidden])").all()]
            for i, a in enumerate(boxes):
                for b in boxes[:i]:
                    apart = abs(a["x"] + a["width"] / 2 - b["x"] - b["width"] / 2) - (a["width"] + b["width"]) / 2
                    assert apart > 0 or abs(a["y"] - b["y"]) >= 12


def test_numbers_that_are_objects_are_no_labels():
    explorer = explore(X[:, None], Y.astype(object), bandwidth=0.3)
    assert not explorer.subject.is_classifier
    np.testing.assert_array_equal(explorer.subject.model.value_.ravel(), Y)


def test_an_infinite_bandwidth_is_called_so(shown):
    """The curve is level along that column, and the page says so in words."""
    with shown(explore(np.column_stack([X, X[::-1]]), Y, bandwidth=[0.3, np.inf])) as page:
        slider = control(page, "bandwidth-1")
        assert slider.get_attribute("aria-valuetext") == "∞ (no effect)"
        assert control(page, "bandwidth-0").get_attribute("aria-valuetext") == "0.300"
        control(page, "degree").select_option("1")  # in which the column still has a slope
        assert slider.get_attribute("aria-valuetext") == "∞ (straight line)"
