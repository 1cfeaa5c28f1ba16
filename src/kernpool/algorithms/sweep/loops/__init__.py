"""Compiled loops of the sweep.

Read `near.py` first: pairs of a query and its near keys, which the other files complete by far keys. These are
`polynomials.py` (compact kernels, and the windows of queries), `gaussian.py` and `laplace.py`. `cells.py` has the
cells for few queries, and the loops that put numbers in bins.
"""
