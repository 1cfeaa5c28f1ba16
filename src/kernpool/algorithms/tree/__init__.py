"""Tree algorithm: tiles of queries sum over only those leaves of a kd tree over the keys that are near.

Read `tree.py` first: the algorithm and its cost. `kd_tree.py` builds the tree and the copies of keys; `blocks.py`
visits it for a block of queries. `near_blocks.py` has the sums of local linear fits, and the gradients. The compiled
code is in the folder `loops`.
"""
