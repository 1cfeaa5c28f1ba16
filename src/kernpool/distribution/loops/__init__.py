"""Compiled loops of conditional distributions: weighted quantiles, CRPS and sums smoothed in y.

Read `ordered_values.py` first: pair by pair, over the keys in the order of their values. `one_column_quantile.py` is
the faster search for neighbouring queries on one column.
"""
