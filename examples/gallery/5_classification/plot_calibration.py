"""
Calibration of class probabilities
==================================

Of all tumours that are called malignant with a probability of .7, seven of ten should be. A calibration curve checks
that, and leave-one-out gives it without a test set.
"""

# %%
# Scikit-learn's breast cancer table, with two of its columns, so that the answer is not obvious.

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, log_loss

from kernpool import NadarayaWatsonClassifier

data = load_breast_cancer(as_frame=True)
X = data.data[["mean texture", "mean smoothness"]]
X = (X - X.mean()) / X.std()
malignant = (data.target == 0).to_numpy()

fig, axes = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
for bandwidth, color in (("log_loss", "#3f90da"), (1.5, "#bd1f01"), (0.12, "#e08a00")):
    model = NadarayaWatsonClassifier(bandwidth=bandwidth, prior_share=0.02).fit(X, malignant)
    probability = model.leave_one_out().probability[:, 1]
    words = "found by log loss" if bandwidth == "log_loss" else f"h = {bandwidth}"
    CalibrationDisplay.from_predictions(
        malignant, probability, n_bins=8, strategy="quantile", ax=axes[0], name=words, color=color
    )
    axes[1].hist(probability, bins=20, range=(0, 1), histtype="step", color=color, linewidth=2, label=words)
    print(f"{words}: log loss {log_loss(malignant, probability):.3f}, "
          f"Brier score {brier_score_loss(malignant, probability):.3f}")  # fmt: skip
axes[0].set(title="calibration", xlabel="probability, left out", ylabel="share that is malignant")
axes[1].set(title="distribution of probabilities", xlabel="probability, left out", ylabel="tumours")
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A window that is too wide is underconfident: its small probabilities are too large and its large ones too small, so
# the curve is steeper than the diagonal. One that is too narrow is overconfident. The bandwidth found by log loss lies
# on the diagonal within noise. ``CalibratedClassifierCV`` of scikit-learn corrects errors that are the same everywhere.
