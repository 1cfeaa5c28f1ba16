"""Score of conditional distributions (CRPS), and the bandwidth in y of smoothed distributions.

The continuous ranked probability score, with Y and Y' independent draws from F::

    CRPS(F, y) = integral (F(z) - 1{y <= z})^2 dz = E|Y - y| - E|Y - Y'| / 2

Between two values F is constant, so that the integral is a sum of squares times gaps: nothing is subtracted.

The bandwidth in y is found by a rule or by leave-one-out likelihood. A window averages over n_eff rows, with 1 /
n_eff = sum_j alpha_j^2 / w_j. The rule is Silverman's for a density of that many values with the spread of the
leave-one-out residuals, and the median of n_eff over the rows::

    h_y = 0.9 min(sd, IQR / 1.349) n_eff^(-1/5)

The likelihood, at the bandwidths of the model, is that of `bwmethod="cv.ml"` of npcdensbw in R's np, in y alone::

    sum_i w_i log f_-i(y_i | x_i),    f_-i(y | x) = sum_{j != i} alpha_j(x) phi((y - v_j) / h_y) / h_y
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from kernpool._arrays import Array, Flags, Index
from kernpool.core import Problem, weighted_median
from kernpool.distribution.weighted_quantile import sum_over_pairs
from kernpool.execution import abbreviate, as_count, warn_caller
from kernpool.pooling import Recipe, weight_rows


def known_crps(
    recipe: Recipe, problem: Problem, value: Array, y: Array, center: Array | None = None
) -> tuple[Array, Flags]:
    """Return each query's continuous ranked probability score, and which queries have a key of positive weight."""
    # some nanoseconds a pair; by tables for masks, exclusions, kernels of the user's own and far queries
    away = y if center is None else y - center
    order = np.argsort(value, kind="stable")
    ordered, values = problem.block(slice(None), order), value[order]
    rank = np.searchsorted(values, away, side="right")
    found = np.full(len(y), np.nan)

    def visit(arguments: tuple[Any, ...], rows: Index, scores: Array) -> None:
        from kernpool.algorithms.brute.fused import read_only  # with code that loads Numba
        from kernpool.distribution.loops.ordered_values import score_block

        loop: Any = score_block
        loop(*arguments, *(read_only(array) for array in (values, away[rows], rank[rows])), scores)

    def table(share: Array, rows: Index) -> Array:
        return _scores(share, values, away[rows], rank[rows])

    occupied = sum_over_pairs(recipe, ordered, found, visit, table)
    return found, occupied


def _scores(share: Array, values: Array, away: Array, rank: Index) -> Array:
    """Return the continuous ranked probability score of each query from a dense table of its weights."""
    below = np.cumsum(share, axis=1)[:, :-1]
    above = np.cumsum(share[:, ::-1], axis=1)[:, -2::-1]
    # The interval between values that contains y is split at y; y may also be beyond all values.
    side = np.where(np.arange(len(values) - 1) < rank[:, None] - 1, below, above) ** 2
    inside = np.flatnonzero((rank > 0) & (rank < len(values)))
    split = rank[inside] - 1
    side[inside, split] = 0.0
    score: Array = side @ np.diff(values)
    score[inside] += below[inside, split] ** 2 * (away[inside] - values[split])
    score[inside] += above[inside, split] ** 2 * (values[split + 1] - away[inside])
    score += np.maximum(values[0] - away, 0.0) + np.maximum(away - values[-1], 0.0)
    return score


METHODS = ("rule", "ml")
ROWS, PAIRS = 1000, 1 << 21  # rows that a bandwidth is found from, at most; and at least FEWEST rows
FEWEST = 50
SILVERMAN, NORMAL_IQR = 0.9, 1.349
NARROWEST, WIDEST, GRID = 1 / 30, 10.0, 13  # in bandwidths of the rule
HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


