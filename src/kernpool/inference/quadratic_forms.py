r"""Quadratic forms: sums over squared shares, by one more pass over the keys, without a table of queries and keys.

The value of a local fit is :math:`\sum_j l_j v_j` with shares :math:`l_j = \alpha_j (b + \tau \cdot t_j)`, where
:math:`\alpha_j = w_j K(t_j) / D` and :math:`t_j = (k_j - q) / h`. Variances are made of inner products of shares. They
are counted in *unit rows*: a key of frequency 3 is three equal rows, each with a third of its share, so that

.. math:: \langle l, l' \rangle_\psi = \sum_j \frac{l_j l'_j}{w_j} \psi_j
          = \frac{1}{D D'} \sum_j w_j \psi_j\, K(t_j) K(t'_j)\, (b + \tau \cdot t_j)(b' + \tau' \cdot t'_j).

The product of kernels is a sum of kernels (`kernpool.kernels.products`), so this is a pooling state with moments: with
M, the mean :math:`\bar t` and the covariance C of its offsets,

.. math:: \langle l, l' \rangle_\psi = \frac{M}{D D'}
          \big[ (b + \tau \cdot \bar t)(b' + \tau' \cdot \bar t) + \tau' C \tau \big],

of which no term of a square is negative. Of a local quadratic fit t is followed by its products, and the state has
moments for these (`kernpool.core.share_products`). Units are kept as logarithms: far from all keys M, D and D'
underflow, and the quotient does not. A ridge changes b and tau, and nothing else here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.reading import in_unit
from kernpool.core.share_products import in_other_bandwidths, mean_product, size_of_shares
from kernpool.core.similarity import KernelSimilarity
from kernpool.core.state import PoolState
from kernpool.execution.threads import cut
from kernpool.inference.share_tables import ShareTables
from kernpool.inference.shares import Shares
from kernpool.kernels import Term, products

Array = NDArray[np.float64]
Summed = Callable[[Problem], PoolState]
Form = Callable[[PoolState, Layout, tuple[Shares, float], tuple[Shares, float]], Array]

# Far from the mean of its keys a plane has shares that are differences of large numbers, and the covariance of squared
# weights is lost where that of the weights has half of its digits. Nine digits of a norm are asked for; where rounding
# may leave less, shares are taken one by one. A standard error was zero beyond an isolated row.
ROUNDING, DOUBT = 2.0**-50, 1e-9


def inner(one: Shares, other: Shares, sums: Summed, psi: Array | None = None) -> Array:
    """Return the inner products of shares of the same queries and keys.

    Parameters
    ----------
    one, other : Shares
        Bandwidths may differ by a common factor.
    sums : callable
        Sums a problem; `Smoother.sums`.
    psi : ndarray of shape (n,), optional
        Weight of each key, per unit row, such as its squared residual; by default one.

    Returns
    -------
    ndarray of shape (m,)
        NaN where a window is empty.
    """
    total, error = _by_moments(one, other, sums, psi)
    doubtful = np.flatnonzero(error > DOUBT * np.abs(total))
    if doubtful.size:
        left, right = (ShareTables.of([(1.0, share)]) for share in (one, other))
        for which in cut(doubtful.size, left.places):
            rows = doubtful[which]
            total[rows] = left.summed(left.rows(rows) * right.rows(rows), psi)
    return total


def squared_norm(terms: Sequence[tuple[float, Shares]], sums: Summed, psi: Array | None = None) -> Array:
    """Return the squared norm of a linear combination of shares.

    Parameters
    ----------
    terms : sequence of (float, Shares)
        Coefficients and shares.
    sums, psi
        As of `inner`.

    Returns
    -------
    ndarray of shape (m,)
        Not negative; NaN where a window is empty.
    """
    total, error = np.zeros(len(terms[0][1].base)), np.zeros(len(terms[0][1].base))
    for i, (a, one) in enumerate(terms):
        for j, (b, other) in enumerate(terms[: i + 1]):
            factor = a * b * (1.0 if i == j else 2.0)
            part, rounding = _by_moments(one, other, sums, psi)
            total += factor * part
            error += abs(factor) * rounding
    doubtful = np.flatnonzero(error > DOUBT * total)
    if doubtful.size:
        tables = ShareTables.of(terms)
        for which in cut(doubtful.size, tables.places):
            total[doubtful[which]] = tables.summed(tables.rows(doubtful[which]) ** 2, psi)
    return np.maximum(total, 0.0)


def _by_moments(one: Shares, other: Shares, sums: Summed, psi: Array | None) -> tuple[Array, Array]:
    """Return inner products by formula (1), NaN where a window is empty, and how much of them may be rounding."""
    if one.factor > other.factor:
        one, other = other, one
    problem = one.problem
    total, error = np.zeros(len(one.base)), np.zeros(len(one.base))
    if psi is None or np.any(psi > 0):
        single = problem.similarity.composition == "product" and problem.key.shape[1] > 1
        for term in products(problem.similarity.kernel, max(other.factor / one.factor, 1.0), single=single):
            multiplied = product_problem(one, other, term, psi)
            state = sums(multiplied)
            total += combined(state, multiplied, term, one, other)
            error += ROUNDING * combined(state, multiplied, term, one, other, form=size_form)
    occupied = np.isfinite(one.log_mass) & np.isfinite(other.log_mass)
    return np.where(occupied, total, np.nan), error


def combined(
    state: PoolState, multiplied: Problem, term: Term, one: Shares, other: Shares, form: Form | None = None
) -> Array:
    """Return what a term of the product of kernels adds to the inner products, from its state.

    Parameters
    ----------
    state : PoolState
        Of the problem.
    multiplied : Problem
        Of `product_problem`.
    term : Term
        Its kernel, width and factor; the factor counts once, or once per column of a product of profiles.
    one, other : Shares
        The narrower first.
    form : callable, default=moment_form
        Mean of the products of shares over the keys; or `size_form`.

    Returns
    -------
    ndarray of shape (m,)
        Zero where nothing is in the window.
    """
    columns = multiplied.key.shape[1] if multiplied.similarity.composition == "product" else 1
    other_width = term.width * one.factor / other.factor
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # far from all rows, where no digit is left
        unit = np.exp(state.log_denominator + columns * np.log(term.factor) - one.log_mass - other.log_mass)
        mean = (form or moment_form)(state, multiplied.layout, (one, term.width), (other, other_width))
        return np.where(state.denominator > 0, unit * mean, 0.0)


def moment_form(state: PoolState, layout: Layout, one: tuple[Shares, float], other: tuple[Shares, float]) -> Array:
    """Return the mean of ``(b + tau . z)(b' + tau' . z')`` over the keys of a state, about the mean of their offsets.

    Beside each of the shares stands the bandwidth of the state in units of theirs.
    """
    pairs = [(share.base, in_other_bandwidths(share.tilt, layout, width)) for share, width in (one, other)]
    return mean_product(state, layout, pairs[0], pairs[1])


def size_form(state: PoolState, layout: Layout, one: tuple[Shares, float], other: tuple[Shares, float]) -> Array:
    """Return what the terms of `moment_form` are no larger than."""
    pairs = [(share.base, in_other_bandwidths(share.tilt, layout, width)) for share, width in (one, other)]
    return size_of_shares(state, layout, pairs[0]) * size_of_shares(state, layout, pairs[1])


def product_problem(one: Shares, other: Shares, term: Term, psi: Array | None) -> Problem:
    """Return the problem whose sums are those of a term of the product of two kernels, with weights ``w psi``."""
    problem, similarity = one.problem, one.problem.similarity
    weight, unit, value = problem.key_weight, problem.weight_unit, problem.value
    if psi is not None:
        weight, unit = in_unit(psi if weight is None else weight * unit * psi)
    # Nobody looks at sums of values. A single column stays, so that what is prepared of the keys is used again: half of
    # the time of a pass of a million rows.
    as_it_is = psi is None and value.shape[1] == 1
    return replace(
        problem,
        value=value if as_it_is else np.zeros((len(problem.key), 1)),
        value_center=problem.value_center if as_it_is else np.zeros(1),
        similarity=KernelSimilarity(term.kernel, similarity.bandwidth * term.width, similarity.composition),
        key_weight=weight,
        weight_unit=unit,
        degree=problem.degree if one.tilt.shape[1] else 0,
        factors=_product_factors(problem.factors, other.problem.factors),
        prepared=problem.prepared if as_it_is else None,
    )


def _product_factors(one: Factors | None, other: Factors | None) -> Factors | None:
    if one is None or other is None:
        return None
    tables = tuple(a * b for a, b in zip(one.tables, other.tables, strict=True))
    return replace(one, tables=tables, slopes=tuple(np.zeros_like(table) for table in tables))
