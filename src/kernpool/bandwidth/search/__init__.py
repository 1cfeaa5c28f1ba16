"""Bandwidth search: minimisation of a cross-validation criterion over bandwidths and smoothings.

Read `search.py` first: it chooses the rows and the strategy, and reports the result. `objective.py` is the
criterion with its derivatives, `fast_objectives.py` the same by quicker sums for small tables, `log_loss.py` the
criterion and the search for class probabilities. `common_scale.py` searches one common factor, `per_column.py` one
bandwidth per column, by the minimiser in `gauss_newton.py`. `setup.py` has the settings and the start of every
search, and the ridge; `progress.py` its progress, its time limit, and the choice between the criterion and its quicker
versions.
"""

from kernpool.bandwidth.search.log_loss import search_log_loss
from kernpool.bandwidth.search.search import BandwidthSearch, search_bandwidth

__all__ = ["BandwidthSearch", "search_bandwidth", "search_log_loss"]
