"""Which groups have rows within reach of each other: only there does a difference of their curves show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.factors import Factors
from kernpool.data.groups import named
from kernpool.inference.linear_map import LinearMap
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Share of the weights around a row. With 40 rows on [0, 1], 40 on [2, 3] and the Gaussian it is at most .28, .01, 4e-5
# and 2e-25 at bandwidths of 1, .4, .25 and .1. At the last T is rounding and p is 1.
LEAST_SHARE = 1e-3
NAMED = 4  # groups in a message


def groups_apart(code: Integers) -> Factors:
    """Return the factors of rows with rows that are 1 within a group and 0 between groups."""
    apart = np.eye(int(code.max()) + 1)
    return Factors(code[:, None], code[:, None], (apart,), (np.zeros_like(apart),))


def out_of_reach(X: Array, code: Integers, recipe: Recipe) -> Integers:
    """Return the groups whose rows have no weight next to rows of others, nor others next to theirs.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    code : ndarray of int, shape (n,)
        Groups, from 0 on.
    recipe : Recipe
        Kernel and bandwidth.

    Returns
    -------
    ndarray of int
        Numbers of groups, in order. Rows of others have less than a thousandth of the weight around each of their rows,
        and they have less than that around each row of others. Two passes over pairs of rows, three if there are any.

    Examples
    --------
    >>> X, code = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]]), np.array([0, 1, 0, 2, 2])
    >>> out_of_reach(X, code, Recipe.of("gaussian", np.array([0.2])))
    array([2])
    """
    level, one, groups = replace(recipe, degree=0), np.ones((len(X), 1)), int(code.max()) + 1
    everything = LinearMap.at_rows(level, X)
    own = LinearMap.at_rows(level, X, groups_apart(code)).sums(one) / everything.sums(one)
    share = np.zeros(groups)
    np.maximum.at(share, code, 1.0 - own[:, 0])
    alone = np.flatnonzero(share < LEAST_SHARE)
    if not alone.size:
        return alone
    # A small group within a large one has next to no weight at its rows, but not the other way round.
    member = (code[:, None] == alone).astype(np.float64)
    among_others = np.where(member > 0, 0.0, everything.fit(member))
    return np.asarray(alone[among_others.max(axis=0) < LEAST_SHARE])


def refuse_out_of_reach(
    X: Array, code: Integers, labels: NDArray[Any], recipe: Recipe, *, offsets: bool = False
) -> None:
    """Refuse groups that are compared with nothing.

    Parameters
    ----------
    X, code, recipe
        As of `out_of_reach`.
    labels : ndarray of shape (groups,)
        Of the groups.
    offsets : bool, default=False
        Whether the bandwidth is that of the offsets of parallel curves, which no argument says.
    """
    alone = out_of_reach(X, code, recipe)
    if not alone.size:
        return
    # With two groups both are out of reach; of more, another one tells what there is to compare with.
    shown = np.unique(np.append(alone, np.setdiff1d(np.arange(len(labels)), alone)[:1]))[:NAMED]
    ranges = ", ".join(f"{_range(X[code == g])} in {named(labels[g])}" for g in shown)
    whose = " of the offsets of parallel curves" if offsets else ""
    wider = "" if offsets else ", or give bandwidth= a larger one, which extrapolates"
    raise ValueError(
        f"no rows of other groups are within reach of {' and '.join(named(labels[g]) for g in alone[:NAMED])} at the "
        f"bandwidth {recipe.bandwidth.tolist()}{whose}, so that there is nothing to compare; X goes {ranges}. Compare "
        f"groups over a common range, or leave {'it' if alone.size == 1 else 'these'} out{wider}"
    )


def _range(X: Array) -> str:
    low, high = X.min(axis=0), X.max(axis=0)
    return " and ".join(f"from {a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True))
