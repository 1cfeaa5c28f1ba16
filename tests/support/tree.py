"""What a tree looks at."""

from kernpool.algorithms.tree.block import visit_blocks
from kernpool.algorithms.tree.planted import Planted


def count_pairs(problem):
    """Count the pairs of a query and a key that the tree looks at one by one, by running it."""
    planted = Planted(problem)
    return visit_blocks(planted, planted.blocks())[1]
