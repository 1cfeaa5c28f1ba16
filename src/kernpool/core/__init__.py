"""START HERE, the nouns: what a problem is, and the state that its sums are.

Read `state.py` first: three numbers per query that merge, and the whole program rests on them. Then `similarity.py`,
and `problem.py`: everything that an algorithm is given. `moments.py` and `local_fit.py` make a plane of the same sums,
`quadratic_fit.py` a quadratic.
"""

from kernpool.core.empty import EmptyWindowWarning
from kernpool.core.factors import Factors
from kernpool.core.keys import Keys
from kernpool.core.local_fit import LocalFit, RankDeficiencyWarning, solve
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.similarity import KernelSimilarity
from kernpool.core.state import PoolState, empty_state, merge

__all__ = [
    "EmptyWindowWarning",
    "Factors",
    "KernelSimilarity",
    "Keys",
    "Layout",
    "LocalFit",
    "PoolState",
    "Problem",
    "RankDeficiencyWarning",
    "empty_state",
    "merge",
    "solve",
]
