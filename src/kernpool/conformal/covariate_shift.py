"""Likelihood ratios of new rows to training rows, for conformal prediction under covariate shift.

`order_statistics.py` says how they weight the scores. `density_ratio` estimates them, as the ratio of two kernel
density estimates, one of new rows and one of training rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth.rules_of_thumb import RULES, rule_of_thumb
from kernpool.core.input_validation import Rows, read_rows
from kernpool.data import Kind, as_bandwidth, as_key_weight, labels_of, order_of_columns, refuse_foreign, with_days
from kernpool.data.dates import in_words
from kernpool.execution.error_messages import abbreviate, explain_calls
from kernpool.execution.warnings import underflow_is_zero, warn_caller
from kernpool.inference.variance.standard_errors import InferenceWarning
from kernpool.pooling import pool_state

Array = NDArray[np.float64]

FORM = (
    "weights must be a function of X that returns a likelihood ratio for each row, such as density_ratio(X_train, "
    "X_new), or a pair of arrays: the ratios of the rows that calibrate, and those of the rows of X"
)

BEYOND = (
    "their weight is too large for this level, since too few calibration rows lie near them; add calibration rows "
    "there, or ask for a lower level"
)


def read_weights(
    weights: Any,
    rows: Callable[[], Any],
    places: Any,
    counts: tuple[int, int],
    which: NDArray[np.intp] | None = None,
) -> tuple[Array, Array]:
    """Validate the likelihood ratios of calibration rows and evaluation points; compute them if given a function.

    Parameters
    ----------
    weights : callable, or pair of array_like
        The argument of the caller.
    rows : callable
        Returns the calibration rows in the caller's format; called only if `weights` is a function of them.
    places : array_like
        X as the caller passed it.
    counts : tuple of int
        Numbers of such rows and of points.
    which : ndarray of int, shape (n,), or None
        Indices of the calibration rows; None for all.

    Returns
    -------
    shift, place_shift : ndarray of shape (n,) and (m,)
        Non-negative, those of the rows finite and not all zero.

    Raises
    ------
    TypeError
        If `weights` is neither.
    ValueError
        If the number of ratios does not match, or ratios are negative, NaN, or all zero.
    """
    if callable(weights):
        pair = weights(rows()), weights(places)
    elif isinstance(weights, tuple | list) and len(weights) == 2:
        pair = weights[0], weights[1]
    else:
        found = f"an array of shape {weights.shape}" if isinstance(weights, np.ndarray) else type(weights).__name__
        raise TypeError(f"{FORM}; got {found}")
    shift = _as_ratios(pair[0], counts[0], "rows that calibrate")
    place_shift = _as_ratios(pair[1], counts[1], "rows of X")
    shift = shift if which is None else shift[which]
    if not np.all(np.isfinite(shift)):
        raise ValueError(
            "weights of the rows that calibrate must be finite, and one of them is infinite: it would be the only row "
            "that counts; clip the ratios"
        )
    if not shift.any():
        raise ValueError(
            "weights of the rows that calibrate are all zero: none of them lies where new rows do; give calibration "
            "rows that overlap with the new ones, or omit weights="
        )
    return shift, place_shift


def _as_ratios(given: Any, count: int, what: str) -> Array:
    refuse_foreign("weights", given)
    try:
        ratio = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights of the {what} must be numbers, got {type(given).__name__}; {FORM}") from None
    if ratio.shape != (count,):
        raise ValueError(f"weights of the {what} must be one per row, {count}, got shape {ratio.shape}; {FORM}")
    if not np.all(ratio >= 0):
        wrong = ratio[~(ratio >= 0)][0]
        raise ValueError(
            f"weights of the {what} must not be negative or NaN, got {wrong}; they are ratios of densities, up to a "
            "factor that all have in common"
        )
    return ratio


# Logarithms of sums of weights below this are rounded to one percent and more: that is six million bandwidths away from
# all rows, where a ratio of two of them means nothing.
UNKNOWN = -0.01 / float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """Estimated density of new rows over that of training rows, as a function of X; made by `density_ratio`.

    Parameters
    ----------
    training, new : Rows
        Both samples.
    training_weight, new_weight : ndarray of shape (n,) or (m,), or None
        Frequencies of their rows.
    bandwidth : ndarray of shape (d,)
        Bandwidths of both densities.
    largest : float
        Upper bound at which ratios are clipped.
    n_jobs : int or None
        Threads.
    kinds : tuple of d str, default=()
        Kinds of the columns of both samples: numbers, dates or durations.

    Notes
    -----
    Called with all training rows, or all new rows, in their order, it returns leave-one-out ratios: each row is
    excluded from the density at its own point, since an isolated row would otherwise seem to have neighbours. At any
    other rows nothing is excluded.
    """

    training: Rows = field(repr=False)
    new: Rows = field(repr=False)
    training_weight: Array | None = field(repr=False)
    new_weight: Array | None = field(repr=False)
    bandwidth: Array
    largest: float
    n_jobs: int | None = field(default=None, repr=False)
    kinds: tuple[Kind, ...] = field(default=(), repr=False)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the estimated ratio of new to training density at each row of X.

        Parameters
        ----------
        X : array_like of shape (r, d)
            Rows in the columns of both samples; those of a frame are found by name.

        Returns
        -------
        ndarray of shape (r,)
            Between 0 and `largest`.

        Raises
        ------
        TypeError, ValueError
            As for `density_ratio`.

        Warns
        -----
        InferenceWarning
            If ratios are clipped.
        """
        rows = _read_like("X", X, self.training.labels, self.kinds)
        if rows.array.shape[1] != self.training.array.shape[1]:
            raise ValueError(
                f"X has {rows.array.shape[1]} column(s) and the densities are of {self.training.array.shape[1]}; give "
                "the columns that X_train and X_new had"
            )
        return self._clipped(self._logarithm(rows))

    @cached_property
    def at_training(self) -> Array:
        """Leave-one-out density ratios at the training rows, of shape (n,)."""
        return self._clipped(self._logarithm(self.training))

    @cached_property
    def at_new(self) -> Array:
        """Leave-one-out density ratios at the new rows, of shape (m,)."""
        return self._clipped(self._logarithm(self.new))

    @property
    def effective_rows(self) -> float:
        r"""Effective sample size of rows with weights w and ratios r, :math:`(\sum w_i r_i)^2 / \sum w_i r_i^2`."""
        weight = np.ones(len(self.training.array)) if self.training_weight is None else self.training_weight
        ratio = self.at_training
        square = float(weight @ ratio**2)
        return float(weight @ ratio) ** 2 / square if square > 0 else 0.0

    def _logarithm(self, rows: Rows) -> Array:
        """Return the log density ratio at given rows; plus infinity where both densities are too small to compare."""
        new = self._log_density(rows, self.new, self.new_weight)
        training = self._log_density(rows, self.training, self.training_weight)
        known = np.maximum(new, training) > UNKNOWN
        # Both may be minus infinity.
        return np.asarray(np.subtract(new, training, where=known, out=np.full(len(new), np.inf)))

    def _log_density(self, at: Rows, rows: Rows, weight: Array | None) -> Array:
        """Return the log kernel density of a sample at given rows, up to a constant common to both samples.

        It is the logarithm of a mean of kernels. At the rows of the sample itself each row is held out.
        """
        alone = np.array_equal(at.array, rows.array)
        state = pool_state(
            at.array,
            rows.array,
            np.zeros(len(rows.array)),
            bandwidth=self.bandwidth,
            key_weight=weight,
            exclude_self=alone,
            n_jobs=self.n_jobs,
        )
        total: Array | float = float(len(rows.array)) if weight is None else float(weight.sum())
        if alone:
            total = total - (1.0 if weight is None else np.minimum(weight, 1.0))
        mass = np.where(state.denominator > 0, state.log_denominator, -np.inf)
        return np.asarray(mass - np.log(total))

    def _clipped(self, logarithm: Array) -> Array:
        above = logarithm > math.log(self.largest)
        if above.any():
            warn_caller(
                f"at {np.count_nonzero(above)} of {len(above)} rows (the first is row {np.flatnonzero(above)[0]}) "
                "there are very few training rows for the number of new ones: the ratio is above "
                f"{self.largest:g}, or unknown, and is clipped to that; training rows have little information there",
                InferenceWarning,
            )
        with np.errstate(over="ignore"):
            return np.where(above, self.largest, np.exp(logarithm))


