"""Bandwidth selection: rules of thumb, a plug-in, and leave-one-out search."""

from kernpool.bandwidth.leave_one_out import BandwidthSearch, LeaveOneOut, leave_one_out, search_common_factor
from kernpool.bandwidth.plugin import plugin_bandwidth
from kernpool.bandwidth.rules import RULES, column_spread, rule_of_thumb

__all__ = [
    "RULES",
    "BandwidthSearch",
    "LeaveOneOut",
    "column_spread",
    "leave_one_out",
    "plugin_bandwidth",
    "rule_of_thumb",
    "search_common_factor",
]
