"""The picture of the guide to smoothing: one curve with its intervals, and three other smoothers of the same table.

``python docs/smoothing_picture.py`` writes ``docs/images/smoothing.png``, for readers at a forge; the build draws its
own.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kernpool import KernelCurveDisplay, LocalLinearRegressor, Nearest

TABLE = Path(__file__).resolve().parents[1] / "examples" / "data" / "engel.csv"


def draw_smoothing_picture(path: Path) -> None:
    """Fit the table of the page and draw both panels into a file."""
    engel = pd.read_csv(TABLE).query("income < 2500")
    x, y = engel[["income"]], engel["foodexp"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharey=True)
    KernelCurveDisplay.from_estimator(LocalLinearRegressor().fit(x, y), band="confidence", prediction=0.9, ax=left)
    grid = pd.DataFrame({"income": np.linspace(x["income"].min(), x["income"].max(), 400)})
    right.scatter(x, y, s=20, color="#717581", alpha=0.45, linewidth=0)
    for model, label, color, style in (
        (LocalLinearRegressor("tricube", "loo", window=Nearest()), "window=Nearest()", "#bd1f01", "-"),
        (LocalLinearRegressor(robust=True), "robust=True", "#3f90da", "--"),
        (LocalLinearRegressor("tricube", window=Nearest(0.2)), "window=Nearest(0.2)", "#000000", ":"),
    ):
        right.plot(grid, model.fit(x, y).predict(grid), style, color=color, linewidth=2.2, label=label)
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    for ax in (left, right):
        ax.set(xlabel="income (francs)", ylabel="food expenditure (francs)" if ax is left else "")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw_smoothing_picture(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/smoothing.png"))
