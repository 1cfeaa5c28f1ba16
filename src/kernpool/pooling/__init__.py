"""The verbs: over which pairs, by which algorithm, and what comes out.

Read `pool.py` first: the whole path in three steps. `recipe.py` is how to pool, `pairs.py` over what, `settle.py` the
way from sums to values; `choice.py` decides by which algorithm, and its plans say why (`plan.py`, and `cells.py` for
categorical columns). Pairs are arrays (`arrays.py`), chunks (`chunked.py`) or memory maps (`memory_maps.py`);
`running.py` keeps sums of pairs that keep arriving. `weights.py` is for who wants the weights themselves, `rounding.py`
says how precise an answer is.
"""

from kernpool.pooling.choice import choose
from kernpool.pooling.plan import Plan
from kernpool.pooling.pool import pool, pool_state
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.rounding import rounding_bound
from kernpool.pooling.running import RunningPool
from kernpool.pooling.weights import pooling_weights

__all__ = ["Plan", "Recipe", "RunningPool", "choose", "pool", "pool_state", "pooling_weights", "rounding_bound"]
