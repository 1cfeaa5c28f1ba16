"""Jackknife+ and CV+ prediction intervals, from fits without each row, fold or larger unit.

With leave-one-out residuals R_i the interval of jackknife+ is [1]_ (theorem 1)

    [ (m_-i(q) - R_i)_(k_low),  (m_-i(q) + R_i)_(k_up) ],

where m_-i, the fit without row i, is known in closed form (`kernpool.smoother.deletion`).

CV+ leaves out folds, a tenth of the rows each:

    [ (m_-k(i)(q) - R_i)_(k_low),  (m_-k(i)(q) + R_i)_(k_up) ],   R_i = |y_i - m_-k(i)(x_i)|

For K folds of equal size its coverage is at least 1 - 2 alpha - min{ 2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1) }
[1]_ (theorem 4). Rows that do not fit into equal folds stay in all fits and do not calibrate; the number of folds
is chosen so that few do. With units of several rows as folds, whose rows share the weight of one, it is a jackknife+
for a new unit [2]_.

References
----------
.. [1] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+",
   Annals of Statistics 49 (2021), 486-507.
.. [2] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
   section 4.
"""

from collections.abc import Iterator

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.conformal.calibration import Bounds, Calibration, ConformalProblem, upper_rank, upper_statistic
from kernpool.execution import cut, resolve_n_jobs, run_blocks
from kernpool.inference.resampling.random_draws import as_seed, generator
from kernpool.smoother.deletion import Designs

# Arrays of 192 KB, of which a block has some ten: of more than 256 KB they come from the system in fresh pages, which
# takes half of the time (70 ms for 2000 rows and 1000 points, and 147 with arrays of 320 KB).
PAIRS_AT_ONCE = 3 << 13
MOST_PAIRS = 1 << 30  # about a minute


