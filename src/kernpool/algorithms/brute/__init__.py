"""Brute force: every pair once, in compiled tiles.

Read `brute.py` first, then `compiled.py`: from a problem to the loops.
"""
