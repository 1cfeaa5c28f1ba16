"""Which parts of the engine a run has reached: a fuzzer that never meets one says nothing about it."""

from collections import Counter
from importlib import import_module

# What each name stands for is called once per problem, block or query batch that takes that way.
PARTS = {
    "tree, near leaves": ("kernpool.algorithms.tree.blocks", "Block.compact"),
    "tree, infinite support": ("kernpool.algorithms.tree.blocks", "Block.infinite"),
    "tree, compared with brute force": ("kernpool.algorithms.tree.tree", "compared"),
    "tree, gradients": ("kernpool.algorithms.tree.near_blocks", "differentiate_near"),
    "tree, local linear": ("kernpool.algorithms.tree.near_blocks", "pool_moments"),
    "sweep, polynomials": ("kernpool.algorithms.sweep.polynomial_kernels", "pool_polynomial"),
    "sweep, laplace": ("kernpool.algorithms.sweep.infinite_kernels", "pool_laplace"),
    "sweep, gaussian": ("kernpool.algorithms.sweep.infinite_kernels", "pool_gaussian"),
    "sweep, gaussian moments": ("kernpool.algorithms.sweep.infinite_kernels", "pool_gaussian_moments"),
    "sweep, windows": ("kernpool.algorithms.sweep.windows", "pool_windows"),
    "sweep, gradients by series": ("kernpool.algorithms.sweep.sweep", "differentiate_by_series"),
    "transforms": ("kernpool.algorithms.fourier", "Transform.certified"),
    "fused pairs": ("kernpool.algorithms.brute.fused", "FusedPairs.sums"),
    "staged tiles": ("kernpool.algorithms.brute.tiles", "CompiledBlocks.sums"),
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
