"""
Extrapolation and empty windows
===============================

What is the answer where there are no data? A Gaussian never ends, and far away the nearest key takes all the weight.
A kernel that ends leaves the window empty, and you say what that means.
"""

# %%
# Weekly carbon dioxide at Mauna Loa. Only 1980 to 1995 are kept; the curve is asked for from 1974 to 2001.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import co2

from kernpool import EmptyWindowWarning, ExtrapolationWarning, LocalLinearRegressor, NadarayaWatsonRegressor

for category in (EmptyWindowWarning, ExtrapolationWarning):
    warnings.simplefilter("ignore", category)  # which this picture is about

table = co2.load_pandas().data.dropna()
year = table.index.year + (table.index.day_of_year - 1) / 365.25
near = (year > 1980) & (year < 1995)
X, y = np.asarray(year)[near][:, None], table["co2"].to_numpy()[near]
grid = np.linspace(1974, 2001, 400)[:, None]

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.plot(X, y, ".", color="0.8", label="weekly measurements")
for empty in ("nearest", "mean"):
    model = NadarayaWatsonRegressor("epanechnikov", 2.0, empty=empty).fit(X, y)
    ax.plot(grid, model.predict(grid), label=f'local constant, empty="{empty}"', linewidth=2)
line = LocalLinearRegressor("gaussian", 2.0).fit(X, y)
ax.plot(grid, line.predict(grid), "--", color="black", label="local linear, Gaussian")
ax.axvspan(1974, X.min() - 2, color="0.95", zorder=0)
ax.axvspan(X.max() + 2, 2001, color="0.95", zorder=0)
ax.text(1974.3, 363, "no key within\none bandwidth", va="top")
ax.set(xlabel="year", ylabel="CO2 in parts per million", xlim=(1974, 2001))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# By default a regressor answers with the nearest row, and one warning; with ``empty="nan"`` the answer is ``nan``, and
# never a silent zero.

model = NadarayaWatsonRegressor("epanechnikov", 2.0).fit(X, y)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(model.predict([[1970.0], [1990.0]]))
print(caught[0].category is EmptyWindowWarning, "-", caught[0].message)

# %%
# Whether a place is extrapolation can be asked beforehand. The line looks better and knows no more: beyond the data it
# goes on with the slope of the last weeks that it reaches, season included.

print("within reach:", model.get_prediction([[1970.0], [1979.0], [1990.0]]).has_support)
print("rows in effect:", line.get_prediction([[1970.0], [1979.0], [1990.0]]).effective_sample_size.round(1))
