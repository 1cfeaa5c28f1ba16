"""What overfitting a bandwidth per column is: leave-one-out errors and those of new rows along one path.

python benchmarks/overfitting.py    draws docs/images/overfitting.png, half a minute
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from table_data import read
from table_list import TABLES

from kernpool import LocalLinearRegressor

TABLE, ROWS, DRAWS = "auto", 100, 20
PLACES = np.linspace(-0.5, 1.25, 15)  # 0 is the regularised bandwidth, 1 the minimum of leave-one-out
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "overfitting.png"


def errors_along(X, y, rows, others):
    """Mean squared errors of leave-one-out and of other rows, from one bandwidth to the other and beyond."""
    known = LocalLinearRegressor(ridge=0.0).fit(X[rows], y[rows])  # the bandwidths alone are what changes
    minimum = LocalLinearRegressor(bandwidth="loo").fit(X[rows], y[rows])
    start, end = (np.minimum(np.log(model.bandwidth_), np.log(20 * X.std(axis=0))) for model in (known, minimum))
    found = []
    for place in PLACES:
        model = LocalLinearRegressor(bandwidth=np.exp(start + place * (end - start))).fit(X[rows], y[rows])
        found.append([model.leave_one_out().error, np.mean((model.predict(X[others]) - y[others]) ** 2)])
    return np.array(found)


def main():
    X, y = read(TABLES[TABLE])
    X, y = X.select_dtypes("number").to_numpy(float), np.asarray(y, dtype=float)
    errors = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(y))
        errors.append(errors_along(X, y, order[:ROWS], order[ROWS:]))
    share = np.median(errors, axis=0) / np.var(y)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.plot(PLACES, share[:, 1], "o-", color="#c0392b", label=f"the other {len(y) - ROWS} rows")
    axes.plot(PLACES, share[:, 0], "o-", color="#2c5f8a", label=f"leave-one-out of the {ROWS} rows")
    for place, name in ((0.0, "regularised"), (1.0, "minimum of\nleave-one-out")):
        axes.axvline(place, color="0.7", linewidth=1, zorder=0)
        axes.annotate(name, (place, 1.0), (4, -4), xycoords=("data", "axes fraction"), textcoords="offset points",
                      va="top", fontsize=9, color="0.3")  # fmt: skip
    axes.set_xlabel("bandwidths on the way from one to the other, in logarithms")
    axes.set_ylabel("mean squared error / variance")
    axes.set_ylim(0.8 * share.min(), 1.1 * share.max())
    title = f"Local planes on {ROWS} rows of {TABLE!r}, {X.shape[1]} columns (median of {DRAWS} draws)"
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.62))
    figure.savefig(PICTURE, dpi=150)
    print(np.round(np.column_stack([PLACES, share]), 4))


if __name__ == "__main__":
    main()
