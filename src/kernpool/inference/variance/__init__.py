"""Variance estimation: residuals, noise, and standard errors of independent and of dependent rows.

Read `residuals.py` first: residuals of the training rows and the local noise variance. `standard_errors.py`
combines them with the norms of linear weights, and has the warnings of unreliable results. `dependent_rows.py` is for
rows that share noise.
"""
