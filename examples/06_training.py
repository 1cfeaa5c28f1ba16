"""Parametric pooling: learn w = 1 / h by gradient descent, each input asking all the others."""

import matplotlib.pyplot as plt
import torch

from kernpool import NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power
from kernpool.torch import AttentionPooling, GaussianSimilarity

sample = make_sine_power(random_state=0)
x, y = torch.tensor(sample.x_train)[:, None], torch.tensor(sample.y_train)[:, None]
query = torch.tensor(sample.x_test)[:, None]
layer = AttentionPooling(GaussianSimilarity(1.0, parameterization="inverse_bandwidth", dtype=x.dtype))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)

losses, fits, weights = [], [], []
for epoch in range(6):
    loss = torch.mean((layer(x, x, y, exclude_self=True) - y) ** 2)
    losses.append(loss.item())
    with torch.no_grad():
        pooled, attention = layer(query, x, y, return_weights=True)
    fits.append(pooled[:, 0].numpy())
    weights.append(attention.numpy())
    print(f"epoch {epoch}: loss {loss.item():.4f}, w {layer.similarity.w.item():.3f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

best = NadarayaWatsonRegressor(bandwidth="loo").fit(sample.x_train[:, None], sample.y_train).bandwidth_[0]
print(f"trained for long enough, w would be 1 / h = {1 / best:.3f}, where leave-one-out has its minimum")

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
left.plot(losses, "o-")
left.set(xlabel="epoch", ylabel="mean loss")
middle.plot(sample.x_train, sample.y_train, "o", color="0.5", alpha=0.5, label="training samples")
middle.plot(sample.x_test, sample.y_truth, "k--", label="truth")
for epoch in (0, 5):
    middle.plot(sample.x_test, fits[epoch], label=f"epoch {epoch}")
middle.set(xlabel="x", ylabel="y")
middle.legend(frameon=False)
image = right.imshow(weights[-1], cmap="Reds", aspect="auto")
right.set(title="weights after training", xlabel="sorted training inputs", ylabel="sorted test inputs")
fig.colorbar(image, ax=right)
fig.savefig("training.png")
