"""
Rows that come in clusters
==========================

Twelve months of a year are not twelve independent rows: an El Nino warms them all. Errors that count rows are then too
small. Errors that count years are not.
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

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained", sharey=True)
for ax, model, words in zip(axes, (rows, clusters), ("732 independent rows", "61 clusters of 12 rows"), strict=True):
    KernelCurveDisplay.from_estimator(model, month, y, band="confidence", ax=ax, target="degrees Celsius")
    ax.set(title=words, xlabel="month", xticks=range(1, 13))
axes[1].set_ylabel("")
plt.show()

# %%
# The curve is the same. What differs is how well it is known.

at = np.array([[3.0], [6.0], [9.0], [12.0]])
for words, model in (("rows", rows), ("years", clusters)):
    print(f"standard errors in March, June, September, December, counting {words}:", model.standard_error(at).round(3))

# %%
# Which of them is right? The mean of a month over 61 years is nearly such a curve at one place, and its years are
# independent: its standard error is the spread between years over the root of 61. Halves of the years say the same:

halves = [temperature[::2].mean(axis=0), temperature[1::2].mean(axis=0)]
print("from the spread between years:", (temperature.std(axis=0, ddof=1) / np.sqrt(61))[[2, 5, 8, 11]].round(3))
print("half the difference of odd and even years, root mean square:",
      np.sqrt(np.mean((halves[0] - halves[1]) ** 2) / 4).round(3))  # fmt: skip
