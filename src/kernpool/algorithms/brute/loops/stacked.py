"""Many small problems of one shape: the staged tiles of each, in one call."""

from __future__ import annotations

from kernpool.algorithms.brute.loops.staged import reduce_block
from kernpool.execution.compiling import loop


@loop
def reduce_stack(
    query,
    key,
    value,
    key_weight,
    mask,
    own,
    own_weight,
    bandwidth,
    code,
    infinite,
    product,
    moments,
    quadratic,
    shift,
    denominator,
    numerator,
):
    """States of all problems, written into the last three arguments; the others as of `reduce_block`, one per item."""
    for i in range(query.shape[0]):
        reduce_block(
            query[i],
            key[i],
            value[i],
            key_weight[i],
            mask[i],
            own[i],
            own_weight[i],
            bandwidth,
            code,
            infinite,
            product,
            moments,
            quadratic,
            shift[i],
            denominator[i],
            numerator[i],
        )
