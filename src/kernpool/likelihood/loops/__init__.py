"""Compiled loops of local likelihood: Newton's method at each query.

Read `newton.py` first: it is the only file.
"""
