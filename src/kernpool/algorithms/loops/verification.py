"""Compiled: one look at all sums of a state, at the speed of memory."""

from __future__ import annotations

import numpy as np

from kernpool.execution.compiling import bare_loop


@bare_loop
def count_impossible(denominator, numerator, low, high):
    """Count sums that are not those of a positive finite weight and a mean between `low` and `high`; NaN is none."""
    count = 0
    for c in range(low.size):  # by columns: with the rows inside the loop is a vector's
        least, most = low[c], high[c]
        for i in range(denominator.size):
            weight, total = denominator[i], numerator[i, c]
            fine = (weight > 0.0) & (weight < np.inf) & (weight * least <= total) & (total <= weight * most)
            count += 0 if fine else 1
    return count
