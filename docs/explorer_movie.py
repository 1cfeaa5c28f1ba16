"""Record the moving picture of the README: the explorer, while its query and its bandwidth move.

``python docs/explorer_movie.py`` writes ``docs/images/explorer.gif``. It needs Chromium on the path, playwright (the
extra ``browser``) and Pillow (which matplotlib brings), so the site shows the file and does not record it again.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from kernpool import explore
from kernpool.datasets import make_sine_power

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = (900, 600)  # of the window; the picture is what of it is above the panels
HEIGHT, WIDTH = 582, 640
COLORS = 48
PAUSE, STEP = 700, 90  # milliseconds
MOVE = """(slider, value) => {
  slider.value = value; slider.dispatchEvent(new Event("input", { bubbles: true })) }"""
SHOWN = """() => new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(resolve, { timeout: 2000 }))))"""


def moves() -> list[tuple[str, int, int]]:
    """Return each frame's slider, its position from 0 to 400, and the milliseconds that the frame stays."""
    still = (1 - np.cos(np.linspace(0, np.pi, 13))) / 2  # starts and ends slowly

    def slide(name: str, start: int, end: int) -> list[tuple[str, int, int]]:
        positions = np.rint(start + (end - start) * still).astype(int)
        return [(name, int(position), PAUSE if position == end else STEP) for position in positions]

    return [
        *slide("query", 110, 300), *slide("query", 300, 180),
        *slide("bandwidth-0", 198, 130), *slide("bandwidth-0", 130, 290), *slide("bandwidth-0", 290, 198),
        *slide("query", 180, 110),
    ]  # fmt: skip


def record(page: Page) -> tuple[list[Image.Image], list[int]]:
    """Move the sliders, and return the frames with their durations."""
    frames, durations = [], []
    for name, position, milliseconds in moves():
        page.locator(f'[data-control="{name}"]').evaluate(MOVE, str(position))
        page.evaluate(SHOWN)
        shot = page.screenshot(clip={"x": 0, "y": 0, "width": SIZE[0], "height": HEIGHT})
        frames.append(Image.open(io.BytesIO(shot)).convert("RGB"))
        durations.append(milliseconds)
    return frames, durations


def write_movie(path: Path) -> None:
    """Record in a browser without a network, and write all frames with one palette."""
    browser_path = next(filter(None, map(shutil.which, NAMES)), None)
    if browser_path is None:
        sys.exit(f"the moving picture is recorded in Chromium: none of {', '.join(NAMES)} is on the path")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as api:
        sample = make_sine_power(random_state=0)
        html = explore(sample, bandwidth=0.3, language="en", title="50 noisy points").to_html(Path(folder) / "e.html")
        browser = api.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(
            offline=True, locale="en-US", color_scheme="light", viewport={"width": SIZE[0], "height": SIZE[1]}
        ).new_page()
        page.goto(html.as_uri())
        page.wait_for_selector("path.kp-curve[d]", state="attached")
        page.add_style_tag(content="[data-panel=toolbar] button, [data-panel=compare] { display: none }")
        frames, durations = record(page)
        browser.close()
    sheet = Image.new("RGB", (SIZE[0], HEIGHT * 3))
    for place, frame in enumerate((frames[0], frames[38], frames[51])):
        sheet.paste(frame, (0, place * HEIGHT))
    palette = sheet.quantize(COLORS)
    first, *others = [
        frame.resize((WIDTH, round(HEIGHT * WIDTH / SIZE[0])), Image.Resampling.LANCZOS).quantize(
            palette=palette, dither=Image.Dither.NONE
        )
        for frame in frames
    ]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    write_movie(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "images" / "explorer.gif")
