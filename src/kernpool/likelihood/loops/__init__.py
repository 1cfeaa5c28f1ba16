"""Compiled loops of local likelihood: Newton's method at each query.

Read `pair_sums.py` first: it is the only file.
"""
