"""Pooling: kernel-weighted means and local polynomial fits over arrays, chunks, memory maps and streams.

Read `pool.py` first: the public functions, from pairs to pooled values in three steps. `recipe.py` has the parameters
of pooling, chooses the plan for a sum, and turns sums into values. `plan.py` has the plan of a single algorithm, and
that of windows which differ between queries, `category_cells.py` that of categorical columns, and `excluded_plan.py`
that of rows left out together. Pairs come from `in_memory.py`, or are not in memory: `source.py` has the interface that
chunks and memory maps (`out_of_core.py`) share with partitions of Dask. `weights.py` computes the dense weights,
`rounding_error.py` a bound of the rounding error. `lowess.py` smooths a scatterplot by robust fits; it loads compiled
loops, so nothing is imported from it here.
"""

from kernpool.pooling.in_memory import ArrayPairs, local_fit
from kernpool.pooling.out_of_core import ChunkPairs
from kernpool.pooling.plan import Plan
from kernpool.pooling.pool import as_pairs, pool, pool_state
from kernpool.pooling.recipe import (
    Recipe,
    ReportRank,
    Sums,
    choose,
    finalize,
    limit_problem,
    limit_values,
    quotient,
    sum_problem,
)
from kernpool.pooling.rounding_error import rounding_bound
from kernpool.pooling.source import Answer, MapReduce, QueryBatch, Question, Source, found_in_rows, merge_states
from kernpool.pooling.weights import pooling_weights, weight_rows, weight_tables
from kernpool.pooling.widths import Floor, Nearest

__all__ = [
    "Answer",
    "ArrayPairs",
    "ChunkPairs",
    "Floor",
    "MapReduce",
    "Nearest",
    "Plan",
    "QueryBatch",
    "Question",
    "Recipe",
    "ReportRank",
    "Source",
    "Sums",
    "as_pairs",
    "choose",
    "finalize",
    "found_in_rows",
    "limit_problem",
    "limit_values",
    "local_fit",
    "merge_states",
    "pool",
    "pool_state",
    "pooling_weights",
    "quotient",
    "rounding_bound",
    "sum_problem",
    "weight_rows",
    "weight_tables",
]
