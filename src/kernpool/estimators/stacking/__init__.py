"""Stacked kernel estimators: local fits and a global kernel ridge regression, averaged by leave-one-out predictions.

Read `kernel_ridge.py` first: the global member, a kernel ridge regression with exact leave-one-out predictions.
`metric.py` fits it to a table, with learned distances, and `averaging.py` finds the weights of the members.
"""
