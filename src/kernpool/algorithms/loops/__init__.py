"""Compiled code that several algorithms share.

Read `kernel_weights.py`, the only file: exponentials, kernel weights of a tile of keys, and a check of sums.
"""
