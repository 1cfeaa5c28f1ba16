r"""The bandwidth in y, of a distribution that is smoothed: by a rule, or by leave-one-out likelihood.

A window averages over so many rows, whatever their weights: the effective number :math:`n_{\text{eff}} = 1 /
\sum_j \alpha_j^2 / w_j`. The rule is Silverman's for a density of that many values, spread as the leave-one-out
residuals are,

.. math:: h_y = 0.9 \min(\text{sd}, \text{IQR} / 1.349)\, n_{\text{eff}}^{-1/5},

with the median of the effective numbers at the rows. The likelihood is

.. math:: \sum_i w_i \log f_{-i}(y_i \mid x_i), \qquad
          f_{-i}(y \mid x) = \sum_{j \ne i} \alpha_j(x)\, \frac{1}{h_y} \varphi\Big(\frac{y - v_j}{h_y}\Big),

at the bandwidths of the model: `bwmethod="cv.ml"` of npcdensbw, in y alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from kernpool.core.problem import Problem
from kernpool.execution.messages import abbreviate
from kernpool.execution.warnings import warn_caller
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]

METHODS = ("rule", "ml")
ROWS, PAIRS = 1000, 1 << 21  # that a bandwidth is found from, at most; and at least FEWEST rows
FEWEST = 50
SILVERMAN, NORMAL_IQR = 0.9, 1.349
NARROWEST, WIDEST, GRID = 1 / 30, 10.0, 13  # in bandwidths of the rule
HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


def find_y_bandwidth(
    left_out: Problem, value: Array, output: Array, fitted: Array, center: Array, method: str
) -> float:
    """Find the bandwidth in y for one output.

    Parameters
    ----------
    left_out : Problem
        Of degree 0, of the training rows, each without itself or its group.
    value : ndarray of shape (n,)
        What weights are of: outputs or residuals.
    output, fitted, center : ndarray of shape (n,)
        Outputs of the rows, their leave-one-out predictions, and what is added to `value` at each row.
    method : {"rule", "ml"}
        Which.

    Returns
    -------
    float
        Positive.

    Raises
    ------
    ValueError
        If outputs do not differ from the fit, or no row has another one in its window.
    """
    weight = np.ones(len(value)) if left_out.key_weight is None else left_out.key_weight * left_out.weight_unit
    rows = _some_rows(weight)
    tables = np.concatenate([np.empty((0, len(value))), *(share for _, share in weight_rows(left_out.block(rows)))])
    alone = ~tables.any(axis=1)
    rows, tables = rows[~alone], tables[~alone]
    if not rows.size:
        raise ValueError("y_bandwidth cannot be found: no row has another one in its window; give it as a number")
    counts = weight > 0
    unit = np.tile(weight[counts], (len(rows), 1))
    unit[np.arange(len(rows)), np.searchsorted(np.flatnonzero(counts), rows)] -= 1.0  # of its own weight, one is out
    squares = np.divide(tables[:, counts] ** 2, unit, where=unit > 0, out=np.zeros(unit.shape))
    size = _median(1.0 / squares.sum(axis=1), weight[rows])
    spread = _spread((output - fitted)[counts], weight[counts])
    if not spread > 1e-12 * np.ptp(output[counts]):
        raise ValueError("y_bandwidth cannot be found: y does not differ from the fit; give it as a number")
    rule = float(SILVERMAN * spread * size**-0.2)
    if method == "rule":
        return rule
    return _likeliest(tables, (output - center)[rows, None] - value, weight[rows], rule)


def _median(value: Array, weight: Array) -> float:
    """Return the median of values of these frequencies, that of the values repeated."""
    order = np.argsort(value, kind="stable")
    sums = np.cumsum(weight[order])
    middle = [np.searchsorted(sums, 0.5 * sums[-1], side=side) for side in ("left", "right")]
    return float(np.mean(value[order][np.minimum(middle, len(value) - 1)]))


def check_y_bandwidth(y_bandwidth: Any, outputs: int) -> str | Array:
    """Read a bandwidth in y: the name of a method, or one number for each output."""
    if isinstance(y_bandwidth, str):
        if y_bandwidth not in METHODS:
            raise ValueError(f"y_bandwidth must be a positive number, 'rule' or 'ml', got {abbreviate(y_bandwidth)}")
        return y_bandwidth
    try:
        width = np.asarray(y_bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"y_bandwidth must be a positive number, 'rule' or 'ml', got {abbreviate(y_bandwidth)}"
        ) from None
    if width.shape not in ((), (outputs,)) or not np.all(np.isfinite(width) & (width > 0)):
        raise ValueError(
            f"y_bandwidth must be a positive number or one for each of {outputs} output(s), 'rule' or 'ml', got "
            f"{abbreviate(y_bandwidth)}"
        )
    return np.array(np.broadcast_to(width, (outputs,)))


def indicators(output: Array, weight: Array | None, thresholds: int) -> Array:
    """Return the columns ``output <= t`` for quantiles t of outputs, equal ones once.

    Parameters
    ----------
    output : ndarray of shape (n,) or (n, c)
        The outputs.
    weight : ndarray of shape (n,), optional
        Frequencies.
    thresholds : int
        How many quantiles, at equal distances between 0 and 1.

    Returns
    -------
    ndarray of shape (n, b)
        At most so many for each output: none of those that are one for all rows.

    Raises
    ------
    ValueError
        If there is none, or their number is not positive.

    Examples
    --------
    >>> indicators(np.array([3.0, 1.0, 2.0]), None, 3)
    array([[0., 0.],
           [1., 1.],
           [0., 1.]])
    """
    if isinstance(thresholds, bool) or not isinstance(thresholds, int | np.integer) or thresholds < 1:
        raise ValueError(f"thresholds must be a positive number of quantiles of y, got {abbreviate(thresholds)}")
    times, levels = np.ones(len(output)) if weight is None else weight, np.arange(1, thresholds + 1) / (thresholds + 1)
    columns = []
    for column in np.asarray(output, dtype=np.float64).reshape(len(output), -1).T:
        quantiles = np.unique(np.quantile(column, levels, weights=times, method="inverted_cdf"))
        columns.append(column[:, None] <= quantiles[quantiles < column[times > 0].max()])
    found = np.concatenate(columns, axis=1).astype(np.float64)
    if not found.shape[1]:
        raise ValueError("y does not vary, so that its distribution depends on nothing; there is no bandwidth to find")
    return found


def _some_rows(weight: Array) -> NDArray[np.intp]:
    """Return rows to look at, the same each time: all, or drawn ones."""
    (rows,) = np.nonzero(weight > 0)
    most = min(ROWS, max(FEWEST, PAIRS // len(weight)))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _spread(residual: Array, weight: Array) -> float:
    """Return the smaller of standard deviation and IQR / 1.349; the first where the second is zero."""
    mean = weight @ residual / weight.sum()
    deviation = float(np.sqrt(weight @ (residual - mean) ** 2 / weight.sum()))
    low, high = np.quantile(residual, [0.25, 0.75], weights=weight, method="inverted_cdf")
    iqr = float(high - low) / NORMAL_IQR
    return min(deviation, iqr) if iqr > 0 else deviation


def _likeliest(share: Array, away: Array, weight: Array, rule: float) -> float:
    """Return the bandwidth of the largest likelihood, within a box around that of the rule."""
    with np.errstate(divide="ignore"):
        log_share, squares = np.log(share), -0.5 * away**2

    def loss(log_width: float) -> float:
        terms = log_share + squares * np.exp(-2 * log_width)
        largest = terms.max(axis=1)
        density = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
        return -float(weight @ density / weight.sum()) + log_width + HALF_LOG_2PI

    # It may have several minima: the best of a grid, and then the one beside it.
    low, high = np.log(rule * NARROWEST), np.log(rule * WIDEST)
    grid = np.linspace(low, high, GRID)
    best = int(np.argmin([loss(one) for one in grid]))
    if best == 0:
        warn_caller(
            "the likelihood grows as y_bandwidth falls, as it does where outputs are equal to the last digit, and the "
            f"search stops at a thirtieth of the rule, {np.exp(low):.3g}; cdf and quantile without y_bandwidth treat "
            "such outputs as what they are",
        )
        return float(np.exp(low))
    ends = grid[best - 1], grid[min(best + 1, GRID - 1)]
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))
