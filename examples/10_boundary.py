"""Engel's households: at the ends of the data a weighted mean is pulled inwards, a local line is not."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

table = np.loadtxt(Path(__file__).parent / "data" / "engel.csv", delimiter=",", skiprows=1)
income, food = table[:, :1], table[:, 1]

constant = NadarayaWatsonRegressor("epanechnikov", bandwidth=450.0, empty="nearest").fit(income, food)
linear = LocalLinearRegressor("epanechnikov", bandwidth=450.0, empty="nearest").fit(income, food)
found = LocalLinearRegressor().fit(income, food)

grid = np.linspace(income.min(), 2200.0, 400)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, last in zip(axes, (2200.0, 800.0), strict=True):
    shown, seen = income[:, 0] <= last, grid[:, 0] <= last
    ax.plot(income[shown, 0], food[shown], "o", color="0.75", markersize=4, label="households")
    ax.plot(grid[seen], constant.predict(grid[seen]), color="#bd1f01", linewidth=1.8, label="local constant, h = 450")
    ax.plot(grid[seen], linear.predict(grid[seen]), color="#3f90da", linewidth=1.8, label="local linear, h = 450")
    label = f"local linear, h = {found.bandwidth_[0]:.0f} by leave-one-out"
    ax.plot(grid[seen], found.predict(grid[seen]), "--", color="#000000", linewidth=1.2, label=label)
    ax.set(xlabel="household income in Belgian francs", ylabel="spent on food")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_title("local constant against local linear")
axes[1].set_title("the left boundary")
axes[0].legend(frameon=False, loc="upper left")
fig.savefig("boundary.png", dpi=120)

poorest = income.min()
for name, model in (("local constant", constant), ("local linear", linear)):
    (predicted,), ((slope,),) = model.predict([[poorest]]), model.get_prediction([[poorest]]).slope
    print(f"{name:14} at an income of {poorest:.0f}: {predicted:.0f} on food, slope {slope:.2f}")
