"""Compiled loops of inference: cluster-robust sums over pairs of queries and keys.

Read `cluster_sums.py` first: it is the only file.
"""
