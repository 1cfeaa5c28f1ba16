"""How work runs: threads, progress, Ctrl-C, and the one decorator of Numba flags.

Read `threads.py` first. `compiling.py` says where compiled code may live.
"""

from kernpool.execution.progress import report_progress

__all__ = ["report_progress"]
