"""Which parts of the engine a run has reached: a fuzzer that never meets one says nothing about it."""

from collections import Counter
from importlib import import_module

# What each name stands for is called once per problem, block or query batch that takes that way.
PARTS = {
    "tree, near leaves": ("kernpool.algorithms.tree_walk", "Block.compact"),
    "tree, infinite support": ("kernpool.algorithms.tree_walk", "Block.infinite"),
    "tree, compared with brute force": ("kernpool.algorithms.tree", "compared"),
    "tree, gradients": ("kernpool.algorithms.tree_gradients", "pullback"),
    "tree, local linear": ("kernpool.algorithms.tree_local_linear", "reduce"),
    "sweep, few queries": ("kernpool.algorithms.few_queries", "reduce"),
    "sweep, polynomials": ("kernpool.algorithms.polynomials", "reduce"),
    "sweep, laplace": ("kernpool.algorithms.laplace", "reduce"),
    "sweep, gaussian": ("kernpool.algorithms.taylor", "reduce"),
    "sweep, gaussian moments": ("kernpool.algorithms.taylor_moments", "reduce"),
    "sweep, windows": ("kernpool.algorithms.windows", "reduce"),
    "sweep, gradients by series": ("kernpool.algorithms.sweep_gradients", "pullback"),
    "transforms": ("kernpool.algorithms.nufft", "Transform.certified"),
    "fused pairs": ("kernpool.algorithms.compiled", "FusedPairs.sums"),
    "staged tiles": ("kernpool.algorithms.compiled", "CompiledBlocks.sums"),
    "far gradients": ("kernpool.algorithms.far_gradients", "pullback"),
}


def count_parts():
    """Wrap every part, and return the counter that they add to."""
    reached = Counter(dict.fromkeys(PARTS, 0))
    for name, (module, path) in PARTS.items():
        owner = import_module(module)
        *outer, last = path.split(".")
        for each in outer:
            owner = getattr(owner, each)
        setattr(owner, last, _counted(getattr(owner, last), name, reached))
    return reached


def _counted(function, name, reached):
    def counted(*arguments, **options):
        reached[name] += 1
        return function(*arguments, **options)

    return counted
