"""Criteria for bandwidth selection (leave-one-out, AICc, GCV, log loss), and their treatment of high leverage.

With N = sum_i w_i rows, the mean square s2 = sum_i w_i e_i^2 / N and the trace of the hat matrix T = sum_i w_i
H_ii, where H_ii is the derivative of fitted value i with respect to y_i:

====== =========================== ============================================== =============================
name   residuals e_i               criterion                                      source
====== =========================== ============================================== =============================
loo    from the fit without row i  s2                                             Clark (1975)
gcv    of the fit                  s2 / (1 - T/N)^2                               Craven, Wahba (1979)
aicc   of the fit                  log(s2) + (1 + T/N) / (1 - (T + 2)/N)          Hurvich, Simonoff, Tsai (1998),
                                                                                  eq. 11
====== =========================== ============================================== =============================

All are functions of S = s2 exp(p(T)), so one nonlinear least-squares search minimises each of them. With an exclusion
``"loo"`` predicts each row from the rows that are not left out with it, for noise that those of a unit
share. ``"regularised"`` is ``"loo"`` with a penalty on the bandwidths. That penalty, and the cost of one degree of
freedom for each empty leave-one-out window, are in `kernpool.bandwidth.search.objective`.

Leave-one-out predictions are always sums over ``j != i``. The shortcut through the diagonal of the hat matrix
divides by ``1 - K(0)/D_i``, which cancels near isolated rows and has false minima at tiny bandwidths.

Leverage. GCV and AICc penalise the mean leverage T/N and do not see single rows of leverage one, which local linear
fits have at the edge of several columns: their residuals are zero whatever y is, and their slopes mean nothing.
Huber, "Robust Statistics" (1981), section 7.2, calls leverages up to .2 safe, and those from .5 on to be avoided.
So from one half on the residual of a local linear fit moves smoothly to the deleted residual e_i / (1 - H_ii)
(Allen, "The relationship between variable selection and data augmentation and a method for prediction",
Technometrics 16 (1974), 125-127)::

    r_i = e_i (1 - H_ii)^(-s)

with s rising from 0 to 1 as the leverage rises from one half to one; below one half the criterion is unchanged to
the last bit. Within 1e-4 of leverage one, where digits are lost, r_i moves on to the deviation from the mean of the
other rows, as for an empty window. A few such residuals could dominate the criterion: with categories next to
numbers, R^2 by ``"aicc"`` fell from .91 to .78. So they are bounded by b, two standard deviations of y:
``(1 - s) r + s r / sqrt(1 + (r / b)^2)``.

On 10 simulated tables of 100 rows in 4 or 5 columns the worst held-out R^2 of local linear fits by ``"aicc"`` rose
from -4.5 to .24. Refusing bandwidths with leverage one would leave none where a column is an indicator of a single
row.

The log loss of class probabilities is that of probabilities mixed with the class priors (`prior_share`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kernpool._arrays import Array, Flags, Index
from kernpool.core import EmptyWindowWarning, Exclusion, Problem, fill_in_silence, sums_of_others
from kernpool.execution import Progress, cut, warn_caller
from kernpool.pooling import Sums, choose, limit_values

ROUNDING = 1e-7


@dataclass(frozen=True)
class Criterion:
    """Bandwidth-selection criterion: which residuals it squares, and its penalty on degrees of freedom.

    Parameters
    ----------
    name : str
        Name in ``bandwidth=``.
    exclude_self : bool
        Whether each row is fitted from the others.
    log_penalty : callable or None
        ``(trace, n) -> (p, dp / dtrace)``: the logarithm of the factor on the mean of squares, infinite where the fit
        has so many degrees of freedom that the criterion is not defined. None for no penalty.
    in_logs : bool
        Whether the criterion is ``log S`` instead of ``S``.
    regular : bool, default=False
        Whether bandwidths are penalised too; see `kernpool.bandwidth.search.objective`.
    """

    name: str
    exclude_self: bool
    log_penalty: Callable[[float, float], tuple[float, float]] | None
    in_logs: bool
    regular: bool = False


def _generalised(trace: float, n: float) -> tuple[float, float]:
    freedom = n - trace
    if not freedom > ROUNDING * n:  # both this and the residuals are rounding then
        return math.inf, 0.0
    return -2.0 * math.log(freedom / n), 2.0 / freedom


def _corrected(trace: float, n: float) -> tuple[float, float]:
    freedom = n - trace - 2.0
    if not freedom > 0.0:
        return math.inf, 0.0
    return (n + trace) / freedom, (2.0 * n - 2.0) / freedom**2


CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion("loo", exclude_self=True, log_penalty=None, in_logs=False),
        Criterion("regularised", exclude_self=True, log_penalty=None, in_logs=False, regular=True),
        Criterion("aicc", exclude_self=False, log_penalty=_corrected, in_logs=True),
        Criterion("gcv", exclude_self=False, log_penalty=_generalised, in_logs=False),
    )
}
LOG_LOSS = Criterion("log_loss", exclude_self=True, log_penalty=None, in_logs=False)


def check_exclusion(exclusion: Exclusion, criterion: Criterion | None, name: str) -> None:
    """Raise ValueError if rows are to be left out together and the criterion leaves none out, or nothing is left.

    Parameters
    ----------
    exclusion : Exclusion
        Which rows are left out together.
    criterion : Criterion or None
        None for a bandwidth that is estimated without a criterion.
    name : str
        Name of such an estimate, for the message.
    """
    if criterion is None or not criterion.exclude_self:
        raise ValueError(
            f"{exclusion.option} is for 'loo', 'regularised' or, for classes, 'log_loss', which leave rows out, and "
            f"bandwidth={name if criterion is None else criterion.name!r} leaves none out; use one of these, a number, "
            f"or fit without {exclusion.option}"
        )
    exclusion.refuse_alone()


LARGEST_SHARE = 0.95  # of a window's weight, within the gap
JUDGED_ROWS = 64


def lies_within_gap(problem: Problem) -> bool:
    """Return whether nearly all weight of a typical window, without its own row, is left out with that row.

    Such a fit averages rows of the gap, and is judged by a prediction from other rows, the nearest beyond the gap. The
    weight is compared with that in an infinite window, so that there is always a window that does not lie within.

    Parameters
    ----------
    problem : Problem
        The training rows as queries and as keys, with rows that are left out together. Up to 64 of them, in equal
        steps, are looked at.

    Notes
    -----
    Of 3000 fits with the gap that the warning names (100 to 400 rows, regular and irregular times, sin(t / 15) and
    sin(t / 5), correlations from .4 to .9, two kernels, degrees 0 and 1) 27 percent had more than twice the least error
    of the curve. With this rule, and that of `search_one_factor`, it is 16.5 percent at a share of .95, of the slower
    curve 7.2 instead of 16.5; a share of .8 has 21.4 and 5.4 percent, .9 17.6 and 6.7, .99 14.5 and 7.8.

    Examples
    --------
    >>> t = np.arange(100.0)[:, None]
    >>> rows = Exclusion(np.arange(100), gap=5)
    >>> def at(bandwidth):
    ...     return Problem.from_arrays(t, t, t, bandwidth=bandwidth).excluding(rows.code, rows)
    >>> [lies_within_gap(at(bandwidth)) for bandwidth in (0.5, 2.0, 4.0, 1000.0)]
    [True, True, False, False]
    """
    if problem.excluded is None or not problem.excluded.gap:
        return False
    n = len(problem.query)
    rows = np.cumsum(problem.frequency)  # of weight one each
    some = np.searchsorted(rows, np.unique(np.linspace(0, rows[-1] - 1, JUDGED_ROWS).astype(np.intp)), side="right")
    window = replace(problem, excluded=None, self_index=np.arange(n)).block(some)
    beyond, equal = problem.excluded.block(some).takes_part(), window.multiplicity()
    logits = window.similarity.logits(window.query, window.key)
    if window.factors is not None:
        logits = np.asarray(sum(window.factors.logarithms(), start=logits))
    logits = np.where(equal > 0, logits, -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):  # a window without another row has no weight beyond
        weight = equal * np.exp(logits - logits.max(axis=1, keepdims=True))
        of_window, of_infinite = (np.sum(each * beyond, axis=1) / each.sum(axis=1) for each in (weight, equal))
        share = np.nan_to_num(of_window / of_infinite, nan=0.0)
    return bool(np.median(share) < 1.0 - LARGEST_SHARE)


SAFE = 0.5
LARGEST = 2.0  # standard deviations
# One minus leverage: above the first number a deleted residual has eight correct digits, below the second none.
EXACT, ALONE = 1e-4, 1e-8


def replace_at_high_leverage(
    residual: Array, alone: Array, hat: Array, bound: Array
) -> tuple[Array, Array | float, Array | float]:
    """Replace residuals at rows of leverage above one half by bounded deleted (leave-one-out) residuals.

    Parameters
    ----------
    residual : ndarray of shape (n, c)
        Residuals of the fit.
    alone : ndarray of shape (n, c)
        Outputs minus the mean of the other rows.
    hat : ndarray of shape (n,)
        Diagonal of the hat matrix.
    bound : ndarray of shape (n, c)
        Largest residual of rows of leverage one, positive.

    Returns
    -------
    residual : ndarray of shape (n, c)
        Residuals that replace those of the fit; as they are, if no leverage is above one half.
    by_fit, by_hat : ndarray of shape (n, c) or float
        Their derivatives by the residuals of the fit, and by the diagonal of the hat matrix.

    Examples
    --------
    >>> residual, alone = np.array([[0.1], [0.1], [0.0]]), np.array([[2.0], [2.0], [2.0]])
    >>> hat, bound = np.array([0.3, 0.99, 1.0]), np.full((3, 1), 1e3)
    >>> replace_at_high_leverage(residual, alone, hat, bound)[0].ravel().round(2)
    array([0.1 , 9.95, 2.  ])
    """
    if not np.any(hat > SAFE):
        return residual, 1.0, 0.0
    free = np.maximum(1.0 - hat, 1e-3 * ALONE)
    log_free, span = np.log(free), float(np.log(EXACT / ALONE))
    deleted, by_leverage = _step((hat - SAFE) / (1.0 - SAFE))
    factor = np.exp(-deleted * log_free)
    slope = factor * (deleted / free - by_leverage / (1.0 - SAFE) * log_free)
    mean, by_log = _step((np.log(EXACT) - log_free) / span)
    towards_mean = by_log / (span * free)
    by_fit = ((1.0 - mean) * factor)[:, None]
    by_hat = ((1.0 - mean) * slope - towards_mean * factor)[:, None] * residual + towards_mean[:, None] * alone
    found = by_fit * residual + mean[:, None] * alone
    share, square = deleted[:, None], 1.0 + (found / bound) ** 2
    bounded = found / np.sqrt(square)
    inner = 1.0 - share + share * square**-1.5
    by_hat = inner * by_hat + (by_leverage / (1.0 - SAFE))[:, None] * (bounded - found)
    return found + share * (bounded - found), inner * by_fit, by_hat


def _step(u: Array) -> tuple[Array, Array]:
    """Return the smooth step ``3 u**2 - 2 u**3`` and its derivative, with `u` clipped to [0, 1]."""
    u = np.clip(u, 0.0, 1.0)
    return u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u)


ROWS_AT_ONCE = 1 << 16  # whose fits are some megabytes, and of a million rows as much as the sums


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out predictions of the training rows, with their mean squared error.

    Parameters
    ----------
    prediction : ndarray of shape (n, c)
        Row i predicted from the other rows, or from those that are not left out with it.
    error : float
        Weighted mean over rows of the squared error, summed over outputs.
    occupied : ndarray of bool, shape (n,)
        Which rows have another one inside the kernel's support; the rest is predicted by the weighted mean of the
        others.
    """

    prediction: Array
    error: float
    occupied: Flags

    @property
    def empty_windows(self) -> int:
        """Number of rows with no other row inside the kernel's support."""
        return int(np.count_nonzero(~self.occupied))


