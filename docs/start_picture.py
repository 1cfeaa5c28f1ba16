"""The picture of the start page: one query, the keys that it looks at, and their weighted mean on the curve.

``python docs/start_picture.py`` writes ``docs/images/start.png`` and ``start-zh.png``, for readers at a forge; the
build draws its own. The Chinese page has symbols in place of words: not every machine that builds has a Chinese font.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
import numpy as np

from kernpool import NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

QUERY, SEED = 3.1, 9
WORDS = {  # of each file: what is said at the query, and of the weights
    "start.png": (
        "prediction {:.2f}: mean of y,\nweighted by the discs",
        "weights of the rows\nbandwidth {:.2f} (automatic)",
    ),
    "start-zh.png": (r"$\hat y$ = {:.2f}", "h = {:.2f}"),
}
BLUE, RED, GRAY = "#3f90da", "#bd1f01", "#717581"


def draw_start_picture(path: Path) -> None:
    """Draw it, with the words of the file's name."""
    at_query, of_weights = WORDS[path.name]
    sample = make_sine_power(n_samples=60, random_state=SEED)
    x, y = sample.x_train, sample.y_train
    model = NadarayaWatsonRegressor().fit(x[:, None], y)
    grid = np.linspace(x.min(), x.max(), 400)
    weights = model.attention_weights([[QUERY]])[0]
    pooled, h = float(model.predict([[QUERY]])[0]), float(model.bandwidth_[0])

    figure, (ax, below) = plt.subplots(
        2, 1, figsize=(7, 4.4), height_ratios=[3.2, 1], sharex=True, layout="constrained"
    )
    ax.scatter(x, y, s=14, color=GRAY, alpha=0.7, linewidth=0)
    ax.scatter(x, y, s=900 * weights / weights.max(), color=BLUE, alpha=0.45, linewidth=0)
    ax.plot(grid, model.predict(grid[:, None]), color=RED, linewidth=2.4)
    ax.plot(QUERY, pooled, "o", markersize=10, color=RED, markeredgecolor="#ffffff", markeredgewidth=1.5, zorder=5)
    ax.annotate(
        at_query.format(pooled),
        (QUERY, pooled), (4, 62), textcoords="offset points", fontsize=13,
        arrowprops={"arrowstyle": "-", "color": GRAY},
    )  # fmt: skip
    ax.set_title("y", loc="left", x=-0.025, fontsize=11)
    below.vlines(x, 0, weights, color=BLUE, linewidth=3)
    below.plot(grid, weights.max() * np.exp(-0.5 * ((grid - QUERY) / h) ** 2), color=GRAY, linewidth=1.2)
    below.annotate(of_weights.format(h), (0.02, 0.9), xycoords="axes fraction", va="top", fontsize=13)
    below.set_yticks([])
    below.set_xlabel("x")
    for axes in (ax, below):
        axes.axvline(QUERY, color=GRAY, linestyle=":", linewidth=1.2, zorder=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "images"
    for name in WORDS:
        draw_start_picture(folder / name)
