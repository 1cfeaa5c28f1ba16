"""Weighted least squares for weights that may differ by any factor, and arithmetic in double-double precision.

For a query far from all keys weights fall off like 1, e^-20, e^-60 from the nearest key on. The plane of least
squares is well defined all the same: as weights draw apart it becomes the one through the nearest keys, where a key
of lower weight fixes what the heavier ones have left open. In a covariance matrix the lighter keys would vanish by
rounding.

It is found in two steps. Elimination with the largest entry times root of its weight as the pivot chooses keys that
span the plane, the heavy ones first, and writes every key as a combination of them [1]_:

    (1, t_i) = sum_k lambda_ik (1, t_pk),   where   w_i lambda_ik^2 is at most about w_pk

The remainder of a key that depends on the ones before is rounding and is set to zero: its weight would make it count
more than a light key that does fix a direction. Then the values of the plane at these keys are the unknowns,

    sum_l theta_l sum_i (w_i / w_pk) lambda_ik lambda_il = sum_i (w_i / w_pk) lambda_ik v_i

and these equations are well conditioned whatever the weights, except for their scale, since each key spans itself
with a coefficient of one. Weights are logarithms and cannot underflow. Every step is a sum over all keys, of all
queries at once; rotations would take the keys one by one, and Householder's method loses light keys to underflow.

The second half of the file is double-double arithmetic: sums and products with twice the digits of float64, as
unevaluated sums of two numbers (Dekker 1971, Knuth 1969). A number is a pair ``(high, low)`` with ``high = fl(high +
low)``. Nothing here may overflow: keep magnitudes near one.

References
----------
.. [1] G. Peters and J. H. Wilkinson, "The least squares problem and pseudo-inverses", The Computer Journal 13 (1970),
   309-316.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NOISE = 1e-12  # size of a difference, relative to its terms, that is treated as zero


class LocalPlanes(NamedTuple):
    """Local linear fits of B queries: values at the key of largest weight, slopes, numbers of determined directions.

    Parameters
    ----------
    level : ndarray of shape (B, c)
        Their values at the heaviest key.
    slope : ndarray of shape (B, d, c)
        Their slopes; zero in directions that no key determines.
    rank : ndarray of int, shape (B,)
        Number of directions in which keys determine a slope.
    smallest : ndarray of shape (B,)
        Logarithm of the least weighted square that a direction rests on; infinite for a rank of zero.
    """

    level: Array
    slope: Array
    rank: NDArray[np.intp]
    smallest: Array


def fit_planes(log_weight: Array, offset: Array, value: Array, floor: Array, reach: Array) -> LocalPlanes:
    r"""Fit planes: minimise :math:`\sum_j w_j (v_j - \beta_0 - \beta \cdot t_j)^2` for each of B queries.

    Parameters
    ----------
    log_weight : ndarray of shape (B, K)
        Logarithms of weights; minus infinity for none, which not all may be.
    offset : ndarray of shape (B, K, d)
        The t, counted from the heaviest key.
    value : ndarray of shape (B, K, c)
        The v, best counted from there too.
    floor : ndarray of shape (B, K, d)
        Size below which an offset is rounding error.
    reach : ndarray of shape (B, d)
        Units of the columns, in which a slope that is not determined altogether is the shortest.

    Returns
    -------
    LocalPlanes
        The minima.

    Notes
    -----
    O(K d^2) time per query. What is left of an offset that is below 1e-12 of what has been subtracted from it counts as
    zero, so that keys on one line, or at one point, stay so after rounding.

    Examples
    --------
    The third key has almost no weight, but determines the slope where the others are at one point.

    >>> offset, value = np.array([[[0.0], [0.0], [2.0]]]), np.array([[[1.0], [3.0], [8.0]]])
    >>> planes = fit_planes(np.array([[0.0, 0.0, -1e5]]), offset, value, 0.0 * offset, np.ones((1, 1)))
    >>> planes.level, planes.slope, planes.rank
    (array([[2.]]), array([[[3.]]]), array([1]))
    """
    steps, smallest = _span(log_weight, offset, floor)
    share, weighted, design = _equations(steps, log_weight)
    level = _solve(design, np.einsum("bkp,bkc->bpc", weighted, value))
    residual = value - share @ level  # once more for what has been lost to large values of light keys
    level += _solve(design, np.einsum("bkp,bkc->bpc", weighted, residual))
    rank = np.stack([step.found for step in steps[1:]], axis=1).sum(axis=1) if steps[1:] else np.zeros(len(offset))
    return LocalPlanes(level[:, 0], _slopes(steps, level, reach), rank.astype(np.intp), smallest)


class _Step(NamedTuple):
    """One step of Gaussian elimination: the pivot's key and column, its scaled row, and what remains of the column.

    Queries that are not `found` have no pivot left. The column is d for the intercept. `x` is what is left of the
    column, so that a row is the sum over the steps of x times `row`.
    """

    found: NDArray[np.bool_]
    place: NDArray[np.intp]
    column: NDArray[np.intp]
    row: Array
    x: Array


def _span(log_weight: Array, offset: Array, floor: Array) -> tuple[list[_Step], Array]:
    """Choose pivot keys that span each plane; return elimination steps and the log of the least w * pivot**2."""
    count, _, d = offset.shape
    each = np.arange(count)
    dependent = np.abs(offset) <= floor
    noise = np.where(dependent, 0.0, floor + NOISE * np.abs(offset))
    table, left = np.where(dependent, 0.0, offset), log_weight.copy()
    place = np.argmax(left, axis=1)
    steps = [_eliminate(table, noise, left, place, np.full(count, d), np.ones(count, dtype=bool))]
    smallest = np.full(count, np.inf)
    for _ in range(d):
        with np.errstate(divide="ignore"):
            size = 0.5 * left[:, :, None] + np.log(np.abs(table))
        place, column = np.divmod(np.argmax(size.reshape(count, -1), axis=1), d)
        largest = size[each, place, column]
        found = np.isfinite(largest)
        if not found.any():
            break
        smallest = np.where(found, np.minimum(smallest, 2.0 * largest), smallest)
        steps.append(_eliminate(table, noise, left, place, column, found))
    return steps, smallest


def _eliminate(
    table: Array, noise: Array, left: Array, place: NDArray[np.intp], column: NDArray[np.intp], found: NDArray[np.bool_]
) -> _Step:
    """Subtract the multiples of a pivot row from all rows, in place; return the elimination step."""
    (count, keys, d), each = table.shape, np.arange(len(table))
    x, rounding = np.ones((count, keys)), np.zeros((count, keys))
    if column[0] < d:
        x, rounding = np.where(found[:, None], table[each, :, column], 0.0), noise[each, :, column]
    pivot = np.where(found, x[each, place], 1.0)
    row = np.where(found[:, None], table[each, place] / pivot[:, None], 0.0)
    change = x[:, :, None] * row[:, None, :]
    table -= change
    noise += NOISE * np.abs(change) + rounding[:, :, None] * np.abs(row[:, None, :])
    dependent = np.abs(table) <= noise
    table[dependent], noise[dependent] = 0.0, 0.0
    if column[0] < d:
        table[each[found], :, column[found]] = 0.0
    left[each[found], place[found]] = -np.inf
    return _Step(found, place, column, row, x)


def _equations(steps: list[_Step], log_weight: Array) -> tuple[Array, Array, Array]:
    """Return keys' coefficients in terms of pivot keys, these times relative weights, and the normal matrix."""
    each, size = np.arange(len(log_weight)), len(steps)
    share = np.empty((*log_weight.shape, size))
    weighted = np.empty_like(share)
    for k in reversed(range(size)):
        step = steps[k]
        pivot = np.where(step.found, step.x[each, step.place], 1.0)
        share[:, :, k] = step.x / pivot[:, None]
        for later in range(k + 1, size):
            mixed = step.x[each, steps[later].place] / pivot
            share[:, :, k] -= share[:, :, later] * np.where(steps[later].found, mixed, 0.0)[:, None]
        top = np.where(step.found, log_weight[each, step.place], 0.0)
        with np.errstate(divide="ignore"):  # one factor may be 0 where the other is infinite
            exponent = log_weight - top[:, None] + np.log(np.abs(share[:, :, k]))
        weighted[:, :, k] = np.sign(share[:, :, k]) * np.exp(exponent)
    design = np.einsum("bkp,bkq->bpq", weighted, share)
    design[:, np.arange(size), np.arange(size)] += ~np.stack([step.found for step in steps], axis=1)
    return share, weighted, design


