"""The verbs: over which pairs, by which algorithm, and what comes out.

Read `pool.py` first: it is the whole path in one function. `plan.py` chooses an algorithm and says why; `cells.py`
pools categorical columns cell by cell, `chunked.py` pairs that come in chunks, `running.py` pairs that keep coming.
`rounding.py` says how precise an answer is.
"""

from kernpool.pooling.choice import choose
from kernpool.pooling.plan import Plan
from kernpool.pooling.pool import pool, pool_state
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.rounding import rounding_bound
from kernpool.pooling.running import RunningPool
from kernpool.pooling.weights import pooling_weights

__all__ = ["Plan", "Recipe", "RunningPool", "choose", "pool", "pool_state", "pooling_weights", "rounding_bound"]
