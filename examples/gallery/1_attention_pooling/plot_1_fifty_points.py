"""
Kernel regression on 50 points
==============================

A prediction is a weighted mean of all values. The bandwidth says how fast the weight falls with the distance. Watch
the weights of one query: they follow the bandwidth, and the curve follows the weights.
"""

# %%
# The truth is ``2 sin(x) + x^0.8``, seen through noise at fifty places. Three bandwidths: too small, the one that
# leave-one-out finds, and too large.

import matplotlib.pyplot as plt
import numpy as np

from kernpool import KernelCurveDisplay, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
X, y = sample.x_train[:, None], sample.y_train
query = np.array([[2.5]])
found = NadarayaWatsonRegressor().fit(X, y).bandwidth_[0]


def truth(x):
    return 2 * np.sin(x) + x**0.8


fig, axes = plt.subplots(2, 3, figsize=(12, 6.2), layout="constrained", sharex=True, sharey="row", height_ratios=(2, 1))
for (above, below), bandwidth, words in zip(
    axes.T, (0.04, found, 2.0), ("too small", "leave-one-out", "too large"), strict=True
):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
    KernelCurveDisplay.from_estimator(model, X, y, truth=truth, ax=above)
    above.plot(query[0], model.predict(query), "D", color="black", markersize=8, zorder=5)
    above.set(title=f"{words}: h = {bandwidth:.2f}", xlabel="", ylabel="y" if above is axes[0, 0] else "")
    weight = model.attention_weights(query)[0]
    below.vlines(X[:, 0], 0, weight, color="#3f90da", linewidth=2.5)
    below.axvline(query[0, 0], color="black", linewidth=1, linestyle=":")
    rows = model.get_prediction(query).effective_sample_size[0]
    below.set(xlabel="x", title=f"weights: {rows:.1f} rows in effect")
    below.spines[["top", "right"]].set_visible(False)
axes[1, 0].set_ylabel("weight")
plt.show()

# %%
# Which of them is right? The mean squared distance to the truth, and the leave-one-out error, which needs no truth:

for bandwidth in (0.04, found, 2.0):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y)
    distance = np.mean((model.predict(sample.x_test[:, None]) - sample.y_truth) ** 2)
    print(f"h = {bandwidth:.2f}: to the truth {distance:.3f}, leave-one-out {model.leave_one_out().error:.3f}")
