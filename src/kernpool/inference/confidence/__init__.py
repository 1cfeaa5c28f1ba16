"""Confidence intervals and simultaneous confidence bands for curves and their slopes.

Read `intervals.py` first: pointwise intervals, and the options of both. `simultaneous_bands.py` has the critical
values of bands, by the tube formula or the multiplier bootstrap.
"""
