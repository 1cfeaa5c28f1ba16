"""The picture of the README: a known function recovered from noise, and the Engel curve of 235 households."""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
import numpy as np

from kernpool import KernelCurveDisplay, LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

ROOT = Path(__file__).resolve().parent.parent


def draw_readme_picture(path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")

    sample = make_sine_power(random_state=1)
    model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    KernelCurveDisplay.from_estimator(
        model, sample.x_train[:, None], sample.y_train, truth=lambda x: 2 * np.sin(x) + x**0.8, ax=left
    )
    left.set(title=f"2 sin x + x$^{{0.8}}$ from 50 noisy samples, h = {model.bandwidth_[0]:.2f}", ylim=(-1, 5))

    income, food = np.loadtxt(ROOT / "examples" / "data" / "engel.csv", delimiter=",", skiprows=1).T
    # Where incomes are sparse a mean of the nearest households runs in plateaus; a line through them does not.
    model = LocalLinearRegressor().fit(income[:, None], food)
    KernelCurveDisplay.from_estimator(model, income[:, None], food, target="food expenditure", ax=right)
    right.set(
        title=f"Engel's 235 households, local linear, h = {model.bandwidth_[0]:.0f}",
        xlabel="income (Belgian francs)",
    )

    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    draw_readme_picture(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "kernel-regression.png")
