"""Hypothesis tests for regression curves: significance, specification, monotonicity, equality of curves.

Read `base.py` first: reading of the data, resampling under the null hypothesis, and the test result.
`significance.py` tests whether columns matter, `specification.py` whether a parametric model fits,
`monotonicity.py` whether a curve is monotone, `curve_equality.py` whether the curves of groups are equal or
parallel.
"""
