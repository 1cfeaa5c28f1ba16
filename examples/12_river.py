"""The Nile at Aswan: how much water next year? Ranges forecast from the years before alone, and how often they held.

A range is promised to hold if years could as well come in any other order. They could not: since about 1899 the river
carries less. So ranges that remember all years are too high at first and too wide later; those of the last 30 years
forget what is over.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import nile  # in the public domain; comes with the extra "test", which make demo installs

from kernpool import CoverageDisplay, ExtrapolationWarning, NadarayaWatsonRegressor, QuantileFanDisplay

LEVEL, SEEN, BANDWIDTH = 0.8, 30, 100.0  # of the ranges; years before the first forecast; in the unit of the flow

table = nile.load_pandas().data
flow = table["volume"].to_numpy()  # in 10^8 cubic meters
year, before, after = table["year"].to_numpy()[1:], flow[:-1, None], flow[1:]
forecast = year > year[SEEN - 1]


def forecasts(memory=None):
    """Each year's range and median as they would have been forecast then, at a bandwidth given beforehand.

    The years after a flow far beyond all flows that were known then, of which a warning tells, come last.
    """
    lower, upper, middle = np.full((3, len(after)), np.nan)
    beyond = np.zeros(len(after), bool)
    for i in np.flatnonzero(forecast):
        known = slice(0 if memory is None else i - memory, i)
        model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH).fit(before[known], after[known])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ExtrapolationWarning)
            found = model.prediction_interval(before[[i]], level=LEVEL, method="jackknife+")
            lower[i], upper[i], middle[i] = found.lower[0], found.upper[0], model.quantile(before[[i]])[0]
        beyond[i] = bool(caught)
    return lower, upper, middle, found.guarantee, beyond


fig, axes = plt.subplot_mosaic(
    [["all", "all", "coverage of all"], ["last", "last", "coverage of last"]], figsize=(13, 8.4), layout="constrained"
)
for name, memory, words in (("all", None, "all years before"), ("last", SEEN, f"the last {SEEN} years")):
    lower, upper, middle, guarantee, beyond = forecasts(memory)
    inside = (lower <= after) & (after <= upper)
    print(f"ranges by {words}: {guarantee}")
    for first, last in ((year[forecast][0], 1910), (1911, year[-1])):
        which = (year >= first) & (year <= last)
        width = (upper - lower)[which].mean()
        print(f"  {first:.0f} to {last:.0f}: {inside[which].sum()} of {which.sum()} inside, mean width {width:.0f}")

    print(f"  after a flow beyond all that were known, where nothing is promised: {year[beyond].astype(int).tolist()}")
    ax, missed = axes[name], forecast & ~inside
    ax.vlines(
        year[forecast], lower[forecast], upper[forecast], color="#b2d4f4", linewidth=3.5, label="80 % range forecast"
    )
    ax.plot(year[forecast], middle[forecast], "_", color="#000000", markersize=7, label="median forecast")
    ax.plot(year[~forecast], after[~forecast], "o", color="0.75", markersize=4, label="seen before the first forecast")
    ax.plot(year[inside], after[inside], "o", color="#3f90da", markersize=5, label="flow, inside its range")
    ax.plot(year[missed], after[missed], "s", color="#bd1f01", markersize=6, label="flow, outside")
    ax.set(xlabel="year", ylabel="flow, 10^8 cubic meters", title=f"flow of the Nile, forecast from {words}")
    ax.spines[["top", "right"]].set_visible(False)
    ends = lower[forecast], upper[forecast]
    CoverageDisplay.from_intervals(
        year[forecast], after[forecast], ends, level=LEVEL, slices=4, x_label="year", target="flows",
        ax=axes[f"coverage of {name}"],
    )  # fmt: skip
fig.legend(*axes["all"].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
fig.savefig("river.png", dpi=120)

model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH).fit(before, after)
fan = QuantileFanDisplay.from_estimator(model, before, after, levels=[0.1, 0.25, 0.5, 0.75, 0.9])
fan.ax_.set(xlabel="flow this year, 10^8 cubic meters", ylabel="flow next year")
fan.figure_.savefig("river-fan.png", dpi=120)
