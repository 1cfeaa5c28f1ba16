"""Sweep: kernel sums in one column, in time that grows with keys plus queries.

Read `sweep.py` first: which kernel is summed how, the run of a sum and its gradients, and the estimate of time.
`sorted_column.py` puts keys and queries in bins along the line. Each family of kernels has a file:
`polynomial_kernels.py` (compact kernels), `gaussian_series.py`, `laplace_kernel.py`, and `windows.py` for all others.
`octaves.py` has local linear fits in windows of the nearest keys. `moment_columns.py` has the moments of
local fits as value columns and the flags of queries to be computed again. The compiled code is in `loops`.
"""
