"""The picture of the quick start: a fit of the diabetes table over each of its columns.

``python docs/quick_start_picture.py`` writes ``docs/images/quick-start.png``, for readers at a forge; the build draws
its own.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from kernpool import LocalLinearRegressor, PartialDisplay


def draw_quick_start_picture(path: Path) -> None:
    """Fit the table of the page and draw its panels into a file."""
    diabetes = load_diabetes(as_frame=True, scaled=False)
    X = diabetes.data[["bmi", "bp", "s5"]].assign(sex=diabetes.data["sex"].map({1.0: "A", 2.0: "B"}))
    display = PartialDisplay.from_estimator(LocalLinearRegressor().fit(X, diabetes.target.rename("progression")))
    display.figure_.savefig(path, dpi=110)
    plt.close(display.figure_)


if __name__ == "__main__":
    draw_quick_start_picture(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/quick-start.png"))
