"""
Test of equal curves
====================

Two groups, two curves. Noise alone makes them differ somewhere. The test asks whether they differ by more than that,
and the shade shows where both would be if they were one.
"""

# %%
# 442 patients with diabetes (scikit-learn): body mass index, and how far the disease had progressed a year later. The
# column ``sex`` has two values, and the documentation of the table does not say which is which.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernpool import CurveComparisonDisplay, compare_curves

table = load_diabetes(as_frame=True, scaled=False).frame
x, y = table["bmi"].to_numpy(), table["target"].to_numpy()
sex = np.where(table["sex"] == 1, "sex 1", "sex 2")

equal = compare_curves(x, y, sex, bandwidth=2.0, n_resamples=199)
print(equal)

# %%
# The null hypothesis is that body mass says the same about both.

display = CurveComparisonDisplay.from_result(equal, x, y, sex, feature="body mass index", target="progression")
plt.show()

# %%
# The p-value is at the edge. The curves part around a body mass index of 33, and beyond 38 there are too few patients
# to tell. (The bandwidth of 2 is given. Leave-one-out finds one so wide that both curves are straight lines, with p =
# .03.)
#
# Another grouping of the same patients: blood pressure below and above its median. Now the curves are not equal. But
# they may well be parallel, a constant apart.

pressure = np.where(table["bp"] > table["bp"].median(), "high pressure", "low pressure")
equal = compare_curves(x, y, pressure, bandwidth=2.0, n_resamples=199)
parallel = compare_curves(x, y, pressure, null="parallel", bandwidth=2.0, n_resamples=199)
print(f"equal: p = {equal.p_value:.3f}; parallel: p = {parallel.p_value:.3f}")
CurveComparisonDisplay.from_result(parallel, x, y, pressure, feature="body mass index", target="progression")
plt.show()

# %%
# A small p-value says that curves differ, not why. A large one says that these rows do not show a difference, not that
# there is none.
