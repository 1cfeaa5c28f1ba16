"""
Skewed columns: bandwidths on ranks
===================================

One bandwidth in the units of the column is too wide where rows are dense or too narrow where they are sparse. Compared
by ranks, every window holds about the same number of rows.
"""

# %%
# The mean area of the nuclei of 569 tumours, by the standard error of that area (scikit-learn's breast cancer table).
# The error is a skew column: half are below 25, and the largest is 542.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold, cross_val_score

from kernpool import ExtrapolationWarning, NadarayaWatsonRegressor

table = load_breast_cancer(as_frame=True).data
X, y = table[["area error"]], table["mean area"].to_numpy()
grid = X.iloc[[0] * 400].copy()
grid["area error"] = np.geomspace(X["area error"].min(), X["area error"].max(), 400)

models = {scale: NadarayaWatsonRegressor(scale=scale).fit(X, y) for scale in ("raw", "rank")}
fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained")
for scale, color, style in (("raw", "#bd1f01", "-"), ("rank", "#3f90da", "--")):
    model = models[scale]
    unit = "of the rows" if scale == "rank" else "units"
    axes[0].plot(grid, model.predict(grid), style, color=color, linewidth=2,
                 label=f'scale="{scale}", h = {model.bandwidth_[0]:.3g} {unit}')  # fmt: skip
    size = model.get_prediction(grid).effective_sample_size
    axes[1].plot(grid, size, style, color=color, linewidth=2, label=f'scale="{scale}"')
axes[0].plot(X, y, ".", color="0.8", zorder=0)
axes[0].set(xscale="log", xlabel="area error", ylabel="mean area")
axes[1].set(xscale="log", yscale="log", xlabel="area error", ylabel="rows in effect")
for ax in axes:
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In raw units a window beyond 200 holds a single row, and the curve jumps from one to the next. Is the error of new
# rows smaller with ranks? Five folds, mean squared error. (The fold of the largest error has no row like it to learn
# from, which an ``ExtrapolationWarning`` says; it is meant here.)

warnings.simplefilter("ignore", ExtrapolationWarning)
for scale in models:
    folds = KFold(5, shuffle=True, random_state=0)
    error = -cross_val_score(NadarayaWatsonRegressor(scale=scale), X, y, cv=folds, scoring="neg_mean_squared_error")
    print(f"{scale:4}  {error.mean():.0f}, by fold {error.round(-2)}")

# %%
# Hardly: few rows lie where the windows differ most. What changes is the curve there, and how much it rests on. Where
# columns are not skew ranks take more than they give, and ``"raw"`` is the default.
