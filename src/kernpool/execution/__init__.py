"""How work runs, whatever it is: threads, progress, Ctrl-C, and the flags of the compiler.

Read `threads.py` first: blocks on Python threads. `ordered_sum.py` and `blas.py` keep their results the same for any
number of threads; `compiling.py` says how loops are compiled and where they may live; `progress.py` and `warnings.py`
speak to the caller.
"""

from kernpool.execution.progress import report_progress

__all__ = ["report_progress"]
