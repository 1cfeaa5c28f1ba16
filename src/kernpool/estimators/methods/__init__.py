"""Methods of fitted estimators beyond prediction: inference, intervals, distributions, bootstrap, class sets.

Each class is a mixin of a public estimator. Read `inference.py` first: standard errors, intervals and diagnostics
of regressors. `distribution.py` has conditional quantiles and distribution functions, `prediction_intervals.py`
prediction intervals, calibrated by the rows that `calibration.py` reads, `bootstrap.py` resampling and significance
tests, and `classification.py` probabilities and prediction sets of classifiers.
"""
