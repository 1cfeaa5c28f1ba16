"""The explorer in Chromium: from a move of the bandwidth to the drawn curve, and how much a page weighs.

A move sets the slider as a drag does. `written` is when the path of the curve has its new form and the page its new
layout; `drawn` is after the next frame of the browser, which comes every 16.7 ms whatever the page does.
"""

import gzip
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from measure import report
from playwright.sync_api import sync_playwright

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, explore
from kernpool.explorer.explorer_model import BUNDLE, packed_module

MOVES = 50
BARS = {1000: 16, 5000: 50}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

MEASURE = """
async (moves) => {
  const slider = document.querySelector("[data-control=bandwidth-0]");
  const curve = document.querySelector(".kp-curve");
  const start = Number(slider.value), found = [];
  const later = (fn) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = fn;
    port2.postMessage(0);
  });
  for (let i = 0; i < moves; i++) {
    await new Promise((resolve) => setTimeout(resolve, 400 + 37 * (i % 5)));
    const begin = performance.now();
    const written = new Promise((resolve) => {
      const observer = new MutationObserver(() => {
        observer.disconnect();
        curve.getBBox();
        const at = performance.now();
        later(() => resolve([at - begin, performance.now() - begin]));
      });
      observer.observe(curve, { attributes: true, attributeFilter: ["d"] });
    });
    slider.value = start + (i % 2 ? -1 : 1) * (3 + (i % 11));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    found.push(await written);
  }
  return found;
}
"""


def rows(n: int):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, size=n)
    return x[:, None], np.sin(x) + 0.3 * rng.normal(size=n)


def measure(browser, folder: Path, n: int, degree: int) -> tuple[float, float, int]:
    """Return the medians of written and drawn in milliseconds, and the size of the page."""
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    page_file = explore(kind(bandwidth=0.3).fit(*rows(n))).to_html(folder / f"{n}-{degree}.html")
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector(".kp-curve[d]", state="attached")
    page.wait_for_timeout(5000)  # panels that are filled in idle slices
    found = page.evaluate(MEASURE, MOVES)
    context.close()
    written, drawn = (statistics.median(times) for times in zip(*found, strict=True))
    return written, drawn, page_file.stat().st_size


def benchmark() -> None:
    module = BUNDLE.read_bytes()
    lines = ["| rows | degree | written, ms | target | drawn, ms | page, kB |", "|---|---|---|---|---|---|"]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for n, bar in BARS.items():
            for degree in (0, 1):
                written, drawn, size = measure(browser, Path(folder), n, degree)
                lines.append(f"| {n} | {degree} | {written:.1f} | {bar} | {drawn:.1f} | {size / 1e3:.0f} |")
        name = f"Chromium {browser.version}"
        browser.close()
    report(
        "explorer",
        "# Explorer\n\n"
        + "\n".join(lines)
        + f"\n\nMedians of {MOVES} moves of the bandwidth, Gaussian kernel, in {name}, headless, without a graphics "
        "processor. *Written*: the path of the curve has its new form. *Drawn*: after the next frame, which comes "
        "every "
        "16.7 ms.\n\n"
        f"The module: {len(module) / 1e3:.0f} kB, {len(gzip.compress(module, 9)) / 1e3:.1f} kB compressed, "
        f"{len(packed_module()) / 1e3:.1f} kB as text in a page (target: 75). A page with 1000 rows: "
        "target 200 kB.",
    )


if __name__ == "__main__":
    benchmark()