@underflow_is_zero
@explain_calls
def density_ratio(
    X_train: ArrayLike,
    X_new: ArrayLike,
    *,
    bandwidth: Any = "scott",
    weight_train: ArrayLike | None = None,
    weight_new: ArrayLike | None = None,
    largest: float | None = None,
    n_jobs: int | None = None,
) -> DensityRatio:
    r"""Estimate the density ratio of new to training rows, for ``weights=`` of a prediction interval.

    .. math:: \hat r(x) = \frac{\sum_j v_j K((x - z_j)/h) / V}{\sum_i w_i K((x - x_i)/h) / W}

    with the Gaussian kernel K, training rows x of weights w with the sum W, and new rows z of weights v.

    Parameters
    ----------
    X_train : array_like of shape (n,) or (n, d)
        Training rows: numbers, dates or durations, which become days since 1970-01-01 UTC and days, at least two rows.
        Columns of frames are found by name.
    X_new : array_like of shape (m,) or (m, d)
        New rows, for which predictions are made; outputs are not needed. At least two.
    bandwidth : {"scott", "silverman"}, float or array_like of shape (d,), default="scott"
        Bandwidths of both densities. A rule is applied to each sample, standardised by its own spread
        (`column_spread`), and the larger bandwidth of each column is used: with a common bandwidth much of the bias of
        both cancels [2]_, and the larger one belongs to the less informative sample. Constant columns are not counted.
    weight_train, weight_new : array_like of shape (n,) and (m,), optional
        Frequencies of rows.
    largest : float, optional
        Larger ratios are clipped to this value. The default is the number of training rows: their ratios have the mean
        1, so that none of n can be above n.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.

    Returns
    -------
    DensityRatio
        A function from rows to ratios, of shape (r,), which ``prediction_interval(..., weights=)`` accepts; with the
        ratios of both samples as ``at_training`` and ``at_new``, and the effective sample size of the weighted training
        rows as ``effective_rows``.

    Raises
    ------
    TypeError
        If rows are not numeric; encode categories first, or give ``weights=`` two arrays.
    ValueError
        If there are fewer than two rows, widths differ, an option is out of its range, or a column is constant in both
        samples at different values, so that they do not overlap.

    Warns
    -----
    InferenceWarning
        If ratios are clipped when they are evaluated.

    Notes
    -----
    Densities are leave-one-out: each row is excluded from the density at its own point. Otherwise an isolated training
    row would have a density of at least one kernel, and the rows that matter most under a shift would get too little
    weight. This applies if the ratio is evaluated at all rows of a sample: a subset is not recognised, since repeated
    values would be mistaken for it. So compute intervals at all new rows in one call.

    Densities are logarithms of sums of weights, so that no tail underflows and there is no 0/0: far from both samples
    the nearest rows decide. Six million bandwidths away, where the difference of two logarithms has no correct digits,
    the ratio is `largest`. Where a row has the ratio n its interval is infinite at any level above one half.

    An interval with estimated ratios is approximate; how well depends on the estimate. With many columns densities are
    poorly estimated, and a classifier of new against training rows gives a better ratio [3]_: any function of X may be
    given as ``weights=``.

    Two sums, O(n + m + r) time for r rows of one column, O((n + m) r) or less for more, and O(n + m + r) memory.

    References
    ----------
    .. [1] R. J. Tibshirani, R. F. Barber, E. J. Candes and A. Ramdas, "Conformal prediction under covariate shift",
       NeurIPS 32 (2019), section 2.3.
    .. [2] J. E. Kelsall and P. J. Diggle, "Kernel estimation of relative risk", Bernoulli 1 (1995), 3-16.
    .. [3] M. Sugiyama, T. Suzuki and T. Kanamori, "Density Ratio Estimation in Machine Learning", Cambridge University
       Press (2012), chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> import kernpool
    >>> g = np.random.default_rng(0)
    >>> ratio = kernpool.density_ratio(g.normal(0, 1, 500), g.normal(1, 1, 500))
    >>> ratio([-1.0, 0.5, 2.0]).round(1)
    array([0.2, 1.2, 3.7])
    >>> 100 < ratio.effective_rows < 400
    True
    """
    table, kinds = with_days("X_train", X_train)
    training = read_rows("X_train", table)._replace(labels=labels_of(X_train))
    kinds = kinds or ("numeric",) * training.array.shape[1]
    new = _read_like("X_new", X_new, training.labels, kinds)
    if training.array.shape[1] != new.array.shape[1]:
        raise ValueError(
            f"X_train has {training.array.shape[1]} column(s) and X_new has {new.array.shape[1]}; give both the "
            "same columns"
        )
    of_training = _as_weight("train", weight_train, training)
    of_new = _as_weight("new", weight_new, new)
    widths = _bandwidth(bandwidth, kinds, (training.array, of_training), (new.array, of_new))
    most = _as_largest(largest, training.array, of_training)
    return DensityRatio(training, new, of_training, of_new, widths, most, n_jobs, kinds)


