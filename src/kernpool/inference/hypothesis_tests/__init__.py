"""Hypothesis tests for regression curves: significance of columns, and specification.

Read `base.py` first: reading of the data, resampling under the null hypothesis, and the test result.
`significance.py` tests whether columns matter, `specification.py` whether a parametric model fits.
"""
