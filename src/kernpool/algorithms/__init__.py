"""Algorithms: ways of organising one sum over keys. Registered here, offered by the plan, met by the test battery.

========= ============================================= ===========================
name      idea                                          cost
========= ============================================= ===========================
reference dense NumPy, the slow twin of all the others  n m time, n + m memory
brute     every pair in compiled tiles, on threads      n m time, n + m memory
sweep     one column: far keys by moments               n + m time and memory
kd_tree   near pairs only, by boxes in kd order         n log n + pairs that matter
nufft     Fourier transform, certified query by query   n + m time; needs finufft
========= ============================================= ===========================

Read `algorithm.py` first: what an algorithm is, and what it says of itself; then `reference.py`, the sum as textbooks
have it.
"""

from kernpool.algorithms.algorithm import Algorithm, Gradients
from kernpool.algorithms.brute.brute import BRUTE
from kernpool.algorithms.fourier.nufft import NUFFT
from kernpool.algorithms.reference import REFERENCE
from kernpool.algorithms.sweep.sweep import SWEEP
from kernpool.algorithms.tree.tree import TREE

ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in (REFERENCE, BRUTE, SWEEP, TREE, NUFFT)}

__all__ = ["ALGORITHMS", "Algorithm", "Gradients"]
