"""Semiparametric regression: coefficients next to a curve, and coefficients that vary with other columns.

`partially_linear.py` and `varying_coefficients.py` have the estimators, `coefficient_regressor.py` what they have in
common. The numbers are in `kernpool.inference.coefficients` and `kernpool.smoother.local_least_squares`.
"""
