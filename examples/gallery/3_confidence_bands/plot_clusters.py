"""
Clustered data
==============

Twelve months of a year are not twelve independent rows: an El Nino warms them all. Errors that count rows are then
too small. Errors that count years are not.
"""

# %%
# Sea surface temperatures off Peru by month, 61 years of statsmodels' ``elnino``. Months of one year share what made
# that year warm or cold.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import elnino

from kernpool import KernelCurveDisplay, LocalLinearRegressor

table = elnino.load_pandas().data
temperature = table.drop(columns="YEAR").to_numpy()
month = np.tile(np.arange(1.0, 13.0), len(table))[:, None]
year = np.repeat(table["YEAR"].to_numpy().astype(int), 12)
y = temperature.ravel()

rows = LocalLinearRegressor(bandwidth=0.5).fit(month, y)
clusters = LocalLinearRegressor(bandwidth=0.5).fit(month, y, groups=year)

grid = np.linspace(1, 12, 111)[:, None]
spread = temperature.std(axis=0, ddof=1) / np.sqrt(len(table))

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained")
KernelCurveDisplay.from_estimator(clusters, month, y, band="confidence", ax=axes[0], target="degrees Celsius")
axes[0].set(title="61 clusters of 12 rows", xlabel="month", xticks=range(1, 13))
for words, model, color, style in (("rows", rows, "#bd1f01", "--"), ("years", clusters, "#3f90da", "-")):
    error = model.get_prediction(grid).standard_error
    axes[1].plot(grid, error, style, color=color, linewidth=2, label=f"counting {words}")
axes[1].plot(range(1, 13), spread, "o", color="black", label="of each month's mean, from 61 years")
axes[1].set(title="standard error of the curve", xlabel="month", xticks=range(1, 13), ylim=(0, 0.2))
axes[1].set_ylabel("degrees Celsius")
axes[1].legend(frameon=False, loc="lower left")
axes[1].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Which of them is right? The years are independent of each other, so the mean of one month over 61 years has a standard
# error that every textbook knows: the spread over the root of 61 (the dots). At this bandwidth the curve is nearly that
# mean, and errors that count years meet the dots. Those that count rows are up to a fifth too small.

at = np.array([[3.0], [6.0], [9.0], [12.0]])
for words, model in (("rows", rows), ("years", clusters)):
    print(f"March, June, September, December, counting {words}:", model.get_prediction(at).standard_error.round(3))
print("from the spread of each month:", spread[[2, 5, 8, 11]].round(3))
