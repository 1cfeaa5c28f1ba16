"""Compiled loops of the sweep.

Read `near_pairs.py` first: pairs of a query and its near keys, which the other files complete by far keys. These are
`polynomial_kernels.py` (compact kernels, and the windows of queries), `gaussian_series.py` and `laplace_kernel.py`.
`bucket_sort.py` puts numbers into bins.
"""