def leave_one_out(
    problem: Problem,
    *,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ridge: Array | None = None,
    rows: Index | None = None,
) -> LeaveOneOut:
    r"""Return leave-one-out predictions of all training rows, with their mean squared error.

    .. math:: CV(h) = \sum_i w_i \lVert y_i - \hat y_{-i}(x_i) \rVert^2 \Big/ \sum_i w_i

    Parameters
    ----------
    problem : Problem
        With the training rows as queries and as keys, and ``exclude_self=True``, or `Problem.excluding`
        them; local linear with ``degree=1``.
    algorithm, n_jobs, progress
        As in `pool`.
    ridge : ndarray of shape (d,), optional
        Ridge, as of `Recipe.ridge_weight`.
    rows : ndarray of int, optional
        Which training rows the queries are; by default all.

    Returns
    -------
    LeaveOneOut
        Predictions, error and number of empty windows.

    Examples
    --------
    >>> import kernpool
    >>> x = [[0.0], [1.0], [2.0]]
    >>> problem = kernpool.Problem.from_arrays(x, x, [0.0, 3.0, 6.0], kernel="constant", exclude_self=True)
    >>> leave_one_out(problem).error
    13.5
    """
    plan, n = choose(problem, algorithm, reuse=True), len(problem.query)
    state = plan.reduce(problem.without_center(), n_jobs=n_jobs, progress=progress)
    value, weight = problem.value, problem.key_weight
    if rows is not None:
        value, weight = value[rows], None if weight is None else weight[rows]
    prediction, squared, occupied = np.empty_like(value), np.empty(n), np.empty(n, dtype=bool)
    for some in cut(n, ROWS_AT_ONCE):
        fit = Sums(state.rows(some), problem.layout, problem.value_center).fit(ridge)
        prediction[some], occupied[some] = fit.intercept, fit.occupied
    fill = partial(limit_values, problem, empty="mean", n_jobs=n_jobs)
    alone = np.count_nonzero(np.isnan(fill_in_silence(prediction, occupied, "mean", fill)[~occupied, 0]))
    if alone:
        warn_caller(
            f"{alone} of {n} rows have no other row to be predicted from, and their leave-one-out predictions are NaN; "
            "fit more rows",
            EmptyWindowWarning,
        )
    for some in cut(n, ROWS_AT_ONCE):
        squared[some] = np.sum((value[some] + problem.value_center - prediction[some]) ** 2, axis=1)
    error = squared.mean() if weight is None else weight @ squared / weight.sum()
    return LeaveOneOut(prediction, float(error), occupied)


