"""The Nile at Aswan: how much water next year? Ranges forecast from the years before alone, and how often they held."""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import nile  # installed with the extra "test", as by make demo

from kernpool import CoverageDisplay, NadarayaWatsonRegressor, QuantileFanDisplay

LEVEL, FIRST = 0.8, 30  # of the ranges, and how many years are seen before the first forecast

table = nile.load_pandas().data
year, flow = table["year"].to_numpy(), table["volume"].to_numpy()  # in 10^8 cubic meters
before, after = flow[:-1, None], flow[1:]

# Every forecast is made as it would have been then: a model of the years up to this one, at a bandwidth given beforehand.
lower, upper, middle = np.full((3, len(after)), np.nan)
for i in range(FIRST, len(after)):
    model = NadarayaWatsonRegressor(bandwidth=100.0).fit(before[:i], after[:i])
    found = model.prediction_interval(before[[i]], level=LEVEL, method="full")
    lower[i], upper[i], middle[i] = found.lower[0], found.upper[0], model.quantile(before[[i]], 0.5)[0]

print(found.guarantee)
inside = (lower <= after) & (after <= upper)
forecast = year[1:] > year[FIRST]
for name, which in (("all forecasts", forecast), ("1902 to 1911", forecast & (year[1:] < 1912)), ("later", year[1:] > 1911)):
    print(f"{name:14} {inside[which].sum():2d} of {which.sum()} inside, {100 * inside[which].mean():.0f} %")
