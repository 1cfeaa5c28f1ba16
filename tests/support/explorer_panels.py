"""The linked panels of the explorer as tests read and operate them."""

import numpy as np

NUMBERS = """(name) => {
  const plain = (value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
  return Object.fromEntries(Object.entries(document.querySelector(`[data-panel=${name}]`).numbers).map(([key, value]) => [key, plain(value)]));
}"""
IDLE = """() => new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(() => requestIdleCallback(resolve)))))"""


def panel(page, name):
    """Return a panel by its name in main.js."""
    return page.locator(f'section[data-panel="{name}"]')


def numbers(page, name):
    """Return what a panel draws, before it becomes pixels."""
    found = page.evaluate(NUMBERS, name)
    return {key: np.array(value) if isinstance(value, list) else value for key, value in found.items()}


def wait_until_idle(page):
    """Wait until every change is drawn, and what is computed in idle time is done."""
    page.evaluate(IDLE)
    page.locator('section[aria-busy="true"]').first.wait_for(state="detached", timeout=60_000)
    page.evaluate(IDLE)


def press(page, slider, key, times=1):
    """Press a key on a slider so many times."""
    slider.focus()
    for _ in range(times):
        page.keyboard.press(key)
    wait_until_idle(page)
