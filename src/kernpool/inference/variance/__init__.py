"""Variance estimation: residuals, noise, standard errors, and cluster-robust standard errors.

Read `residuals.py` first: residuals of the training rows and the local noise variance. `standard_errors.py`
combines them with the norms of linear weights, and has the warnings of unreliable results. `cluster_robust.py` is for
rows in clusters.
"""
