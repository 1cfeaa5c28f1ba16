"""The Nile at Aswan: how much water next year? Ranges forecast from the years before alone, and how often they held."""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import nile  # comes with the extra "test", which make demo installs

from kernpool import CoverageDisplay, NadarayaWatsonRegressor, QuantileFanDisplay

LEVEL, SEEN, BANDWIDTH = 0.8, 30, 100.0  # of the ranges; years before the first forecast; in the unit of the flow

table = nile.load_pandas().data
flow = table["volume"].to_numpy()  # in 10^8 cubic meters
year, before, after = table["year"].to_numpy()[1:], flow[:-1, None], flow[1:]

# Every forecast as it would have been made then: from the years up to this one, at a bandwidth given beforehand.
lower, upper, middle = np.full((3, len(after)), np.nan)
for i in range(SEEN, len(after)):
    model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH).fit(before[:i], after[:i])
    found = model.prediction_interval(before[[i]], level=LEVEL, method="full")
    lower[i], upper[i], middle[i] = found.lower[0], found.upper[0], model.quantile(before[[i]], 0.5)[0]

print(found.guarantee)
forecast, inside = year > year[SEEN - 1], (lower <= after) & (after <= upper)
for first, last in ((year[SEEN], year[-1]), (year[SEEN], 1910), (1911, year[-1])):
    which = (year >= first) & (year <= last)
    share = 100 * inside[which].mean()
    print(f"{first:.0f} to {last:.0f}: {inside[which].sum()} of {which.sum()} years inside, {share:.0f} %")

fig, axes = plt.subplot_mosaic([["years", "years"], ["fan", "coverage"]], figsize=(11, 8.4), layout="constrained")
ax = axes["years"]
ax.vlines(year[forecast], lower[forecast], upper[forecast], color="#b2d4f4", linewidth=5, label="range forecast, 80 %")
ax.plot(year[forecast], middle[forecast], "_", color="#000000", markersize=7, label="median forecast")
ax.plot(
    year[~forecast], after[~forecast], "o", color="0.75", markersize=4, label="years seen before the first forecast"
)
ax.plot(year[inside], after[inside], "o", color="#3f90da", markersize=5, label="flow, inside its range")
missed = forecast & ~inside
ax.plot(year[missed], after[missed], "s", color="#bd1f01", markersize=6, label="flow, outside")
ax.set(xlabel="year", ylabel="flow of the Nile, 10^8 cubic meters", title="next year's flow, forecast from this year's")
ax.legend(frameon=False, ncols=3, loc="upper right")
ax.spines[["top", "right"]].set_visible(False)

model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH).fit(before, after)
QuantileFanDisplay.from_estimator(model, before, after, levels=[0.1, 0.25, 0.5, 0.75, 0.9], ax=axes["fan"])
axes["fan"].set(xlabel="flow this year", ylabel="flow next year", title="quantiles of next year, all years known")

ends = lower[forecast], upper[forecast]
CoverageDisplay.from_intervals(
    year[forecast], after[forecast], ends, level=LEVEL, slices=5, x_label="year", target="flows", ax=axes["coverage"]
)
fig.savefig("river.png", dpi=120)
