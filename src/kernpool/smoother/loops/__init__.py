"""Compiled loops of linear smoothers: local polynomial fits in nearest-neighbour windows.

Read `nearest_polynomials.py` first: it is the only file.
"""
