"""Brute force: every query-key pair once, in compiled tiles.

Read `brute.py` first: the cuts into blocks, the threads and the cost. `tiles.py` passes blocks to the fastest compiled
loops that can do them. `fused.py` is for the most used kernels. The compiled code is in the folder `loops`.
"""
