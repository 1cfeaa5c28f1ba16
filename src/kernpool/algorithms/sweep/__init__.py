"""Sweep: kernel sums in one column, in time that grows with keys plus queries.

Read `sweep.py` first: which kernel is summed how. `dispatch.py` runs a sum and estimates its time; `sorted_column.py`
puts keys and queries in bins along the line. Each family of kernels has a file: `polynomials.py` (compact kernels),
`gaussian.py`, `laplace.py`, and `windows.py` for all others. `few_queries.py` serves few queries and many keys, with
the cells of `binned.py`. `series_gradients.py` has Gaussian gradients in linear time, `moment_columns.py` the moments
of local fits as value columns and the mark of queries to be computed again. The compiled code is in `loops`.
"""