def _read_like(name: str, given: Any, labels: Sequence[Any] | None, kinds: tuple[Kind, ...]) -> Rows:
    """Validate a table against the names and kinds of the training columns, and put its columns in their order."""
    found = labels_of(given)
    order = order_of_columns(found, labels)
    if order is not None:
        kinds = tuple(kinds[order.index(place)] for place in range(len(order)))
    return read_rows(name, with_days(name, given, kinds)[0])._replace(labels=found).in_order_of(labels)


def _as_weight(name: str, given: ArrayLike | None, rows: Rows) -> Array | None:
    """Validate the frequency weights of a sample, whose total has to be at least two; None means weights of one."""
    weight, total = None, float(len(rows.array))
    if given is not None:
        weight = as_key_weight(given, (len(rows.array),), f"weight_{name}", "row")
        total = float(weight.sum())
    if total < 2.0:
        raise ValueError(
            f"X_{name} must have at least two rows, got {total:g}: each is held out of the density at its own point; "
            "give more rows"
        )
    return weight


def _as_largest(largest: float | None, rows: Array, weight: Array | None) -> float:
    if largest is None:
        return float(len(rows)) if weight is None else float(weight.sum())
    number = isinstance(largest, int | float | np.number) and not isinstance(largest, bool)
    if not number or not 0 < largest < math.inf:
        raise ValueError(f"largest must be a positive number, above which no ratio is to be, got {abbreviate(largest)}")
    return float(largest)


