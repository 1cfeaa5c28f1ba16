"""
Prediction intervals
====================

A band around the curve says where the curve is. The next value needs another, wider interval, and a check of how often
it holds.
"""

# %%
# Engel's households. Two thirds are for the fit, a third is kept away from it.

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split
from statsmodels.datasets import engel

from kernpool import CoverageDisplay, KernelCurveDisplay, NadarayaWatsonRegressor

table = engel.load_pandas().data
table = table[table["income"] < 2000]  # beyond are ten households
seen, new = train_test_split(table, test_size=1 / 3, random_state=0)
X, y = seen[["income"]], seen["foodexp"]
model = NadarayaWatsonRegressor().fit(X, y)

fig, ax = plt.subplots(figsize=(8.5, 5), layout="constrained")
KernelCurveDisplay.from_estimator(model, X, y, band="confidence", prediction=0.9, ax=ax, target="spent on food, francs")
ax.plot(new["income"], new["foodexp"], "x", color="black", label="new households")
ax.legend(frameon=False, loc="upper left")
ax.set_xlabel("income, francs")
plt.show()

# %%
# How often do new households lie inside? And is it the same for the poor and the rich? One width for nearly everybody
# ("jackknife+") is right on average and wrong at both ends. The default is as wide as the residuals around a place.

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained", sharey=True)
for ax, method in zip(axes, ("jackknife+", "adaptive"), strict=True):
    CoverageDisplay.from_estimator(
        model, new[["income"]], new["foodexp"], method=method, slices=4, ax=ax, target="households"
    )
    ax.set(xlabel="predicted food expenditure, francs", ylim=(0.3, 1.02))
    ax.text(0.03, 0.04, f'method="{method}"', transform=ax.transAxes)
plt.show()

# %%
# With 75 new households a share is known to a few percent only: the bars say so. What each method promises is a
# sentence:

for method in ("adaptive", "jackknife+", "cv+"):
    print(f"{method}: {model.prediction_interval(new[['income']], method=method).guarantee}")
