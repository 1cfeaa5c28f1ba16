"""Loess: local regression in windows of the nearest rows, with the statistics of Cleveland and Devlin.

Read `robust_fit.py` first: the passes of a fit and its statistics. `estimator.py` has the estimator, its predictions
and its summary.
"""
