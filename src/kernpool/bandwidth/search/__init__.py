"""Bandwidth search: minimisation of a cross-validation criterion over bandwidths and smoothings.

Read `search.py` first: it chooses the rows, how a criterion is evaluated and the driver, and reports the result.
`setup.py` has the options and the rows of a search. `objective.py` is the criterion with its derivatives,
`fast_objectives.py` the same by quicker sums for small tables. `one_factor.py` searches one common
factor, `per_column.py` one bandwidth per column by the Gauss-Newton steps of `descent.py`; `log_loss.py` is the
criterion, and the descent, for class probabilities. `held_out.py` makes bandwidths of a sample those of all rows.
"""

from kernpool.bandwidth.search.search import BandwidthSearch, Found, search_bandwidth
from kernpool.bandwidth.search.setup import SearchOptions, TrainingRows, canonical_rows, distinct_rows

__all__ = [
    "BandwidthSearch",
    "Found",
    "SearchOptions",
    "TrainingRows",
    "canonical_rows",
    "distinct_rows",
    "search_bandwidth",
]