SHARE_TOLERANCE = 1e-10  # of the mixing weight; the log loss is flat at its minimum


class PriorShare(NamedTuple):
    """Mixing weight of the class priors, and the resulting probabilities and log loss.

    Parameters
    ----------
    share : float
        Mixing weight of the priors.
    mixed : ndarray of shape (n,)
        Probability of the class of each row after mixing, positive.
    log_loss : float
        Weighted mean of ``-log(mixed)``.
    """

    share: float
    mixed: Array
    log_loss: float


def prior_share(probability: Array, prior: Array, weight: Array | None = None) -> PriorShare:
    r"""Find the mixing weight of the class priors that minimises the leave-one-out log loss.

    .. math:: \min_s -\sum_i w_i \log\big((1 - s)\, p_i + s\, \pi_i\big) \Big/ \sum_i w_i,
              \qquad \frac{1}{n + 1} \le s \le \frac{n}{n + 1}

    Parameters
    ----------
    probability : ndarray of shape (n,)
        :math:`p_i`, the leave-one-out probability of the class that row i has.
    prior : ndarray of shape (n,)
        :math:`\pi_i`, the prior of that class; positive.
    weight : ndarray of shape (n,), optional
        Frequencies, of which at least one is positive; `n` is their sum.

    Returns
    -------
    PriorShare
        The mixing weight, the mixed probabilities, and their log loss.

    Notes
    -----
    The mixture is deleted interpolation [1]_, and the mixing weight is the m/(n + m) of Cestnik's m-estimate [2]_. The
    log loss is convex in the mixing weight, so its slope has one zero, which is bracketed. The lower bound is
    Laplace's rule of succession [3]_: a method that did not fail in n trials fails in the next with a probability of
    about :math:`1/(n + 1)`, so leave-one-out cannot justify a smaller weight. The upper bound is its mirror image;
    below one, the order of the pooled probabilities remains. O(n) time for each of some ten steps.

    References
    ----------
    .. [1] F. Jelinek and R. L. Mercer, "Interpolated estimation of Markov source parameters from sparse data", Pattern
       Recognition in Practice (1980), 381-397.
    .. [2] B. Cestnik, "Estimating probabilities: a crucial task in machine learning", ECAI 1990, 147-149.
    .. [3] E. T. Jaynes, Probability Theory: The Logic of Science (2003), section 18.10, on Laplace (1774).

    Examples
    --------
    Nine rows of ten are right with certainty, and one is wrong with certainty:

    >>> found = prior_share(np.array([1.0] * 9 + [0.0]), np.full(10, 0.5))
    >>> round(found.share, 3), round(found.log_loss, 3)
    (0.2, 0.325)
    >>> round(prior_share(np.ones(10), np.full(10, 0.5)).share, 3)
    0.091
    """
    from scipy.optimize import brentq

    weight = np.ones(len(probability)) if weight is None else weight
    kept = weight > 0
    probability, towards, times = np.clip(probability[kept], 0.0, 1.0), prior[kept], weight[kept]
    towards, n = towards - probability, float(times.sum())
    rows = max(n, float(len(times)))  # weights that were normalised do not make rows fewer
    low = 1.0 / (rows + 1.0)
    high = max(low, rows / (rows + 1.0))

    def slope(share: float) -> float:
        return -float(times @ (towards / (probability + share * towards))) / n

    if slope(low) >= 0.0:
        share = low
    elif slope(high) <= 0.0:
        share = high
    else:
        share = float(brentq(slope, low, high, xtol=SHARE_TOLERANCE))
    mixed = np.ones(len(kept))
    mixed[kept] = probability + share * towards
    return PriorShare(share, mixed, -float(times @ np.log(mixed[kept])) / n)


