"""Quadratic forms of linear weights, for variances: one more pass over the keys, without a weight matrix.

The value of a local fit is sum_j l_j v_j with linear weights l_j = alpha_j (b + tau . t_j), where alpha_j = w_j
K(t_j) / D and t_j = (k_j - q) / h. Variances are made of inner products of such weights. They are taken over *unit
rows*: a key of frequency 3 is three equal rows, each with a third of its linear weight, so that::

    <l, l'>_psi = sum_j l_j l'_j psi_j / w_j
                = sum_j w_j psi_j K(t_j) K(t'_j) (b + tau . t_j) (b' + tau' . t'_j) / (D D')

The product of kernels is a sum of kernels (`kernpool.kernels.squares`), so this is a pooling state with
moments. With its mass M, and the mean tbar and the covariance C of its offsets::

    <l, l'>_psi = M / (D D') [(b + tau . tbar) (b' + tau' . tbar) + tau' C tau]                                  (1)

No term of a square is negative. For a local quadratic fit t also holds the products of offsets, and the state has
their moments (`kernpool.core.local_fit`). Masses are kept as logarithms: far from all keys M, D and D' underflow,
and the quotient does not. A ridge changes b and tau, and nothing else here.

`LinearWeights` holds b, tau and log D. `WeightTables` holds linear weights key by key for blocks of queries, for what
moments do not give, and for kernels without compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import PoolState, Problem, in_unit
from kernpool.core.local_fit import in_other_bandwidths, mean_product
from kernpool.execution import cut
from kernpool.kernels import Term, products


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """Linear weights of the keys in one local fit per query, in closed form.

    Parameters
    ----------
    problem : Problem
        Queries, keys, frequencies and similarity.
    factor : float
        Its bandwidths, in a unit common to all linear weights of an inner product.
    log_mass : ndarray of shape (m,)
        Logarithm of the sum of weights; minus infinity where the window is empty.
    base : ndarray of shape (m,)
        The b of the linear weights (module docstring).
    tilt : ndarray of shape (m, regressors)
        In bandwidths of the problem; without columns for fits that are local constant.
    """

    problem: Problem
    factor: float
    log_mass: Array
    base: Array
    tilt: Array

    def over(self, key: Array, weight: Array | None) -> LinearWeights:
        """Return the linear weights of other keys, with these frequencies, in the same fits."""
        nothing = np.zeros((len(key), 1))
        problem = replace(self.problem, key=key, value=nothing, value_center=np.zeros(1), prepared=None)
        return replace(self, problem=replace(problem, key_weight=weight, weight_unit=1.0))


Terms = Sequence[tuple[float, LinearWeights]]

PAIRS = 1 << 18  # in one table: two megabytes, which caches hold


@dataclass(frozen=True, eq=False)
class WeightTables:
    """Matrices of linear weights, queries by keys of positive frequency, of a linear combination of local fits.

    Parameters
    ----------
    terms : sequence of (float, LinearWeights)
        Coefficients and linear weights.
    kept : ndarray of int, shape (k,)
        Keys, in the order of the columns.
    weight : ndarray of shape (k,)
        Their frequencies.
    """

    terms: Terms
    kept: Index
    weight: Array

    @classmethod
    def of(cls, terms: Terms, order: Index | None = None) -> WeightTables:
        """Build a `WeightTables` from linear weights, over the keys of positive frequency, in a given order."""
        problem = terms[0][1].problem
        weight = problem.frequency * problem.weight_unit
        kept = np.flatnonzero(weight > 0) if order is None else order[weight[order] > 0]
        some = [(a, replace(share, problem=share.problem.block(slice(None), kept))) for a, share in terms]
        return cls(some, kept, weight[kept])

    @property
    def places(self) -> int:
        """Number of queries per block."""
        return max(1, PAIRS // max(1, len(self.kept)))

    def rows(self, which: slice | Index) -> Array:
        """Return the linear weights of the keys at the queries with these indices, of shape (queries, k)."""
        return np.asarray(sum(factor * self._one(shares, which) for factor, shares in self.terms))

    def _one(self, shares: LinearWeights, which: slice | Index) -> Array:
        part = shares.problem.block(which)
        logits = part.similarity.logits(part.query, part.key)
        if part.factors is not None:
            logits = np.asarray(sum(part.factors.logarithms(), start=logits))
        with np.errstate(invalid="ignore", over="ignore"):
            alpha = self.weight * np.exp(logits - shares.log_mass[which][:, None])
        tilted, tilt = np.repeat(shares.base[which][:, None], len(self.kept), axis=1), shares.tilt[which]
        if tilt.shape[1]:
            d = part.key.shape[1]
            regressors = [part.similarity.offset(part.query, part.key, a) for a in range(d)]
            if part.degree == 2:
                regressors += [regressors[a] * regressors[b] for a, b in zip(*np.triu_indices(d), strict=True)]
            for regressor, column in zip(regressors, tilt.T, strict=True):
                tilted += column[:, None] * regressor
        return np.asarray(alpha * tilted)


Summed = Callable[[Problem], PoolState]

# Far from the mean of its keys the linear weights of a plane are differences of large numbers, and the covariance of
# squared weights is lost where that of the weights has half of its digits. Nine digits of a norm are required; where
# rounding may leave fewer, weights are computed one by one. A standard error was zero beyond an isolated row.
ROUNDING, DOUBT = 2.0**-50, 1e-9


def norms_by_rows(terms: Terms, rows: Index, psi: Array | None = None) -> Array:
    """Return the squared norms of linear weights at some queries, by the weight of every key."""
    tables, total = WeightTables.of(terms), np.empty(len(rows))
    unit = (1.0 if psi is None else psi[tables.kept]) / tables.weight  # of sums over unit rows
    for which in cut(len(rows), tables.places):
        total[which] = np.sum(tables.rows(rows[which]) ** 2 * unit, axis=1)
    return total


def squared_norm(
    terms: Terms,
    sums: Summed,
    psi: Array | None = None,
    by_rows: Callable[[Terms, Index, Array | None], Array] = norms_by_rows,
) -> Array:
    """Return, for each query, the squared norm of a linear combination of linear weights.

    Parameters
    ----------
    terms : sequence of (float, LinearWeights)
        Coefficients and linear weights, whose bandwidths differ by common factors.
    sums : callable
        Sums a problem; `Smoother.sums`, or `SharedSums`.
    psi : ndarray of shape (n,), optional
        Weight of each key, per unit row, such as its squared residual; by default one.
    by_rows : callable
        Computes norms that moments do not give; `Smoother.norms_by_rows`.

    Returns
    -------
    ndarray of shape (m,)
        Not negative; NaN where a window is empty.
    """
    m = len(terms[0][1].base)
    total, error = np.zeros(m), np.zeros(m)
    occupied = np.all([np.isfinite(each.log_mass) for _, each in terms], axis=0)
    pairs = combinations_with_replacement(terms, 2) if psi is None or np.any(psi > 0) else ()
    for first, second in pairs:  # the inner product of each, by formula (1) of the module
        (_, one), (_, other) = sorted((first, second), key=lambda term: term[1].factor)
        factor = first[0] * second[0] * (1.0 if first is second else 2.0)
        for term in products(one.problem.similarity.kernel, max(other.factor / one.factor, 1.0)):
            multiplied = product_problem(one, other, term, psi)
            part, size = combined(sums(multiplied), multiplied, term, one, other)
            total += factor * part
            error += abs(factor) * ROUNDING * size
    doubtful = np.flatnonzero(occupied & (error > DOUBT * total))
    if doubtful.size:
        total[doubtful] = by_rows(terms, doubtful, psi)
    return np.where(occupied, np.maximum(total, 0.0), np.nan)


def effective_rows(
    problem: Problem,
    log_mass: Array,
    sums: Summed,
    by_rows: Callable[[Terms, Index, Array | None], Array] = norms_by_rows,
) -> Array:
    """Return Kish's effective sample size of pooling weights, whose sums have the logarithms `log_mass`, in one pass.

    Each unit of a frequency is a row. Zero where the window is empty.
    """
    m = len(log_mass)
    if not m:
        return np.zeros(0)
    pooling = LinearWeights(problem, 1.0, log_mass, np.ones(m), np.zeros((m, 0)))
    squared = squared_norm([(1.0, pooling)], sums, None, by_rows)
    return np.divide(1.0, squared, where=squared > 0, out=np.zeros(m))


def combined(
    state: PoolState, multiplied: Problem, term: Term, one: LinearWeights, other: LinearWeights
) -> tuple[Array, Array]:
    """Return the contribution of one term of the expanded kernel product to inner products of linear weights.

    Parameters
    ----------
    state : PoolState
        State of the problem.
    multiplied : Problem
        Result of `product_problem`.
    term : Term
        Its kernel, width and factor; the factor is applied once, or once per column of a product of profiles.
    one, other : LinearWeights
        The one with the smaller bandwidth first.

    Returns
    -------
    contribution, size : ndarray of shape (m,)
        Zero where nothing is in the window. The size bounds the terms that are summed, for their rounding error.
    """
    columns = multiplied.key.shape[1] if multiplied.similarity.kernel.composition == "product" else 1
    layout, known = multiplied.layout, state.denominator > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # far from all rows, where no digit is left
        unit = np.exp(state.log_denominator + columns * np.log(term.factor) - one.log_mass - other.log_mass)
        first = one.base, in_other_bandwidths(one.tilt, layout, term.width)
        second = other.base, in_other_bandwidths(other.tilt, layout, term.width * one.factor / other.factor)
        mean, size = mean_product(state, layout, first, second)
        return np.where(known, unit * mean, 0.0), np.where(known, unit * size, 0.0)


def product_problem(one: LinearWeights, other: LinearWeights, term: Term, psi: Array | None) -> Problem:
    """Return the pooling problem whose kernel is one term of the expanded product of two kernels.

    Its keys have the weights ``w psi``.
    """
    problem, similarity = one.problem, one.problem.similarity
    weight, unit, value = problem.key_weight, problem.weight_unit, problem.value
    if psi is not None:
        weight, unit = in_unit(psi if weight is None else weight * unit * psi)
    factors = problem.factors
    if factors is not None and other.problem.factors is not None:
        tables = tuple(a * b for a, b in zip(factors.tables, other.problem.factors.tables, strict=True))
        factors = replace(factors, tables=tables, slopes=tuple(np.zeros_like(table) for table in tables))
    # Sums of values are not used. A single column stays, so that the preparation of the keys is reused: half of
    # the time of a pass of a million rows.
    as_it_is = psi is None and value.shape[1] == 1
    return replace(
        problem,
        value=value if as_it_is else np.zeros((len(problem.key), 1)),
        value_center=problem.value_center if as_it_is else np.zeros(1),
        similarity=similarity.squared(term.kernel, term.width),
        key_weight=weight,
        weight_unit=unit,
        degree=problem.degree if one.tilt.shape[1] else 0,
        factors=factors,
        prepared=problem.prepared if as_it_is else None,
    )


SAME_BANDWIDTH = 1e-14  # h sqrt(2) / sqrt(2) is h
MOMENTS = ("first", "second", "third", "fourth")


class SharedSums:
    """Kernel sums at the same points of the same rows, whatever the values: those of fits serve for norms, too.

    The square of a Gaussian kernel is a Gaussian kernel of another bandwidth, and the linear weights of slopes are
    combinations of the same moments. Intervals of d slopes take three passes for the norms instead of 3 d: 67 ms
    instead of 171 at 401 points of 20 000 rows in three columns. For the default interval with a Gaussian kernel this
    saves two of eight passes: the square of the kernel of the wider fit is the kernel of the narrower one, and that of
    the noise fit is the kernel of the wider.

    Parameters
    ----------
    sums : callable
        Sums a problem; `Smoother.sums`.
    known : iterable of (Problem, PoolState)
        Sums that fits at these points have left.
    """

    def __init__(self, sums: Summed, known: Iterable[tuple[Problem, PoolState]] = ()) -> None:
        self._sums, self._known = sums, list(known)

    def __call__(self, problem: Problem) -> PoolState:
        """Return the kernel sums of a pooling problem, known or computed; those of weighted values are meaningless."""
        known = next((pair for pair in self._known if _has_moments(pair[0], problem)), None)
        if known is None:
            known = problem, self._sums(problem)
            self._known.append(known)
        (other, state), wanted = known, problem.layout
        layout = other.layout
        if layout == wanted:
            return state
        numerator = np.zeros((len(state.denominator), wanted.width))
        for name in MOMENTS[: 2 * wanted.degree]:
            numerator[:, getattr(wanted, name)] = state.numerator[:, getattr(layout, name)]
        return PoolState(state.shift, state.denominator, numerator)


def _has_moments(known: Problem, problem: Problem) -> bool:
    """Return whether the sums of a known problem include the moments of another one, at the same points and rows."""
    one, two = known.similarity, problem.similarity
    if one.kernel is not two.kernel or known.degree < problem.degree or known.weight_unit != problem.weight_unit:
        return False
    if not np.all(np.abs(one.bandwidth - two.bandwidth) <= SAME_BANDWIDTH * one.bandwidth):
        return False
    weight, own_weight = (1.0 if each.key_weight is None else each.key_weight for each in (known, problem))
    tables, own_tables = (() if each.factors is None else each.factors.tables for each in (known, problem))
    return np.array_equal(weight, own_weight) and all(map(np.array_equal, tables, own_tables))
