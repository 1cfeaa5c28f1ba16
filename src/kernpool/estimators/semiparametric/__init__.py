"""Semiparametric regression: coefficients next to a curve.

`partially_linear.py` has the estimator; the numbers of coefficients are in `kernpool.inference.coefficients`.
"""
