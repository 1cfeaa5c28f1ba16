"""Compiled loops of the tree.

Read `traversal.py` first: kd order, distances of boxes, and which nodes and leaves a tile visits. `leaf_sums.py` sums
the pairs of the visited leaves, and whole nodes by their moments.
"""
