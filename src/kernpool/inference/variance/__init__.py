"""Variance estimation: residuals, noise, standard errors, and cluster-robust standard errors.

Read `residuals.py` first: residuals of the training rows and the local noise variance. `standard_errors.py`
combines them with the norms of linear weights, and has the warnings of unreliable results. `dependent_rows.py` is for
rows in clusters, and rows next to each other in an order.
"""
