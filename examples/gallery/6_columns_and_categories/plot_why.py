"""
Why did the model say that?
===========================

A prediction is a weighted sum of outputs. So it can be taken apart exactly: by training rows, and by columns.
"""

# %%
# Progression of diabetes of 442 patients, by body mass index, blood pressure and ``s5`` (the logarithm of
# triglycerides, it seems). Patient 332 is predicted far above the average. The rows behind it, largest weight first:

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, row_diagnostics

table = load_diabetes(as_frame=True, scaled=False).frame
X, y = table[["bmi", "bp", "s5"]], table["target"].rename("progression")
patient = X.iloc[[332]]
means = NadarayaWatsonRegressor().fit(X, y)
prediction = means.get_prediction(patient)
explanation = prediction.explain(k=6)
print(explanation)

# %%
# A row contributes its weight times the distance of its output from the average:

_, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.barh([str(row) for row in explanation.row[0]], explanation.contribution[0])
ax.invert_yaxis()
ax.set(title="the six rows of largest weight", xlabel="contribution to the prediction", ylabel="training row")
plt.show()

# %%
# The influence of a row is exact: a fit without it, at the same bandwidths, predicts as much more or less.

found = prediction.explain(k=1)
row = found.row[0, 0]
without = NadarayaWatsonRegressor(bandwidth=means.bandwidth_).fit(X.drop(index=row), y.drop(index=row))
change = without.predict(patient)[0] - found.prediction[0]
print(f"without row {row}: {change:+.4f}; influence {found.influence[0, 0]:+.4f}")

# %%
# A local plane has slopes: its prediction is the mean of the rows around the patient, and a term for each column.

planes = LocalLinearRegressor().fit(X, y)
print(planes.get_prediction(patient).additive_terms())

# %%
# And the table as a whole: which rows carry many predictions, which are far from what the others predict, and which
# no prediction rests on.

print(row_diagnostics(means))
