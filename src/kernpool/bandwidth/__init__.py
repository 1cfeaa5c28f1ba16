"""Bandwidth selection: rules of thumb, a plug-in, and searches for the minimum of a criterion.

Read `leave_one_out.py` first, then `criteria.py`: what is minimised. How, is in `search/`.
"""

from kernpool.bandwidth.criteria import CRITERIA
from kernpool.bandwidth.leave_one_out import LeaveOneOut, leave_one_out
from kernpool.bandwidth.plugin import plugin_bandwidth
from kernpool.bandwidth.rate import rate_factor
from kernpool.bandwidth.repeated import RepeatedRowsWarning
from kernpool.bandwidth.rules import RULES, column_spread, rule_of_thumb
from kernpool.bandwidth.search import BandwidthSearch, search_bandwidth, search_log_loss

__all__ = [
    "CRITERIA",
    "RULES",
    "BandwidthSearch",
    "LeaveOneOut",
    "RepeatedRowsWarning",
    "column_spread",
    "leave_one_out",
    "plugin_bandwidth",
    "rate_factor",
    "rule_of_thumb",
    "search_bandwidth",
    "search_log_loss",
]
