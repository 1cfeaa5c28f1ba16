"""Stacked kernel estimators: local fits and a global kernel ridge regression, averaged by leave-one-out predictions.

Read `kernel_ridge.py` first: the global member, a kernel ridge regression with learned distances and exact
leave-one-out predictions. `stack.py` finds the weights of the members and joins them to one linear smoother,
`inference.py` has its intervals, summary and expected error, and `estimators.py` the public estimators.
"""
