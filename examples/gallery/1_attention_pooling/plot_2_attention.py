"""
Attention weights of a query
============================

Rows of the picture are queries, columns are keys, ink is weight. This is the attention map of a transformer, with
household incomes in the place of tokens.
"""

# %%
# Engel's 235 households of 1857 ship with statsmodels: income and what was spent on food, in Belgian francs. The
# picture has every fifth of them. Sorted by income, similar households are neighbours, so the weights lie around the
# diagonal.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import engel

from kernpool import AttentionDisplay, NadarayaWatsonRegressor

table = engel.load_pandas().data.sort_values("income")
X, y = table[["income"]].to_numpy(), table["foodexp"].to_numpy()
some, their = X[:225:5], y[:225:5]  # every fifth, without the ten richest

fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
for ax, bandwidth in zip(axes, (25.0, 100.0, 1000.0), strict=True):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(some, their)
    AttentionDisplay.from_estimator(model, some, ax=ax)
    ax.set(title=f"h = {bandwidth:.0f} francs", xlabel="households by income (keys)", ylabel="")
axes[0].set_ylabel("households by income (queries)")
plt.show()

# %%
# The ink darkens to the lower right, where incomes lie far apart: a window holds few households there, and each weighs
# more. The narrowest window follows single households. The widest one gives nearly the same weight to all, and the
# curve turns into the mean. How many rows a prediction rests on is its effective sample size:

model = NadarayaWatsonRegressor(bandwidth=150.0).fit(X, y)
for income in (500, 1000, 2000, 4000):
    rows = model.get_prediction([[income]]).effective_sample_size[0]
    print(f"income {income}: food {model.predict([[income]])[0]:.0f}, from {rows:.1f} households in effect")

# %%
# A query far from all keys is no division of zero by zero. It attends to the nearest household alone, and a warning
# says that no household is like it.

far = NadarayaWatsonRegressor(bandwidth=40.0).fit(X, y)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(far.predict([[1e6]]), "is what the richest household spent:", y[-1])
    print("largest weight:", np.max(far.attention_weights([[1e6]])))
print(caught[0].category.__name__, "-", caught[0].message)
