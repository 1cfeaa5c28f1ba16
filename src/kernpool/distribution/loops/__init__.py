"""Compiled loops of conditional distributions: weighted quantiles, CRPS and sums smoothed in y.

Read `pairs.py` first: pair by pair, over the keys in the order of their values. `line.py` is the faster search for
neighbouring queries on one column.
"""
