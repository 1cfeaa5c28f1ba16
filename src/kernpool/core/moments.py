"""Moment sums that local linear and quadratic fits need, and the columns of `PoolState.numerator` that hold them.

With the offsets ``t_a = (k_a - q_a) / h_a`` of a key from the query, in bandwidths, a state of ``degree=1`` sums

======== ================= ======================== =================================
columns  how many          weight times             order
======== ================= ======================== =================================
value    c                 ``v_b``                  ``b``
first    d                 ``t_a``                  ``a``
second   d (d + 1) / 2     ``t_a t_e``, ``a <= e``  upper triangle, row by row
cross    d c               ``t_a v_b``              ``a``, then ``b``
======== ================= ======================== =================================

and one of ``degree=2``, for a local quadratic fit, these as well:

============ ======================= ================================ =================================
columns      how many                weight times                     order
============ ======================= ================================ =================================
third        C(d + 2, 3)             ``t_a t_e t_f``, ascending       as `monomials` gives them
fourth       C(d + 3, 4)             ``t_a t_e t_f t_g``, ascending   as `monomials` gives them
cross_second d (d + 1) / 2 times c   ``t_a t_e v_b``, ``a <= e``      that of second, then ``b``
============ ======================= ================================ =================================

Offsets are from the query and never from the origin, so that no large numbers cancel, and so that states of disjoint
sets of keys merge by addition, as all other sums do.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from kernpool._arrays import Array
from kernpool.core.state import PoolState
from kernpool.execution import abbreviate

Monomial = tuple[int, ...]  # which offsets are multiplied, ascending

PIECE = 1 << 18  # rows
MOST_COLUMNS = 3  # of a local quadratic fit: 34 sums of powers of offsets, and 69 with one column more


@dataclass(frozen=True)
class Layout:
    """Map from kinds of weighted sums that a local fit needs to the columns of `PoolState.numerator` that hold them.

    Parameters
    ----------
    values : int
        Number c of value columns.
    columns : int
        Number d of columns of queries and keys.
    degree : {0, 1, 2}
        0 for the values alone.
    sizes : tuple of int, default=()
        Numbers of columns that are one point together, as of `Geometry`, and have the same unit.

    Examples
    --------
    >>> layout = Layout(values=1, columns=2, degree=1)
    >>> layout.value, layout.first, layout.second, layout.cross, layout.width
    (slice(0, 1, None), slice(1, 3, None), slice(3, 6, None), slice(6, 8, None), 8)
    >>> Layout(values=1, columns=2, degree=0).width, Layout(values=1, columns=2, degree=2).width
    (1, 20)
    """

    values: int
    columns: int
    degree: int
    sizes: tuple[int, ...] = ()
    value: slice = field(init=False, repr=False, compare=False)
    first: slice = field(init=False, repr=False, compare=False)
    second: slice = field(init=False, repr=False, compare=False)
    cross: slice = field(init=False, repr=False, compare=False)
    third: slice = field(init=False, repr=False, compare=False)
    fourth: slice = field(init=False, repr=False, compare=False)
    cross_second: slice = field(init=False, repr=False, compare=False)
    width: int = field(init=False, repr=False, compare=False)
    regressors: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        c, d, start = self.values, self.columns, 0
        pairs = d * (d + 1) // 2
        numbers = c, d, pairs, d * c, comb(d + 2, 3), comb(d + 3, 4), pairs * c
        kinds = "value", "first", "second", "cross", "third", "fourth", "cross_second"
        for kind, number in zip(kinds, numbers, strict=True):
            object.__setattr__(self, kind, slice(start, start + number))
            start += number
        object.__setattr__(self, "width", (c, self.cross.stop, start)[self.degree])
        object.__setattr__(self, "regressors", (0, d, d + pairs)[self.degree])

    def places(self, order: int) -> dict[Monomial, int]:
        """Map each product of `order` offsets to the column that holds its weighted sum.

        Examples
        --------
        >>> Layout(values=1, columns=2, degree=2).places(3)
        {(0, 0, 0): 8, (0, 0, 1): 9, (0, 1, 1): 10, (1, 1, 1): 11}
        """
        start = (self.first, self.second, self.third, self.fourth)[order - 1].start
        return {product: start + i for i, product in enumerate(monomials(self.columns, order))}

    def moved(self, denominator: Array, numerator: Array, shift: Array) -> Array:
        """Recompute the weighted sums for offsets increased by `shift`, as if measured from another query.

        Examples
        --------
        >>> Layout(1, 1, 1).moved(np.array([2.0]), np.array([[5.0, 3.0, 9.0, 7.0]]), np.array([[10.0]]))
        array([[  5.,  23., 269.,  57.]])
        """
        m, result = len(numerator), numerator.copy()
        first = numerator[:, self.first]
        upper, lower = np.triu_indices(self.columns)
        moved = first + denominator[:, None] * shift
        result[:, self.first] = moved
        result[:, self.second] += shift[:, upper] * first[:, lower] + shift[:, lower] * moved[:, upper]
        cross = shift[:, :, None] * numerator[:, None, self.value]
        result[:, self.cross] += cross.reshape(m, self.columns * self.values)
        if self.degree == 2:
            self._move_products(denominator, numerator, shift, result)
        return result

    def _move_products(self, denominator: Array, numerator: Array, shift: Array, result: Array) -> None:
        """Update in `result` the sums that only quadratic fits need, for offsets increased by `shift`."""
        sums: dict[Monomial, Array] = {(): denominator} | {
            product: numerator[:, place] for order in (1, 2, 3, 4) for product, place in self.places(order).items()
        }
        power: dict[Monomial, Array] = {(): np.ones(len(shift))}
        for order in (1, 2, 3, 4):
            for product in monomials(self.columns, order):
                power[product] = power[product[:-1]] * shift[:, product[-1]]
        for order in (3, 4):
            for product, place in self.places(order).items():
                for kept, moved, times in expansion(product):
                    if moved:
                        result[:, place] += times * power[moved] * sums[kept]
        m, c, pairs = len(numerator), self.values, monomials(self.columns, 2)
        value, cross = numerator[:, self.value], numerator[:, self.cross].reshape(m, self.columns, c)
        second = result[:, self.cross_second].reshape(m, len(pairs), c)
        for i, (a, b) in enumerate(pairs):
            second[:, i] += shift[:, a, None] * cross[:, b] + shift[:, b, None] * cross[:, a]
            second[:, i] += power[a, b][:, None] * value
        result[:, self.cross_second] = second.reshape(m, len(pairs) * c)

    def with_center(self, state: PoolState, center: Array) -> PoolState:
        """Return the kernel sums as if `center` had been added to all values.

        Examples
        --------
        >>> state = PoolState(np.zeros(1), np.array([2.0]), np.array([[5.0, 3.0, 9.0, 7.0]]))
        >>> Layout(1, 1, 1).with_center(state, np.array([100.0])).numerator
        array([[205.,   3.,   9., 307.]])
        """
        denominator, numerator = state.denominator, state.numerator
        if not self.degree:
            moved = np.empty_like(numerator)
            for start in range(0, len(moved), PIECE):  # a single call over many rows is deaf to Ctrl-C
                rows = slice(start, start + PIECE)
                np.multiply(denominator[rows, None], center, out=moved[rows])
                moved[rows] += numerator[rows]
            return PoolState(state.shift, denominator, moved)
        moved = numerator.copy()
        moved[:, self.value] += denominator[:, None] * center
        moved[:, self.cross] += np.repeat(numerator[:, self.first], self.values, axis=1) * np.tile(center, self.columns)
        if self.degree == 2:
            second = np.repeat(numerator[:, self.second], self.values, axis=1)
            moved[:, self.cross_second] += second * np.tile(center, second.shape[1] // self.values)
        return PoolState(state.shift, denominator, moved)


layout_of = cache(Layout)


@cache
def monomials(columns: int, order: int) -> tuple[Monomial, ...]:
    """Return all products of `order` offsets as tuples of column numbers, in the order in which sums are stored.

    Examples
    --------
    >>> monomials(2, 3)
    ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1))
    """
    return tuple(combinations_with_replacement(range(columns), order))


@cache
def expansion(product: Monomial) -> tuple[tuple[Monomial, Monomial, int], ...]:
    """Expand a product of shifted offsets ``t_a + s_a`` into terms (columns of t, columns of s, multiplicity)."""
    terms: Counter[tuple[Monomial, Monomial]] = Counter()
    for which in range(1 << len(product)):
        moved = tuple(a for i, a in enumerate(product) if which >> i & 1)
        kept = tuple(a for i, a in enumerate(product) if not which >> i & 1)
        terms[kept, moved] += 1
    return tuple((kept, moved, times) for (kept, moved), times in terms.items())


def check_degree(degree: int, columns: int = 0) -> None:
    """Raise ValueError unless the degree of a local fit is 0 (constant), 1 (linear) or 2 (quadratic)."""
    if isinstance(degree, bool) or not isinstance(degree, int | float | np.number) or degree not in (0, 1, 2):
        raise ValueError(
            f"degree must be 0 (local constant), 1 (local linear) or 2 (local quadratic), got {abbreviate(degree)}"
        )
    if degree == 2 and columns > MOST_COLUMNS:
        raise ValueError(
            f"degree=2 is for one to {MOST_COLUMNS} columns, got {columns}: a local quadratic has "
            f"{columns * (columns + 3) // 2 + 1} coefficients to be found from every window; use degree=1"
        )
