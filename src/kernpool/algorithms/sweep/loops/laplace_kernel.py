"""Compiled Laplace-kernel sums in one column: exponential sums accumulated along the line.

To any query `q` on their right, the keys on the left of a point `p` contribute

    sum w exp(-(q - k) / h) = exp(-(q - p) / h) sum w exp(-(p - k) / h)

So one number per bin and direction is enough, computed from the one before. Only positive numbers are multiplied and
added, so no digit is lost. (Published codes sum ``exp(k / h)`` about a fixed origin.)
"""

from kernpool.algorithms.loops.kernel_weights import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.near_pairs import END, NEAR, UNDONE, walk
from kernpool.execution.compilation import bare_loop

UNDERFLOW = 1e-280


@bare_loop
def sum_bins(x, weight, value, offset, low, high, first_bin, last_bin, h, leftward, rightward, total):
    """Write Laplace-kernel sums over each bin's keys at its right and its left end, and sums without the kernel."""
    # They go to `leftward`, `rightward` and `total`. Sums are of weights, and of weights times each value.
    rate = LOG2_E / h
    for b in range(first_bin, last_bin):
        for c in range(total.shape[1]):
            leftward[b, c], rightward[b, c], total[b, c] = 0.0, 0.0, 0.0
        for j in range(offset[b], offset[b + 1]):
            from_right = exp2((x[j] - high[b]) * rate)
            from_left = exp2((low[b] - x[j]) * rate)
            for c in range(total.shape[1]):
                times = weight[j] if weight.size else 1.0
                if c:
                    times *= value[c - 1, j]
                leftward[b, c] += from_right * times
                rightward[b, c] += from_left * times
                total[b, c] += times


@bare_loop
def scan(low, high, first_bin, last_bin, h, leftward, rightward):
    """Accumulate exponentially decaying sums from bin to bin, in both directions, in place."""
    # Bins are counted from either end.
    bins, columns, rate = low.size, leftward.shape[1], LOG2_E / h
    for k in range(max(first_bin, 1), last_bin):
        decay = exp2((high[k - 1] - high[k]) * rate)
        for c in range(columns):
            leftward[k, c] += decay * leftward[k - 1, c]
        b = bins - 1 - k
        decay = exp2((low[b] - low[b + 1]) * rate)
        for c in range(columns):
            rightward[b, c] += decay * rightward[b + 1, c]


@bare_loop
def find_runs(low, high, block_low, block_high, runs):
    """Write to `runs`, for each block of queries, the range of bins neither left nor right of the whole block."""
    near, end = 0, 0
    for k in range(runs.shape[0]):
        near = walk(high, block_low[k], near)
        end = max(walk(low, block_high[k], end), near)
        for run in range(runs.shape[1]):
            runs[k, run] = near if run == NEAR else end


@bare_loop
def finish(low, high, runs, block, query, h, leftward, rightward, found):
    """Add sums over all bins left and right of a query block to those over near keys; flag queries that underflow."""
    rate = LOG2_E / h
    for k in range(runs.shape[0]):
        near, end = runs[k, NEAR], runs[k, END]
        for i in range(block[k] - block[0], block[k + 1] - block[0]):
            q = query[block[0] + i]
            left = exp2((high[near - 1] - q) * rate) if near > 0 else 0.0
            right = exp2((q - low[end]) * rate) if end < low.size else 0.0
            for c in range(found.shape[0]):
                if near > 0:
                    found[c, i] += left * leftward[near - 1, c]
                if end < low.size:
                    found[c, i] += right * rightward[end, c]
                found[c, i] *= 0.5
            if not found[0, i] > UNDERFLOW:
                found[0, i] = UNDONE
