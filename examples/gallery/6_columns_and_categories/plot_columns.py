"""
Relevance of columns
====================

One bandwidth per column, found together. A column that does not help gets a wide one, and so a small relevance.
"""

# %%
# Progression of diabetes by body mass index, by ``s5`` (the logarithm of triglycerides, it seems), and by a column of
# pure noise that we add.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernpool import KernelCurveDisplay, NadarayaWatsonRegressor

table = load_diabetes(as_frame=True, scaled=False).frame
X = table[["bmi", "s5"]].copy()
X["noise"] = np.random.default_rng(0).normal(size=len(X))
y = table["target"]
model = NadarayaWatsonRegressor().fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.6), layout="constrained", width_ratios=(1, 1.5))
axes[0].barh(X.columns[::-1], model.relevance_[::-1], color="#3f90da")
axes[0].set(xlabel="relevance: spread over bandwidth", title="one bandwidth per column")
axes[0].spines[["top", "right"]].set_visible(False)
KernelCurveDisplay.from_estimator(model, X, y, feature="bmi", ax=axes[1], target="progression")
plt.show()

# %%
# Relevance is no test: it says how local the fit is in a column. A test asks whether the column adds anything once the
# others are in.

for column in X.columns:
    result = model.significance_test(column, n_resamples=99)
    print(f"{column:5}  relevance {model.relevance_[list(X.columns).index(column)]:.2f}  p = {result.p_value:.2f}")

# %%
# The error to expect of new rows includes the error of the search. The leave-one-out error of the bandwidths found does
# not. With three columns and hundreds of rows they differ little:

print(f"leave-one-out {model.loo_error_:.0f}, to expect {model.expected_error():.0f}, of a constant {y.var():.0f}")
