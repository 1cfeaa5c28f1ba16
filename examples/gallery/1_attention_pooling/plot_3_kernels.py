"""
Kernels and their names
=======================

A kernel is the shape by which weight falls with distance. It matters less than the bandwidth, and its name matters
more than it should: what some course material plots as "Epanechnikov" is the triangular kernel.
"""

# %%
# All kernels that are built in, but for the constant one. Distances are in bandwidths. Heights are those of the usual
# formulas, and play no role: a mean divides by the sum of the weights.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import engel

from kernpool import KernelDisplay, NadarayaWatsonRegressor, convert_bandwidth, kernel_names

names = [name for name in kernel_names() if name != "constant"]
fig, axes = plt.subplots(2, 5, figsize=(13, 5), layout="constrained", sharey=True)
KernelDisplay.from_kernels(names, axes=axes)
plt.show()

# %%
# The same number is another smoother with another kernel. On the left all kernels have a bandwidth of 300 francs; on
# the right the one that smooths as much as the Gaussian does at 100 (the canonical bandwidth of Marron and Nolan).

table = engel.load_pandas().data
X, y = table[["income"]].to_numpy(), table["foodexp"].to_numpy()
grid = np.linspace(400, 2000, 300)[:, None]
canonical = convert_bandwidth(100.0, "gaussian", target="canonical")

fig, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
curves = {"one number": [], "canonical": []}
for name in ("gaussian", "epanechnikov", "triangular", "biweight", "boxcar"):
    bandwidths = 300.0, convert_bandwidth(canonical, name, source="canonical")
    for ax, bandwidth, kind in zip(axes, bandwidths, curves, strict=True):
        model = NadarayaWatsonRegressor(name, bandwidth, empty="nearest").fit(X, y)
        curves[kind].append(model.predict(grid))
        ax.plot(grid, curves[kind][-1], label=f"{name}, h = {bandwidth:.0f}")
for ax, kind in zip(axes, curves, strict=True):
    ax.plot(X, y, ".", color="0.8", zorder=0)
    ax.set(title=kind, xlabel="income in francs", xlim=(400, 2000), ylim=(200, 1300))
    ax.legend(frameon=False, loc="upper left")
axes[0].set_ylabel("spent on food")
plt.show()

# %%
# How far the curves are apart, on average over the incomes:

for kind, found in curves.items():
    print(f"{kind}: {np.mean(np.ptp(found, axis=0)):.0f} francs")
