"""Stacked kernel estimators: local fits and global kernel ridge regressions, averaged by leave-one-out predictions.

Read `kernel_ridge.py` first: a global member, a kernel ridge regression with exact leave-one-out predictions, of
columns that `standard_columns.py` makes of a table, with a kernel of `ridge_kernels.py` that adapts to the fit.
`stack.py` finds the weights of the members and joins them to one linear smoother, `inference.py` has its intervals,
summary and expected error, and `estimators.py` the public estimators.
"""
