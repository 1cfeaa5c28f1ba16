"""Bandwidth selection: rules of thumb, and searches that minimise a criterion.

Read `criteria.py` first: leave-one-out, AICc, GCV and log loss, which are minimised. The folder `search` has the
minimisation, the folder `loops` its compiled sums over pairs. `rules_of_thumb.py` has rules of thumb and the rate at
which bandwidths shrink with the number of rows. `repeated_rows.py` detects duplicated rows, which bias leave-one-out.
"""

from kernpool.bandwidth.criteria import CRITERIA, LOG_LOSS, LeaveOneOut, leave_one_out, priors_of_others
from kernpool.bandwidth.repeated_rows import RepeatedRowsWarning, count_copies, warn_of_copies
from kernpool.bandwidth.rules_of_thumb import RULES, canonical_ratio, rule_of_thumb
from kernpool.bandwidth.search import BandwidthSearch, SearchOptions, TrainingRows, canonical_rows, search_bandwidth

__all__ = [
    "CRITERIA",
    "LOG_LOSS",
    "RULES",
    "BandwidthSearch",
    "LeaveOneOut",
    "RepeatedRowsWarning",
    "SearchOptions",
    "TrainingRows",
    "canonical_ratio",
    "canonical_rows",
    "count_copies",
    "leave_one_out",
    "priors_of_others",
    "rule_of_thumb",
    "search_bandwidth",
    "warn_of_copies",
]
