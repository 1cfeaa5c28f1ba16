"""Nadaraya-Watson regression on a Dask cluster as an estimator.

Read `regressor.py` first: it is the only file.
"""

import kernpool.dask  # noqa: F401  # names the extra where Dask is missing
