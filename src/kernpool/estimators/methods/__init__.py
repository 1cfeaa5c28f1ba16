"""Answers of fitted estimators: predictions as objects, inference, intervals, distributions, bootstrap, class sets.

Read `prediction.py` first, the predictions that a model gives as objects and their explanations; then `inference.py`:
standard errors, intervals and diagnostics of regressors. Most other classes are mixins of a public estimator.
`conditional_distribution.py` has conditional quantiles and distribution functions, `prediction_intervals.py` prediction
intervals and the rows that calibrate them, `bootstrap.py` resampling and significance tests, and `classification.py`
probabilities and prediction sets of classifiers. Of a fit, `row_order.py` finds the order of rows and correlated noise.
"""
