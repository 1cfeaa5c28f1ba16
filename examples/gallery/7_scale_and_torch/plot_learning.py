"""
Learning the bandwidth in a torch layer
=======================================

Gradient descent on the leave-one-out error is bandwidth selection. Without leaving the own row out it is not: then
the best bandwidth is zero, and the layer learns to look at itself.
"""

# %%
# Every second of Engel's households, in thousands of francs. The layer starts far too wide, and learns the logarithm of
# its bandwidth.

import matplotlib.pyplot as plt
import torch
from statsmodels.datasets import engel

from kernpool import NadarayaWatsonRegressor
from kernpool.torch import AttentionPooling, GaussianSimilarity

table = engel.load_pandas().data[::2] / 1000
x, y = (torch.tensor(table[[name]].to_numpy()) for name in ("income", "foodexp"))


def train(exclude_self, steps=100):
    layer = AttentionPooling(GaussianSimilarity(1.0, dtype=x.dtype))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    path = []
    for _ in range(steps):
        loss = torch.mean((layer(x, x, y, exclude_self=exclude_self) - y) ** 2)
        path.append((layer.similarity.bandwidth, loss.item()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return zip(*path, strict=True)


best = NadarayaWatsonRegressor(bandwidth="loo").fit(x.numpy(), y.numpy()[:, 0])
fig, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for exclude_self, color, style in ((True, "#3f90da", "-"), (False, "#bd1f01", "--")):
    bandwidths, losses = train(exclude_self)
    words = "own row left out" if exclude_self else "own row in"
    axes[0].semilogy(bandwidths, style, color=color, linewidth=2, label=words)
    axes[1].semilogy(losses, style, color=color, linewidth=2, label=words)
    print(f"{words}: bandwidth {bandwidths[-1]:.4f}, loss {losses[-1]:.6f}")
axes[0].axhline(best.bandwidth_[0], color="black", linewidth=1, label="NadarayaWatsonRegressor")
axes[1].axhline(best.loo_error_, color="black", linewidth=1)
axes[0].set(xlabel="step", ylabel="bandwidth, thousand francs")
axes[1].set(xlabel="step", ylabel="mean squared error")
axes[0].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The layer and the estimator find the same minimum, one by its gradient and one by its search:

print(f"estimator: bandwidth {best.bandwidth_[0]:.4f}, leave-one-out error {best.loo_error_:.6f}")
