"""
Conditional distributions and their scores
==========================================

Beyond a mean and an interval: a density for every place. A score says how good it is as a forecast, and the PIT says
in which way it is wrong.
"""

# %%
# Sea surface temperatures off Peru in each month, over 61 years. In some months an El Nino gives a long upper tail.

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from statsmodels.datasets import elnino

from kernpool import NadarayaWatsonRegressor

table = elnino.load_pandas().data
temperature = table.drop(columns="YEAR").to_numpy()
seen, new = temperature[:45], temperature[45:]
month = np.arange(1.0, 13.0)


def rows(part):
    return np.tile(month, len(part))[:, None], part.ravel()


model = NadarayaWatsonRegressor(bandwidth=0.5).fit(*rows(seen))
X_new, y_new = rows(new)

fig, ax = plt.subplots(figsize=(8.5, 5), layout="constrained")
grid = np.linspace(17.5, 29.5, 240)
for at, color in ((3, "#bd1f01"), (6, "#e08a00"), (9, "#3f90da"), (12, "#5f6f52")):
    density = model.conditional_distribution([[float(at)]], y_bandwidth="rule").pdf(grid)[0]
    name = ("March", "June", "September", "December")[at // 3 - 1]
    ax.plot(grid, density, color=color, linewidth=2, label=name)
    ax.plot(new[:, at - 1], np.full(len(new), -0.012 * (at // 3)), "|", color=color, markersize=8)
ax.axhline(0, color="0.6", linewidth=0.8)
ax.set(xlabel="degrees Celsius", ylabel="density", title="forecast from 1950 to 1994; dashes are the years since")
ax.legend(frameon=False, loc="upper right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The continuous ranked probability score (CRPS) generalises the absolute error to forecasts that are distributions; it
# is in degrees. Beside it, a normal distribution with the mean and standard deviation of the month:

forecast = model.conditional_distribution(X_new)
mean, std = model.predict(X_new, return_std=True)
z = (y_new - mean) / std
normal = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
print(f"kernel distribution: {np.mean(forecast.crps(y_new)):.3f} degrees")
print(f"normal distribution: {np.mean(normal):.3f} degrees")
print(f"the mean alone:      {np.mean(np.abs(y_new - mean)):.3f} degrees")

# %%
# The PIT is where each new value falls in its forecast, from 0 to 1. Were the forecasts right it would be uniform.

pit = forecast.pit(y_new)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.hist(pit, bins=10, range=(0, 1), color="#3f90da", edgecolor="white")
ax.axhline(len(pit) / 10, color="black", linestyle="--", label="if forecasts were right")
ax.set(xlabel="PIT of the months since 1995", ylabel="months")
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# It is not: too few of the months since 1995 lie in the lower tenths of their forecasts, and too many in the upper
# half. The sea has become warmer, and a forecast from the years before does not know. Shapes of tails hardly matter
# beside that, so the normal distribution scores as well here.

print(f"below the median of their forecast: {np.mean(pit < 0.5):.0%} of {len(pit)} months")
