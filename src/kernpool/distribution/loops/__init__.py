"""Compiled loops of conditional distributions: weighted quantiles, CRPS and sums smoothed in y.

`ordered_values.py` has them, pair by pair, over the keys in the order of their values.
"""
