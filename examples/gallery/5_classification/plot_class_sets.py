"""
Prediction sets of classes
==========================

A probability of 0.6 has no guarantee. A prediction set at level 0.9 holds the true class nine times of ten, and where
classes overlap the set has to be larger.
"""

# %%
# Three species of iris (scikit-learn). Two of them overlap in the measurements of the sepal.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from kernpool import ClassSetDisplay, NadarayaWatsonClassifier

data = load_iris(as_frame=True)
X = data.data[["sepal length (cm)", "sepal width (cm)"]]
species = data.target_names[data.target].astype(str)
model = NadarayaWatsonClassifier().fit(X, species)

fig, ax = plt.subplots(figsize=(8.5, 5.4), layout="constrained")
ClassSetDisplay.from_estimator(model, X, species, level=0.9, ax=ax)
plt.show()

# %%
# Setosa stands apart, so its sets have one member. Between versicolor and virginica both have to be named.

print(model.predict_set(X.iloc[[0, 133, 105]], level=0.9))

# %%
# The petals tell the species apart. With all four columns the sets are smaller, at the same level. Fewer than one
# flower in ten is wrong there, so the smallest sets of level 90 % are empty for some flowers between two species, if
# sets may be empty:

four = NadarayaWatsonClassifier().fit(data.data, species)
for words, fitted, columns in (("two columns", model, X), ("four columns", four, data.data)):
    size = fitted.predict_set(columns, level=0.9, allow_empty=True).member.sum(axis=1)
    wrong = np.mean(fitted.leave_one_out().probability.argmax(axis=1) != data.target)
    print(f"{words}: {size.mean():.2f} species per set, {wrong:.1%} of the flowers wrong when left out")
