"""Bound on the rounding error of pooled values and of pooling weights.

`rounding_bound` gives the accuracy that the package promises, as a formula.
"""

import numpy as np

from kernpool._arrays import Array
from kernpool.algorithms.algorithm import may_underflow
from kernpool.core import FLOAT64, PoolState, Problem

Surroundings = tuple[Array, Array, Array]

TABLE_PAIRS = 1 << 22  # in one table
# dtype: rounding of a sum over keys nearby, machine epsilon, and the distance in bandwidths at which nearby ends
TERMS = {np.dtype(np.float64): (1e-12, 2.2e-16, 100.0), np.dtype(np.float32): (2e-6, 1.2e-7, 4.0)}


def rounding_bound(problem: Problem, state: PoolState) -> Array:
    r"""Return a bound on the rounding error of each pooled value of a problem, for local constant fits.

    .. math:: |\hat y - y| \le 10^{-12} \max\Big(1, \frac{W}{1000 D}\Big) \operatorname{range}(v) + 4 \epsilon |y|

    where W is the weight in the window of a query and D its denominator in units of its nearest key's weight. Where
    the nearest key is r > 100 bandwidths away, :math:`8 \epsilon (1 + r^2 / 2) \operatorname{range}(v)` comes on top,
    because logits round in proportion to their size. For float32 the numbers are 2e-6 and 4 bandwidths.

    Notes
    -----
    A compact kernel loses digits where it vanishes, so its D is counted in units of its height, unless it is a product
    of so many columns that it underflows. Two algorithms may be twice as far from each other. The cost is that of all
    pairs in NumPy.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([0.5, 500.0], [0.0, 1.0], [3.0, 5.0])
    >>> state = kernpool.choose(problem).reduce(problem)
    >>> rounding_bound(problem, state)
    array([[2.00e-12],
           [4.40e-10]])
    """
    _, epsilon, _ = _terms(problem)
    size = np.abs(state.finalize("zero")[:, problem.layout.value])
    bound: Array = rounding_of_weights(problem, state)[:, None] * np.ptp(problem.value, axis=0) + 4 * epsilon * size
    return bound


def rounding_of_weights(problem: Problem, state: PoolState) -> Array:
    """Return for each query a bound on the rounding error of its pooling weights."""
    # It is the factor of ``range(v)`` in `rounding_bound`.
    base, epsilon, nearby = _terms(problem)
    distance, log_unit, weight = _surroundings(problem)
    with np.errstate(invalid="ignore"):
        log_share = np.log(np.maximum(weight, 1e-300)) + log_unit - state.log_denominator + np.log(problem.weight_unit)
    occupied = state.denominator > 0
    share: Array = base * np.exp(np.clip(np.where(occupied, log_share, 0.0) - np.log(1000.0), 0.0, 600.0))
    if not problem.similarity.kernel.is_compact:
        share += np.where(occupied & (distance > nearby), 8 * epsilon * (1 + distance**2 / 2), 0.0)
    return np.minimum(share, 1.0, out=share)


def _terms(problem: Problem) -> tuple[float, float, float]:
    return TERMS[FLOAT64 if problem.degree else problem.dtype]


def _surroundings(problem: Problem) -> Surroundings:
    """Return each query's distance to the nearest key, the log unit of its weights, and the key weight in reach."""
    # The unit is that of D, and the weight W, in the formula of `rounding_bound`.
    # Only keys that are included for the query are used: with weight, under its mask, of another group, and not itself.
    m, n = problem.shape
    rows = max(1, TABLE_PAIRS // n)
    distance, log_unit, weight = zip(
        *(_by_table(problem.block(slice(start, start + rows))) for start in range(0, m, rows)), strict=True
    )
    return np.concatenate(distance), np.concatenate(log_unit), np.concatenate(weight)


def _by_table(problem: Problem) -> Surroundings:
    times, similarity = problem.multiplicity(), problem.similarity
    logits = similarity.logits(problem.query, problem.key)
    if problem.logit_bias is not None:
        logits = logits + problem.logit_bias
    takes_part = (times > 0) & (logits > -np.inf)
    distance = np.where(takes_part, similarity.distance(problem.query, problem.key), np.inf).min(axis=1)
    weight = np.where(takes_part, times, 0.0).sum(axis=1)
    if similarity.kernel.is_compact and problem.logit_bias is None and not may_underflow(problem):
        return distance, np.zeros(len(times)), weight
    return distance, np.where(takes_part, logits, -np.inf).max(axis=1), weight
