"""
Conditional quantiles as a fan
==============================

The mean is one number of a distribution. Weighted quantiles show the rest, with the same weights and no assumption
about the noise.
"""

# %%
# Does a rich household differ from a poor one in what it spends, or in how much such households differ? Both: the fan
# opens.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import engel

from kernpool import NadarayaWatsonRegressor, QuantileFanDisplay

table = engel.load_pandas().data
table = table[table["income"] < 2500]
X, y = table[["income"]], table["foodexp"]
model = NadarayaWatsonRegressor().fit(X, y)

fig, ax = plt.subplots(figsize=(8.5, 5), layout="constrained")
QuantileFanDisplay.from_estimator(
    model, X, y, levels=[0.05, 0.25, 0.5, 0.75, 0.95], ax=ax, target="spent on food, francs"
)
ax.set_xlabel("income, francs")
plt.show()

# %%
# The quantiles are exact: the smallest value at which the weights below reach the level. So none is ever outside the
# data, and none crosses another. How sure is each? An end is infinite where the rows of a window are too few to tell.

at = pd.DataFrame({"income": [500.0, 1000.0, 1500.0]})
levels = [0.1, 0.5, 0.9]
interval = model.conditional_distribution(at).quantile_interval(levels)
for income, lower, middle, upper in zip(
    at["income"], interval.lower, model.quantile(at, levels), interval.upper, strict=True
):
    print(f"income {income:.0f}: " + "; ".join(
        f"{level:.0%} {m:.0f} ({a:.0f} to {b:.0f})" for level, a, m, b in zip(levels, lower, middle, upper, strict=True)
    ))  # fmt: skip

# %%
# Does the fan hold the shares it says? Of households that it has seen it holds too many, because each pulls its
# quantiles to itself. So half of them make a fan, at the same bandwidth, and the other half is counted:

half = NadarayaWatsonRegressor(bandwidth=model.bandwidth_).fit(X[::2], y[::2])
inside, new = half.quantile(X[1::2], [0.05, 0.25, 0.75, 0.95]), y[1::2]
print(f"between 25 and 75 %: {np.mean((inside[:, 1] <= new) & (new <= inside[:, 2])):.0%}")
print(f"between 5 and 95 %: {np.mean((inside[:, 0] <= new) & (new <= inside[:, 3])):.0%}")
