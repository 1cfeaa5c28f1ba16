"""What tests read off an explorer that is open in a browser."""

import re
from urllib.parse import parse_qs

import numpy as np

SETTLE = """() => new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(resolve, { timeout: 2000 }))))"""


def settle(page):
    """Wait until a change is drawn, and idle work has begun to follow."""
    page.evaluate(SETTLE)


def control(page, name):
    """Return the control of a name."""
    return page.locator(f'[data-control="{name}"]')


def copied(page, name):
    """Press a button that copies, and return the text that it shows."""
    control(page, name).click()
    text = page.locator("[data-part=copied]").input_value()
    page.locator("dialog button").last.click()
    return text


def state(page):
    """Return the state as the address holds it: what a link of the view would restore."""
    page.wait_for_timeout(650)  # the address follows after half a second
    return link_state(page.evaluate("location.hash"))


def link_state(link):
    """Read the hash of a link."""
    found = {name: values[0] for name, values in parse_qs(link.partition("?")[2]).items()}
    for name in ("h", "query"):
        found[name] = [float(number) for number in found[name].split(",")]
    return found


def number(text):
    """Read a number as the page writes it."""
    return float(text.replace("−", "-").replace("–", "nan"))


def facts(page):
    """Return the summary of the weights: estimate, effective sample size and so on, by their English names."""
    names = page.locator(".kp-facts dt").all_inner_texts()
    return dict(zip(names, page.locator(".kp-facts dd").all_inner_texts(), strict=True))


def drawn_curve(page, name="curve"):
    """Return the places and values of a line, from its path and the ticks of the axes; of an area its upper edge."""
    path, area, _ = page.locator(f"path.kp-{name}").first.get_attribute("d").partition("Z")
    pixels = np.array([pair.split() for pair in re.findall(r"[\d.-]+ [\d.-]+", path)], dtype=float)
    ticks = page.evaluate(
        """() => [...document.querySelectorAll("[data-panel=scatter] .kp-axes text:not(.kp-name)")].map((text) =>
          [text.getAttribute("text-anchor"), text.textContent, +text.getAttribute("x"), +text.getAttribute("y")])"""
    )
    across = np.array([(number(text), x) for anchor, text, x, _ in ticks if anchor == "middle"])
    upward = np.array([(number(text), y - 4) for anchor, text, _, y in ticks if anchor == "end"])
    if area:
        pixels = pixels[: len(pixels) // 2]
    places = np.interp(pixels[:, 0], across[:, 1], across[:, 0])
    values = np.interp(-pixels[:, 1], -upward[:, 1], upward[:, 0])
    inside = (pixels[:, 0] >= across[0, 1]) & (pixels[:, 0] <= across[-1, 1])
    inside &= (pixels[:, 1] <= upward[0, 1]) & (pixels[:, 1] >= upward[-1, 1])
    return places[inside], values[inside]
