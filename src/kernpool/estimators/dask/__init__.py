"""Nadaraya-Watson regression on a Dask cluster as an estimator.

Read `regressor.py` first: the estimator. `methods.py` has its methods for resampling, distributions and prediction
intervals, and the sampling of rows from partitions.
"""

import kernpool.dask  # noqa: F401  # names the extra where Dask is missing