def jackknife_plus(setting: ConformalProblem) -> Bounds:
    """Compute jackknife+ prediction intervals from fits without each row, or each larger unit."""
    smoother, calibration = setting.smoother, setting.calibration
    if calibration.units.code is not None:
        return _without_each_unit(setting, calibration.units.code)
    places, c = len(setting.places.query), smoother.value.shape[1]
    check_pairs("jackknife+", places, len(calibration.weight))
    fitted, score = smoother.fit(smoother.problem(setting.places)), setting.score
    designs = Designs.of(fitted)
    lower, upper = np.full((places, c), -np.inf), np.full((places, c), np.inf)

    def work(rows: slice) -> Iterator[None]:
        found = (np.flatnonzero(fitted.fit.occupied[rows]) + rows.start).astype(np.intp)
        if found.size:
            for output, without in enumerate(_without_each(designs.rows(found), calibration)):
                reach = score[:, output]
                lower[found, output] = -setting.bound(_add_residuals(-without, reach))
                upper[found, output] = setting.bound(_add_residuals(without, reach))
        yield

    blocks = cut(places, max(1, PAIRS_AT_ONCE // len(calibration.weight)))
    run_blocks(work, blocks, resolve_n_jobs(smoother.recipe.n_jobs), None)
    return fitted.values(report=True)[0], lower, upper


def check_pairs(method: str, places: int, rows: int) -> None:
    """Raise ValueError if pairs of evaluation points and rows are too many for a method that loops over them."""
    if places * rows > MOST_PAIRS:
        raise ValueError(
            f"method={method!r} goes through all pairs of evaluation points and rows, at most {MOST_PAIRS:,}, got "
            f"{places:,} times {rows:,}; use method='adaptive', which takes the time of a few predictions, or "
            "pass fewer evaluation points at once"
        )


def _without_each(designs: Designs, calibration: Calibration) -> Iterator[Array]:
    """Yield, for each output, the predictions of fits that each leave out one unit of a calibration row."""
    fitted, which = designs.fitted, calibration.training
    part = fitted.problem.block(slice(None), which)
    logits = part.similarity.logits(part.query, part.key)
    if part.factors is not None:
        logits = np.asarray(sum(part.factors.logarithms(), start=logits))
    pooling = np.exp(logits - fitted.state.log_denominator[:, None])
    pooling *= np.minimum(calibration.weight, 1.0)
    offsets = [part.similarity.offset(part.query, part.key, a) for a in range(designs.mean.shape[1])]
    changes = designs.changes(pooling, offsets, which, calibration.value, whole=False)
    for center, change in zip(fitted.fit.intercept.T, changes, strict=True):
        yield center[:, None] + change


def _add_residuals(without: Array, reach: Array) -> Array:
    """Add absolute residuals of rows to held-out predictions; infinite where a prediction is NaN."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(without), np.inf, without + reach)


FOLDS = 10  # or up to 19, so that nearly all rows are in folds
UNUSED = 100  # one in this many rows may stay in all fits


def cv_plus(setting: ConformalProblem) -> Bounds:
    """Compute CV+ prediction intervals with 10 to 19 folds; leave-one-out if there are fewer than ten rows."""
    weight = setting.calibration.weight
    units = np.floor(weight).astype(np.int64)
    folds, size = fold_sizes(float(units.sum()))
    if size == 0:
        return _cv_plus(setting, [], np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.inf)
    row = np.repeat(np.arange(len(units)), units)
    random = generator(as_seed(setting.random_state), 0)
    drawn = random.permutation(len(row))[: folds * size]
    held = np.zeros((folds, len(units)))
    np.add.at(held, (np.arange(len(drawn)) % folds, row[drawn]), 1.0)
    pairs = np.argwhere(held > 0)
    count = held[held > 0]
    return _cv_plus(setting, list(held), pairs, count, upper_rank(setting.level, float(folds * size)))


def _without_each_unit(setting: ConformalProblem, code: Integers) -> Bounds:
    """Compute jackknife+ prediction intervals for rows in larger units: hold out each, and count it as one row."""
    calibration = setting.calibration
    _, place = np.unique(code, return_inverse=True)
    held = [np.where(place == k, calibration.weight, 0.0) for k in range(int(calibration.count))]
    pairs = np.column_stack([place, np.arange(len(place))])
    return _cv_plus(setting, held, pairs, calibration.unit_weight, calibration.rank(setting.level))


def fold_sizes(rows: float) -> tuple[int, int]:
    """Return the number of CV+ folds for a given number of rows, and the number of rows in each fold."""
    units = int(rows)
    if units < FOLDS:
        return units, int(units > 0)
    choices = range(FOLDS, min(2 * FOLDS, units + 1))
    few = (folds for folds in choices if UNUSED * (units % folds) <= units)
    folds = next(few, min(choices, key=lambda folds: units % folds))
    return folds, units // folds


def rows_in_folds(setting: ConformalProblem) -> float:
    """Return the number of calibration rows in all folds of CV+, counted by frequency weights rounded down."""
    folds, size = fold_sizes(float(np.floor(setting.calibration.weight).sum()))
    return float(folds * size)


def lost_by_folds(setting: ConformalProblem) -> float:
    """Return the coverage that CV+ loses compared with jackknife+, a small number."""
    folds, size = fold_sizes(float(setting.calibration.weight.sum()))
    rows = folds * size
    return min(2.0 * (1.0 - 1.0 / folds) / (size + 1.0), (1.0 - folds / rows) / (folds + 1.0)) if rows else 0.0


def _cv_plus(setting: ConformalProblem, held: list[Array], pairs: Integers, weight: Array, rank: float) -> Bounds:
    """Compute prediction intervals from fits without each fold, or without each unit."""
    # `pairs` has the fold and the row of each held-out observation, `weight` its frequency
    smoother, calibration = setting.smoother, setting.calibration
    which = calibration.training
    (m, c), k = (len(setting.places.query), smoother.value.shape[1]), len(pairs)
    check_pairs("cv+" if calibration.units.code is None else "jackknife+", m, k)
    there, residual = np.empty((len(held), m, c)), np.empty((k, c))
    for fold, out in enumerate(held):
        left = smoother.weight.copy()
        left[which] -= out
        mine, rows = pairs[:, 0] == fold, pairs[pairs[:, 0] == fold, 1]
        if not left.any():  # a single unit
            there[fold], residual[mine] = np.nan, np.inf
            continue
        rest = smoother.with_weight(left)
        fit = rest if setting.refit is None else setting.refit(rest)
        at, own = setting.places, calibration.places.rows(rows)  # in the windows that this fit has
        there[fold] = fit.predict(fit.problem(fit.points(at.query, at.code)))
        found = fit.predict(fit.problem(fit.points(own.query, own.code)))
        residual[mine] = np.where(np.isnan(found), np.inf, np.abs(calibration.value[rows] - found))
    lower, upper = np.full((m, c), -np.inf), np.full((m, c), np.inf)
    for places in cut(m, max(1, PAIRS_AT_ONCE // max(k, 1))):
        for output in range(c):
            without = there[:, places, output].T[:, pairs[:, 0]]
            reach = residual[:, output]
            lower[places, output] = -upper_statistic(_add_residuals(-without, reach), weight, rank)
            upper[places, output] = upper_statistic(_add_residuals(without, reach), weight, rank)
    return setting.prediction, lower, upper
