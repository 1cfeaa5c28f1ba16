"""Training of a learned similarity: encoders of columns and the optimisation loop.

Read `training.py` first: the loop, and the functions that the estimators of `kernpool.estimators.learned` call.
`encoders.py` has the maps that are learned.
"""
