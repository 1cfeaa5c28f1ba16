"""Compiled code of the tree: split, boxes, which leaves to visit and how, and the sums over them."""
