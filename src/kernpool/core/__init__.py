"""Core data structures: pooling problem (queries, keys, values), kernel-weighted sums, and local polynomial fits.

START HERE. Read `state.py` first: three numbers per query that merge; the whole package rests on them. Then read
`similarity.py`, how a kernel and a bandwidth weight a pair, and `problem.py`, everything that an algorithm is given.
`input_validation.py` validates the arrays that callers pass. `moments.py` lists the sums that local polynomial fits
need, and `local_fit.py` fits planes and quadratics from them. `pair_factors.py` holds categorical columns,
`exclusion.py` rows that are left out together, `batch.py` leading batch dimensions, `robust_weights.py` weighted
medians and weights of outliers, and `dependent_columns.py` columns whose slopes no plane determines.
"""

from kernpool.core.batch import Stack
from kernpool.core.exclusion import SINGLE_ROWS, ExcludedPairs, Exclusion, Units, sums_of_others
from kernpool.core.input_validation import Keys, Rows, as_tol, centered, checked_rows, column_range, in_unit
from kernpool.core.local_fit import LocalFit, RankDeficiencyWarning, solve, warn_of_curvature, with_ridge
from kernpool.core.moments import MOST_COLUMNS, Layout, check_degree, monomials
from kernpool.core.pair_factors import NO_CATEGORIES, Categories, Factors
from kernpool.core.problem import FLOAT64, FLOAT64_EPSILON, Problem
from kernpool.core.robust_weights import Reweighting, weighted_median
from kernpool.core.similarity import CARTESIAN, Geometry, KernelLogits
from kernpool.core.state import (
    Empty,
    EmptyWindowWarning,
    PoolState,
    check_empty,
    empty_state,
    fill_empty,
    fill_in_silence,
    merge,
)

__all__ = [
    "CARTESIAN",
    "FLOAT64",
    "FLOAT64_EPSILON",
    "MOST_COLUMNS",
    "NO_CATEGORIES",
    "SINGLE_ROWS",
    "Categories",
    "Empty",
    "EmptyWindowWarning",
    "ExcludedPairs",
    "Exclusion",
    "Factors",
    "Geometry",
    "KernelLogits",
    "Keys",
    "Layout",
    "LocalFit",
    "PoolState",
    "Problem",
    "RankDeficiencyWarning",
    "Reweighting",
    "Rows",
    "Stack",
    "Units",
    "as_tol",
    "centered",
    "check_degree",
    "check_empty",
    "checked_rows",
    "column_range",
    "empty_state",
    "fill_empty",
    "fill_in_silence",
    "in_unit",
    "merge",
    "monomials",
    "solve",
    "sums_of_others",
    "warn_of_curvature",
    "weighted_median",
    "with_ridge",
]