def prior_of_others(label: Array, weight: Array | None = None, exclusion: Exclusion | None = None) -> Array:
    r"""Return the prior probability of each row's own class, estimated from the other rows.

    Of the row's own frequency at most one is held out; with an exclusion, all rows that are left out with it.

    Parameters
    ----------
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.
    exclusion : Exclusion, optional
        Which rows are held out together.

    Returns
    -------
    ndarray of shape (n,)
        Positive: where no other row has the class, the row itself is included. Otherwise its probability would be zero
        with any mixing weight, and its log loss infinite.

    Examples
    --------
    >>> prior_of_others(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    array([0.5       , 0.5       , 0.33333333])
    """
    weight = np.ones(len(label)) if weight is None else weight
    prior = np.sum(label * priors_of_others(label, weight, exclusion), axis=1)
    prior = np.where(prior > 0.0, prior, label @ (weight @ label) / float(weight.sum()))
    return np.where(prior > 0.0, prior, 1.0)  # a row of weight zero with its whole class: it is ignored


def priors_of_others(label: Array, weight: Array, exclusion: Exclusion | None = None) -> Array:
    r"""Return, for each row, the prior probabilities of all classes, estimated from the other rows.

    Of the row's own frequency at most one is held out; with an exclusion, all rows that are left out with it.

    Parameters
    ----------
    label, weight, exclusion
        As of `prior_of_others`.

    Returns
    -------
    ndarray of shape (n, k)
        Rows add up to one. A class that no other row has is zero there; without other rows, the priors of all rows.

    Examples
    --------
    >>> priors_of_others(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.ones(3))
    array([[0.5, 0.5],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    others, like = sums_of_others(weight, label, exclusion)
    share = np.divide(like, others[:, None], where=others[:, None] > 0.0, out=np.zeros_like(like))
    return np.where(others[:, None] > 0.0, share, weight @ label / float(weight.sum()))
