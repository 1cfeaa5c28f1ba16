"""
Attention to the training images of a digit
===========================================

A classifier that can show its reasons. Each digit attends to those training images that are like it, and its
probability is the weight of their labels.
"""

# %%
# 1797 handwritten digits of 8 by 8 pixels (scikit-learn). Keys are the first 1200, queries come from the rest.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernpool import NadarayaWatsonClassifier

digits = load_digits()
X, label = digits.data, digits.target
model = NadarayaWatsonClassifier(bandwidth=6.0).fit(X[:1200], label[:1200])
X_new, right = X[1200:], label[1200:]
print(f"right: {model.score(X_new, right):.1%} of {len(right)} new digits")

# %%
# Two that were easy, and two that went wrong. Behind each query are the five images with the largest weights.

predicted = model.predict(X_new)
wrong = np.flatnonzero(predicted != right)[[0, 3]]
shown = np.r_[np.flatnonzero(predicted == right)[[3, 8]], wrong]
weight = model.attention_weights(X_new[shown])

fig, axes = plt.subplots(4, 6, figsize=(9, 6.6), layout="constrained")
for row, i, alpha in zip(axes, shown, weight, strict=True):
    row[0].imshow(X_new[i].reshape(8, 8), cmap="Reds")
    row[0].set_title(f"a {right[i]}, read as {predicted[i]}", fontsize=10)
    for ax, j in zip(row[1:], np.argsort(alpha)[::-1], strict=False):
        ax.imshow(X[j].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"{label[j]}, weight {alpha[j]:.2f}", fontsize=10)
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Where weights are spread over images of several digits, so are the probabilities. Prediction sets make use of that.
# The rows come in the order of the file and not in random order, so the last 597 need not be exchangeable with the
# first 1200; here the sets hold less often than they say.

sets = model.predict_set(X_new, level=0.98)
inside = sets.member[np.arange(len(right)), right]
print(f"sets of level 98 %: {sets.member.sum(axis=1).mean():.2f} digits each, {inside.mean():.1%} hold the right one")
