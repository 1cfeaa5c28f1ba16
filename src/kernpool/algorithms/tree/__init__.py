"""Tree: keys and queries in kd order; tiles of queries visit the leaves that matter to them.

Read `tree.py` first, then `planted.py`: what is prepared once, and `block.py`: one block of queries.
"""
