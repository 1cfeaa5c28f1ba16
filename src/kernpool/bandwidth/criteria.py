r"""Criteria: what a bandwidth is judged by, each a sum of squared residuals times a penalty.

With :math:`N = \sum_i w_i` rows, the mean of squares :math:`\hat\sigma^2 = \sum_i w_i e_i^2 / N` and the trace of the
hat matrix :math:`T = \sum_i w_i H_{ii}`, where :math:`H_{ii} = \partial \hat y_i / \partial y_i`,

====== =========================== ============================================== =====================
name   residuals                   criterion                                      source
====== =========================== ============================================== =====================
loo    from the fit without row i  :math:`\hat\sigma^2`                           Clark (1975)
gcv    of the fit                  :math:`\hat\sigma^2 / (1 - T/N)^2`             Craven, Wahba (1979)
aicc   of the fit                  :math:`\log \hat\sigma^2 + \frac{1 + T/N}      Hurvich, Simonoff,
                                   {1 - (T + 2)/N}`                               Tsai (1998), eq. 11
====== =========================== ============================================== =====================

In local linear fits with ``"gcv"`` and ``"aicc"``, rows of leverage above one half count with residuals from fits
without them (`kernpool.bandwidth.leverage`): the mean leverage T/N says nothing of rows that fit themselves.

An empty leave-one-out window costs a degree of freedom in each of them (`kernpool.bandwidth.search.evaluation`).

All three are functions of :math:`S = \hat\sigma^2 \exp(p(T))`, so one search by least squares serves them all.
With groups ``"loo"`` predicts each row from the rows of all other groups: leave-cluster-out, for noise that is shared.
``"regularised"`` is the first with another penalty, on the bandwidths themselves, see
`kernpool.bandwidth.search.regularity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-7


@dataclass(frozen=True)
class Criterion:
    """What a bandwidth is judged by.

    Parameters
    ----------
    name : str
        What ``bandwidth=`` calls it.
    exclude_self : bool
        Whether each row is fitted from the others.
    log_penalty : callable or None
        ``(trace, n) -> (p, dp / dtrace)``: the logarithm of the factor on the mean of squares, infinite where the fit
        has so many degrees of freedom that the criterion is not defined. None is no penalty.
    in_logs : bool
        Whether the criterion is ``log S`` instead of ``S``.
    regular : bool, default=False
        Whether bandwidths are penalised too; see `kernpool.bandwidth.search.regularity`.
    """

    name: str
    exclude_self: bool
    log_penalty: Callable[[float, float], tuple[float, float]] | None
    in_logs: bool
    regular: bool = False

    def value(self, penalised: float, power: int = 0) -> float:
        """Return the criterion of a penalised mean of squares times a power of two."""
        if not self.in_logs:
            return times_power(penalised, power)
        return math.log(penalised) + power * math.log(2.0) if penalised > 0 else -math.inf


def times_power(square: float, power: int) -> float:
    """Return a number times a power of two; infinity beyond the range of float64."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(square, power))


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


def check_groups(group: NDArray[np.int64] | None, criterion: str) -> None:
    """Refuse groups with a criterion that leaves no rows out, and a single group.

    Parameters
    ----------
    group : ndarray of int, shape (n,), or None
        Number of the group of each row.
    criterion : str
        What is minimised.

    Raises
    ------
    ValueError
        If nothing could be left out, or nothing would remain.

    Examples
    --------
    >>> check_groups(np.array([0, 0, 1]), "loo")
    >>> check_groups(np.array([0, 0, 0]), "loo")
    Traceback (most recent call last):
    ValueError: groups has a single group, so that no rows are left to predict it from; give at least two, or none
    """
    if group is None:
        return
    if criterion != "log_loss" and not (criterion in CRITERIA and CRITERIA[criterion].exclude_self):
        raise ValueError(
            f"groups are left out by 'loo', 'regularised' or, for classes, 'log_loss', and bandwidth={criterion!r} "
            "leaves no rows out; use one of these, a number, or fit without groups"
        )
    if len(group) and np.all(group == group[0]):
        raise ValueError(
            "groups has a single group, so that no rows are left to predict it from; give at least two, or none"
        )
