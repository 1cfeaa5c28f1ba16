"""Searches: the bandwidths at the minimum of a criterion.

Read `search.py` first: which way is taken; then `objective.py`: the criterion and its slopes.
"""

from kernpool.bandwidth.search.log_loss_search import search_log_loss
from kernpool.bandwidth.search.outcome import BandwidthSearch
from kernpool.bandwidth.search.search import search_bandwidth

__all__ = ["BandwidthSearch", "search_bandwidth", "search_log_loss"]
