"""Wines of three cultivars: a linear map learns which of them are alike, and shows what one wine attends to."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from kernpool import LearnedPoolingClassifier, NadarayaWatsonClassifier

COLOURS, MARKERS = ("#3f90da", "#bd1f01", "#717581"), ("o", "s", "^")

wine = load_wine()
X, X_test, y, y_test = train_test_split(wine.data, wine.target, test_size=0.4, stratify=wine.target, random_state=0)

columns = NadarayaWatsonClassifier().fit(X, y)
learned = LearnedPoolingClassifier("linear", output_size=2, warm_start_bandwidth=False, random_state=0).fit(X, y)
for name, model in (("a bandwidth per column", columns), ("a learned map to the plane", learned)):
    right = model.predict_proba(X_test)[np.arange(len(y_test)), y_test]
    loss = -np.log(right.clip(1e-6)).mean()
    print(f"{name:26} accuracy {model.score(X_test, y_test):.3f}, negative log likelihood {loss:.3f}")

# The wine that the learned map is least sure of; change the number to ask for another.
query = int(learned.predict_proba(X_test).max(axis=1).argmin())
weights = learned.attention_weights(X_test[[query]])[0]
most = np.argsort(-weights)[:8]

fig, (plane, bars) = plt.subplots(1, 2, figsize=(11, 4.8), width_ratios=[1.4, 1], layout="constrained")
keys, place = learned.encode(X), learned.encode(X_test[[query]])[0]
for cultivar, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
    of_it = y == cultivar
    size = 12 + 600 * weights[of_it]
    plane.scatter(*keys[of_it].T, s=size, c=colour, marker=marker, alpha=0.7, label=f"cultivar {cultivar}")
plane.plot(*place, "*", color="#000000", markersize=14, label=f"the query, cultivar {y_test[query]}")
angle = np.linspace(0.0, 2.0 * np.pi, 200)
for radius, label in ((1.0, "one and two bandwidths from it"), (2.0, None)):
    plane.plot(place[0] + radius * np.cos(angle), place[1] + radius * np.sin(angle), "--", color="0.5", label=label)
plane.set(
    title="where the map puts the wines",
    xlabel="first direction, in bandwidths",
    ylabel="second direction, in bandwidths",
)
plane.set_aspect("equal", adjustable="datalim")
for handle in plane.legend(frameon=False, loc="lower left").legend_handles[:3]:
    handle.set_sizes([30])

bars.barh(range(len(most)), weights[most], color=[COLOURS[y[row]] for row in most])
bars.set_yticks(range(len(most)), [f"wine {row}, cultivar {y[row]}" for row in most])
bars.invert_yaxis()
bars.set(title="what it attends to most", xlabel="weight")
bars.locator_params(axis="x", nbins=5)
for ax in (plane, bars):
    ax.spines[["top", "right"]].set_visible(False)
fig.savefig("learned-similarity.png", dpi=120)

shares = learned.predict_proba(X_test[[query]])[0]
print(f"the query is of cultivar {y_test[query]}; shares of attention: {shares.round(3).tolist()}")
# How far a wine moves in the plane when a column changes by its spread: what the map looks at.
linear = learned.similarity_.encoder
lengths = torch.linalg.norm(linear.scale * linear.weight, dim=0).detach().numpy()
for column in np.argsort(-lengths)[:5]:
    print(f"  {wine.feature_names[column]:30} {lengths[column]:.2f} bandwidths per spread")