def _solve(design: Array, right: Array) -> Array:
    """Solve the normal equations of all queries by elimination without pivoting.

    Up to row scaling the design is symmetric positive definite.
    """
    design, right = design.copy(), right.copy()
    size = design.shape[1]
    for k in range(size):
        factor = design[:, k + 1 :, k] / design[:, k, k, None]
        design[:, k + 1 :] -= factor[:, :, None] * design[:, k, None, :]
        right[:, k + 1 :] -= factor[:, :, None] * right[:, k, None, :]
    for k in reversed(range(size)):
        known = np.einsum("bl,blc->bc", design[:, k, k + 1 :], right[:, k + 1 :])
        right[:, k] = (right[:, k] - known) / design[:, k, k, None]
    return right


def _slopes(steps: list[_Step], level: Array, reach: Array) -> Array:
    """Return slopes of planes from their values at the pivot keys; the shortest if several fit equally well."""
    (count, d), outputs, each = reach.shape, level.shape[2], np.arange(len(reach))
    along = np.zeros_like(level)  # values as rows are: sums over the steps of x times this
    for k, step in enumerate(steps):
        known = sum(
            (steps[j].x[each, step.place, None] * along[:, j] for j in range(k)), start=np.zeros((count, outputs))
        )
        pivot = np.where(step.found, step.x[each, step.place], 1.0)[:, None]
        along[:, k] = np.where(step.found[:, None], (level[:, k] - known) / pivot, 0.0)
    free = np.ones((count, d), dtype=bool)
    for step in steps[1:]:
        free[each[step.found], step.column[step.found]] = False
    # The solution whose free slopes are zero, followed by the effect of each free slope on the others.
    slope = np.concatenate([np.zeros((count, d, outputs)), free[:, :, None] * np.eye(d)], axis=2)
    for k, step in reversed(list(enumerate(steps[1:], start=1))):
        right = np.concatenate([along[:, k], np.zeros((count, d))], axis=1)
        right -= np.einsum("bj,bjc->bc", step.row, slope)
        slope[each[step.found], step.column[step.found]] = right[step.found]
    solution, some = slope[:, :, :outputs], free.any(axis=1)
    if some.any():
        null = reach[some, :, None] * slope[some, :, outputs:]
        shortest = np.linalg.pinv(null) @ (reach[some, :, None] * solution[some])
        solution[some] -= slope[some, :, outputs:] @ shortest
    return solution


