"""Prediction sets for classification: they contain the class of a new row with given probability.

Read `prediction_sets.py` first: how a set follows from scores, and the result. `class_scores.py` has the
nonconformity scores of classes and the p-values of full conformal prediction.
"""
