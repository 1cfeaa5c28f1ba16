"""
SiZer: is the bump real?
========================

Every bandwidth tells another story. SiZer looks at all of them and colors where the curve rises or falls by more than
noise explains.
"""

# %%
# The flow of the Nile at Aswan, 1871 to 1970 (statsmodels). Around 1899 it dropped.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import nile

from kernpool import KernelCurveDisplay, LocalLinearRegressor, SiZerDisplay, monotonicity_test

table = nile.load_pandas().data
X, y = table[["year"]].to_numpy(), table["volume"].to_numpy()
model = LocalLinearRegressor(bandwidth="aicc").fit(X, y)

fig, axes = plt.subplots(2, 1, figsize=(9, 7.5), layout="constrained", sharex=True)
KernelCurveDisplay.from_estimator(model, X, y, band="simultaneous", ax=axes[0], target="flow, $10^8$ cubic meters")
SiZerDisplay.from_estimator(model, ax=axes[1])
axes[0].set_xlabel("")
axes[1].set_xlabel("year")
plt.show()

# %%
# The fall around 1899 is there at bandwidths from a few years to decades. The waves of the curve after 1910 are not: no
# bandwidth calls them certain.

result = monotonicity_test(X[:, 0], y, direction="decreasing", n_resamples=499)
print(result)

# %%
# And the test agrees: a flow that never rises is compatible with these hundred years. All of it takes years to be
# independent, which they nearly are once the drop is taken out:

rest = y - model.predict(X)
print(f"correlation of neighbouring residuals: {np.corrcoef(rest[1:], rest[:-1])[0, 1]:.2f}")
