"""Sweep: kernel sums in one column, in time that grows with keys plus queries.

Read `sweep.py` first: which kernel is summed how, the run of a sum and its gradients, and the estimate of time.
`sorted_column.py` puts keys and queries in bins along the line. Each family of kernels has a file:
`polynomial_kernels.py` (compact kernels), `infinite_kernels.py` (Gaussian, Laplace), and `windows.py` for all others.
`octaves.py` sums over windows of the nearest keys. The compiled code is in `loops`.
"""