def find_y_bandwidth(
    left_out: Problem, value: Array, output: Array, fitted: Array, center: Array, method: str
) -> float:
    """Find the smoothing bandwidth in y of one output, by the normal reference rule or leave-one-out likelihood."""
    weight = left_out.frequency * left_out.weight_unit
    (rows,) = np.nonzero(weight > 0)
    most = min(ROWS, max(FEWEST, PAIRS // len(weight)))
    if len(rows) > most:  # the same for the same rows
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    tables = np.concatenate([np.empty((0, len(value))), *(share for _, share in weight_rows(left_out.block(rows)))])
    alone = ~tables.any(axis=1)
    rows, tables = rows[~alone], tables[~alone]
    if not rows.size:
        raise ValueError("y_bandwidth cannot be found: no row has another one in its window; give it as a number")
    counts = weight > 0
    unit = np.tile(weight[counts], (len(rows), 1))
    unit[np.arange(len(rows)), np.searchsorted(np.flatnonzero(counts), rows)] -= 1.0  # of its own weight, one is out
    squares = np.divide(tables[:, counts] ** 2, unit, where=unit > 0, out=np.zeros(unit.shape))
    size = weighted_median(1.0 / squares.sum(axis=1), weight[rows])
    spread = _spread((output - fitted)[counts], weight[counts])
    if not spread > 1e-12 * np.ptp(output[counts]):
        raise ValueError("y_bandwidth cannot be found: y does not differ from the fit; give it as a number")
    rule = float(SILVERMAN * spread * size**-0.2)
    if method == "rule":
        return rule
    return _likeliest(tables, (output - center)[rows, None] - value, weight[rows], rule)


def check_y_bandwidth(y_bandwidth: Any, outputs: int) -> str | Array:
    """Validate a bandwidth in y: the name of a method, one positive number, or one for each output."""
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
    is_bool = np.asarray(y_bandwidth).dtype.kind == "b"
    if is_bool or width.shape not in ((), (outputs,)) or not np.all(np.isfinite(width) & (width > 0)):
        raise ValueError(
            f"y_bandwidth must be a positive number or one for each of {outputs} output(s), 'rule' or 'ml', got "
            f"{abbreviate(y_bandwidth)}"
        )
    return np.array(np.broadcast_to(width, (outputs,)))


def numeric_y_bandwidth(y_bandwidth: Any, outputs: int) -> Array:
    """Validate bandwidths in y; raise TypeError for the name of a method, where no regressor in memory can use it."""
    width = check_y_bandwidth(y_bandwidth, outputs)
    if isinstance(width, str):
        raise TypeError(
            f"y_bandwidth must be a positive number here, got {abbreviate(y_bandwidth)}; a NadarayaWatsonRegressor "
            "with these bandwidths, fitted to the rows or a sample of them in arrays, finds one: "
            "conditional_distribution(y_bandwidth='rule').y_bandwidth"
        )
    return width


def indicators(output: Array, weight: Array | None, thresholds: int) -> Array:
    """Return the distinct indicator columns ``output <= t`` for quantiles t of each output."""
    as_count("thresholds", thresholds, hint=", the number of quantiles of y")
    times, levels = np.ones(len(output)) if weight is None else weight, np.arange(1, thresholds + 1) / (thresholds + 1)
    columns = []
    for column in np.asarray(output, dtype=np.float64).reshape(len(output), -1).T:
        quantiles = np.unique(np.quantile(column, levels, weights=times, method="inverted_cdf"))
        columns.append(column[:, None] <= quantiles[quantiles < column[times > 0].max()])
    found = np.concatenate(columns, axis=1).astype(np.float64)
    if not found.shape[1]:
        raise ValueError(
            "y does not vary, so that its distribution is the same for every X; no bandwidth is identified"
        )
    return found


def _spread(residual: Array, weight: Array) -> float:
    """Return the smaller of weighted standard deviation and IQR / 1.349 of residuals; the former if the IQR is zero."""
    mean = weight @ residual / weight.sum()
    deviation = float(np.sqrt(weight @ (residual - mean) ** 2 / weight.sum()))
    low, high = np.quantile(residual, [0.25, 0.75], weights=weight, method="inverted_cdf")
    iqr = float(high - low) / NORMAL_IQR
    return min(deviation, iqr) if iqr > 0 else deviation


def _likeliest(share: Array, away: Array, weight: Array, rule: float) -> float:
    """Return the bandwidth in y that maximizes leave-one-out likelihood, from 1/30 to 10 times the bandwidth `rule`."""
    with np.errstate(divide="ignore"):
        log_share, squares = np.log(share), -0.5 * away**2

    def loss(log_width: float) -> float:
        terms = log_share + squares * np.exp(-2 * log_width)
        largest = terms.max(axis=1)
        density = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
        return -float(weight @ density / weight.sum()) + log_width + HALF_LOG_2PI

    # It may have several minima: take the best of a grid, and then the minimum next to it.
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
