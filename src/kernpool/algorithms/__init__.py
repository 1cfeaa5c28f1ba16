"""Algorithms: different ways of computing the same sums over all query-key pairs.

========= ============================================= ===========================
name      idea                                          cost
========= ============================================= ===========================
reference dense NumPy, the reference implementation     n m time, n + m memory
brute     every pair in compiled tiles, on threads      n m time, n + m memory
sweep     one column: far keys by moments               n + m time and memory
kd_tree   near pairs only, by boxes in kd order         n log n + near pairs
nufft     Fourier transform, certified query by query   n + m time; needs finufft
========= ============================================= ===========================

`ALGORITHMS` registers them by name; `pooling/plan.py` chooses among them, and the tests compare each with the
reference.

Read `algorithm.py` first: the interface of an algorithm, and an estimate of the time of each. Then
`reference.py`, the dense sum as in textbooks. The folders `brute`, `sweep` and `tree` hold one algorithm each,
`fourier.py` the Fourier transform. `verification.py` checks results, and the folder `loops` has the compiled code
that several algorithms share.
"""

from kernpool.algorithms.algorithm import Algorithm, Gradients
from kernpool.algorithms.brute.brute import BRUTE
from kernpool.algorithms.fourier import NUFFT
from kernpool.algorithms.reference import REFERENCE
from kernpool.algorithms.sweep.sweep import SWEEP
from kernpool.algorithms.tree.tree import TREE

ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in (REFERENCE, BRUTE, SWEEP, TREE, NUFFT)}

__all__ = ["ALGORITHMS", "Algorithm", "Gradients"]
