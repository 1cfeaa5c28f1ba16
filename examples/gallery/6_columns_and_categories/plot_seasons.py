"""
Trend and seasonality
=====================

A year becomes three columns: the year, and the place in the year as a point on a circle. The window is long in the
year and short on the circle, so a season may change slowly with the decades.
"""

# %%
# Weekly carbon dioxide at Mauna Loa, 1958 to 2001 (statsmodels). On the circle December is near January.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import co2

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

table = co2.load_pandas().data.dropna()
year = np.asarray(table.index.year + (table.index.day_of_year - 1) / 365.25)
level = table["co2"].to_numpy()


def columns(year):
    angle = 2 * np.pi * year
    return np.column_stack([year, np.cos(angle), np.sin(angle)])


# %%
# The trend first: a line over two years and more does not see the season. What remains is pooled by all three columns.

trend = LocalLinearRegressor(bandwidth=2.0).fit(year[:, None], level)
rest = level - trend.predict(year[:, None])
season = NadarayaWatsonRegressor(bandwidth=[5.0, 0.25, 0.25]).fit(columns(year), rest)
print(f"around the curve: {np.std(rest - season.predict(columns(year))):.2f} ppm; the season alone: {rest.std():.2f}")

fig, axes = plt.subplots(1, 2, figsize=(13, 4.8), layout="constrained", width_ratios=(1.4, 1))
grid = np.linspace(1959, 2001, 2000)
axes[0].plot(year, level, ".", color="0.8", markersize=3, label="weeks")
axes[0].plot(
    grid, trend.predict(grid[:, None]) + season.predict(columns(grid)), color="#3f90da", label="trend and season"
)
axes[0].plot(grid, trend.predict(grid[:, None]), color="black", linewidth=1.5, label="trend")
axes[0].set(xlabel="year", ylabel="CO2 in parts per million")
place = np.linspace(0, 1, 200)
for start, color in ((1960, "#92dadd"), (1980, "#3f90da"), (2000, "#832db6")):
    one = np.full(len(place), float(start))
    around = columns(place)
    around[:, 0] = one
    axes[1].plot(12 * place, season.predict(around), color=color, linewidth=2, label=f"around {start}")
axes[1].set(xlabel="month", ylabel="less the trend, ppm", xticks=range(0, 13, 2))
for ax in axes:
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The season has grown, most of it before 1980.

for start in (1960, 1980, 2000):
    around = columns(place)
    around[:, 0] = start
    print(f"around {start}: {np.ptp(season.predict(around)):.2f} ppm from trough to peak")