Pair = tuple[Array, Array]

EPSILON = 2.0**-100  # what some tens of operations round by, beside the largest number in them
_HALVES = 2.0**27 + 1.0  # splits 53 binary digits in two halves, whose products are exact


def exact_sum(a: Array, b: Array) -> Pair:
    """Return ``a + b`` exactly, as an unevaluated sum of two floats ``(high, low)``.

    Examples
    --------
    >>> exact_sum(np.array([1.0]), np.array([2.0**-80]))[1] == 2.0**-80
    array([ True])
    """
    high = a + b
    shadow = high - a
    return high, (a - (high - shadow)) + (b - shadow)


def exact_product(a: Array, b: Array) -> Pair:
    """Return ``a * b`` exactly, as an unevaluated sum of two floats ``(high, low)``.

    Examples
    --------
    >>> x = np.array([1.0 + 2.0**-30])
    >>> exact_product(x, x)[1] == 2.0**-60
    array([ True])
    """
    high = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def add(a: Pair, b: Pair) -> Pair:
    """Return the sum of two double-double numbers, which are pairs ``(high, low)`` of floats."""
    high, low = exact_sum(a[0], b[0])
    return _joined(high, low + (a[1] + b[1]))


def multiply(a: Pair, b: Pair) -> Pair:
    """Return the product of two double-double numbers, which are pairs ``(high, low)`` of floats."""
    high, low = exact_product(a[0], b[0])
    return _joined(high, low + (a[0] * b[1] + a[1] * b[0]))


def ratio(a: Array, b: Array) -> Pair:
    """Return the quotient ``a / b`` of floats as a double-double number ``(high, low)``."""
    high = a / b
    product, error = exact_product(high, b)
    return high, ((a - product) - error) / b


def sum_of_exact(a: Pair, b: Pair) -> Pair:
    """Return the sum of two double-double numbers to full precision, even if their high parts cancel."""
    high, low = exact_sum(a[0], b[0]), exact_sum(a[1], b[1])
    first, rest = exact_sum(high[0], low[0])
    return _joined(first, rest + (high[1] + low[1]))


def _joined(high: Array, low: Array) -> Pair:
    total = high + low
    return total, low - (total - high)


def _halves(a: Array) -> Pair:
    scaled = a * _HALVES
    high = scaled - (scaled - a)
    return high, a - high