def _bandwidth(given: Any, kinds: Sequence[Kind], *samples: tuple[Array, Array | None]) -> Array:
    """Return the bandwidth of each column: as given, or the larger of the two samples' rule-of-thumb bandwidths."""
    columns = samples[0][0].shape[1]
    if not isinstance(given, str):
        return as_bandwidth(given, columns)
    if given not in RULES:
        raise ValueError(f"bandwidth must be one of {', '.join(map(repr, RULES))}, or numbers, got {abbreviate(given)}")
    found, ends = np.zeros(columns), []
    for rows, weight in samples:
        kept = rows if weight is None else rows[weight > 0]
        varies = np.ptp(kept, axis=0) > 0
        ends.append(kept[0])
        if varies.any():
            of_these = rule_of_thumb(np.ascontiguousarray(rows[:, varies]), weight, rule=given)
            found[varies] = np.maximum(found[varies], of_these)
    apart = (found == 0) & (ends[0] != ends[1])
    if apart.any():
        a = int(np.flatnonzero(apart)[0])
        old, new = (in_words(end[a], kinds[a]) for end in ends)
        raise ValueError(
            f"column {a} is {old} in all rows of X_train and {new} in all rows of X_new, so that "
            "they do not overlap, and training rows have no information on new ones; leave the column out, or give "
            "bandwidth= numbers"
        )
    return np.where(found > 0, found, 1.0)
