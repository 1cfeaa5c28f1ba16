"""
Categorical columns: pooling between groups
===========================================

Eleven firms with five years each. One curve for all of them forgets that they differ. One for each firm has five
rows. A smoothed category lies between, and leave-one-out finds where.
"""

# %%
# Grunfeld's investment data (statsmodels), every fourth year of twenty. The column ``firm`` is text, so the frame makes
# it an unordered category.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import grunfeld

from kernpool import NadarayaWatsonRegressor

table = grunfeld.load_pandas().data
table = table[table["year"] % 4 == 3].copy()
table["log value"] = np.log(table["value"])
table["log investment"] = np.log(table["invest"])
X, y = table[["log value", "firm"]].astype({"firm": object}), table["log investment"]

models = {
    "one curve for all": NadarayaWatsonRegressor().fit(X[["log value"]], y),
    "smoothed": NadarayaWatsonRegressor().fit(X, y),
    "each firm alone": NadarayaWatsonRegressor(bandwidth=0.2, smoothing=[0.0]).fit(X, y),
}
for words, model in models.items():
    error = model.leave_one_out().error
    print(f"{words}: leave-one-out error {error:.3f}, bandwidth {model.bandwidth_[0]:.3f}, lambda {model.smoothing_}")

# %%
# Lambda is the share of weight that goes to the ten other firms together (Aitchison and Aitken): at 0 each firm is
# alone, and at 10/11 there is one curve for all. What that does to four of the firms:

firms = ["General Motors", "US Steel", "General Electric", "Westinghouse"]
colors = ("#3f90da", "#bd1f01", "#e08a00", "#832db6")
fig, axes = plt.subplots(1, 2, figsize=(12.5, 5), layout="constrained", sharey=True)
for ax, words in zip(axes, ("one curve for all", "smoothed"), strict=True):
    for firm, color in zip(firms, colors, strict=True):
        rows = table[table["firm"] == firm]
        ax.plot(rows["log value"], rows["log investment"], "o", color=color, alpha=0.6, markersize=5)
        grid = X.iloc[[0] * 60].copy()
        grid["firm"] = firm
        grid["log value"] = np.linspace(rows["log value"].min(), rows["log value"].max(), 60)
        curve = models[words].predict(grid[models[words].feature_names_in_])
        ax.plot(grid["log value"], curve, color=color, linewidth=2, label=firm)
    ax.set(title=words, xlabel="log of the value of the firm")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("log of investment")
axes[1].legend(frameon=False)
plt.show()

# %%
# Years of one firm are not independent: the errors are those of another year of a known firm, not of a new firm. For
# that, fit with ``groups=table["firm"]`` and without the column.

alone = models["one curve for all"]
new_firm = NadarayaWatsonRegressor().fit(X[["log value"]], y, groups=table["firm"].astype(object))
print(f"error of rows of a known firm {alone.loo_error_:.3f}, of a new firm {new_firm.loo_error_:.3f}")
