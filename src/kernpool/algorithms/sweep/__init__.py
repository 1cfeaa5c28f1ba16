"""Sweep: one column, in time that grows with the keys plus the queries.

Read `sweep.py` first, then `line.py`: everything in bins along the line. Each family of kernels has its file:
`polynomials.py` (compact), `gaussian.py`, `laplace.py`, and `windows.py` for all others.
"""
