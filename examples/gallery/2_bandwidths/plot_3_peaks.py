"""
Peaks and local quadratic fits
==============================

Every smoother that averages cuts off peaks. A local line does so too: across a peak it is level and lies below. A
local parabola bends with the data.
"""

# %%
# Sea surface temperatures off Peru since 1950 (statsmodels' ``elnino``), one value per month. Each year has a peak
# around March.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import elnino

from kernpool import pool

table = elnino.load_pandas().data
temperature = table.drop(columns="YEAR").to_numpy()
month = np.tile(np.arange(12.0), len(table))
value = temperature.ravel()

# %%
# The year is a circle: January follows December. Copies of the table one year before and after close it. What the
# smoother should find is known well, because each month was seen 61 times.

key = np.concatenate([month - 12, month, month + 12])
values = np.tile(value, 3)
means = temperature.mean(axis=0)
grid = np.linspace(0, 11, 200)

fig, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
for ax, bandwidth in zip(axes, (1.0, 2.0), strict=True):
    ax.plot(month, value, ".", color="0.85", zorder=0)
    ax.plot(np.arange(12), means, "o", color="black", label="mean of each month")
    for degree, name, style in ((0, "constant", "-"), (1, "linear", "--"), (2, "quadratic", "-.")):
        curve = pool(grid, key, values, bandwidth=bandwidth, degree=degree)
        ax.plot(grid, curve, style, linewidth=2, label=f"local {name}")
    ax.set(title=f"h = {bandwidth:.0f} month{'s' * (bandwidth > 1)}", xticks=range(12), xticklabels="JFMAMJJASOND")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("degrees Celsius")
axes[1].legend(frameon=False)
plt.show()

# %%
# Constant and line are the same curve here: months are evenly spaced, so the line has nothing to correct. At two months
# they lose a degree and a half at the peak, and one in the trough. The parabola loses little more than a third of that
# at the peak, and a sixth in the trough.

for degree in (0, 1, 2):
    off = pool(np.arange(12.0), key, values, bandwidth=2.0, degree=degree) - means
    print(f"degree {degree}: {off[2]:+.2f} in March, {off[8]:+.2f} in September, {np.abs(off).max():.2f} at most")
