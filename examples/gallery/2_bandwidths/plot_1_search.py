"""
Bandwidth selection
===================

Leave one row out, predict it from the others, and take the bandwidth with the least error. The path shows how much
that minimum is worth: some are sharp, and some are flat for a decade.
"""

# %%
# Sunspots per year since 1700, from statsmodels. The number goes up and down every eleven years.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import sunspots

from kernpool import BandwidthPathDisplay, KernelCurveDisplay, LocalLinearRegressor

table = sunspots.load_pandas().data
X, y = table[["YEAR"]].to_numpy(), table["SUNACTIVITY"].to_numpy()

model = LocalLinearRegressor(bandwidth="loo").fit(X, y)
wide = LocalLinearRegressor(bandwidth=12.0).fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained", width_ratios=(1, 1.8))
BandwidthPathDisplay.from_estimator(model, ax=axes[0])
KernelCurveDisplay.from_estimator(model, X, y, ax=axes[1], target="sunspots per year")
grid = np.linspace(1700, 2008, 400)[:, None]
axes[1].plot(grid, wide.predict(grid), color="black", linestyle="--", label="h = 12 years, by hand")
axes[1].legend(frameon=False, loc="upper left")
axes[1].set_xlabel("year")
plt.show()

# %%
# The minimum is at a third of a year, where a line goes through the two neighbours of each year and predicts it best.
# For the long-run trend choose the bandwidth by hand: no criterion for the next row finds it. At 12 years the
# eleven-year cycle is gone, and the quiet decades around 1810 and 1900 remain.

print(model.bandwidth_search_)

# %%
# Other criteria punish a curve that follows every year, and find about three times as wide a bandwidth:

for criterion in ("loo", "aicc", "gcv"):
    other = LocalLinearRegressor(bandwidth=criterion).fit(X, y)
    print(f"{criterion:5} h = {other.bandwidth_[0]:.2f} years, leave-one-out error {other.leave_one_out().error:.0f}")
