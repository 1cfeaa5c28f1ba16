"""
Confidence intervals and simultaneous bands
===========================================

Two different bands. A confidence interval holds at one point that was chosen beforehand. A simultaneous band holds for
the whole curve at once, so that you may look for its most surprising point.
"""

# %%
# Food expenditure of Engel's households again, by income.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import engel

from kernpool import KernelCurveDisplay, LocalLinearRegressor, ResidualDisplay

table = engel.load_pandas().data
table = table[table["income"] < 2500]  # beyond are three households, too few for any statement
X, y = table[["income"]], table["foodexp"]
model = LocalLinearRegressor().fit(X, y)

fig, ax = plt.subplots(figsize=(8.5, 5), layout="constrained")
KernelCurveDisplay.from_estimator(model, X, y, band="simultaneous", ax=ax, target="spent on food, francs")
ax.set_xlabel("income, francs")
plt.show()

# %%
# Is the Engel curve straight? A straight line has to stay within the band everywhere. The one of least squares:

grid = np.linspace(X["income"].min(), X["income"].max(), 101)
band = model.confidence_interval(pd.DataFrame({"income": grid}), simultaneous=True)
line = np.polynomial.Polynomial.fit(X["income"], y, 1)(grid)
outside = (line < band.lower) | (line > band.upper)
print(f"the straight line leaves the band at {outside.sum()} of {len(grid)} places")
print(f"width at 1000 francs: {np.interp(1000, grid, band.upper - band.lower):.0f} francs")

# %%
# So these households do not say that it is not straight, although the curve bends. The noise is not the same
# everywhere. Rich households differ more, and intervals are wider there because of it: the default variance is local.

ResidualDisplay.from_estimator(model, target="spent on food", marked=4)
plt.show()
