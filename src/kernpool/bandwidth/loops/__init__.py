"""Compiled loops of the bandwidth search: weights, sums and derivatives over all pairs of training rows.

Read `all_pairs.py` first: it is the only file.
"""
