"""Execution: threads, progress, Ctrl-C, compilation of loops, warnings and error messages.

Read `threads.py` first: blocks of work on Python threads, with results that do not depend on their number.
`compilation.py` compiles the loops and caches them on disk, `progress.py` reports progress and shows it where it takes
long, `warnings.py` attributes warnings to the calling line, `error_messages.py` has parts of error messages, and
`text_table.py` formats numbers in printed results.
"""

import os

from kernpool.execution.progress import report_progress

__all__ = ["report_progress"]

# What Numba's functions call while they compile would not be compiled either, and intrinsics run nowhere else.
if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    raise ImportError(
        "kernpool's loops run compiled only: unset NUMBA_DISABLE_JIT, and leave functions of your own uncompiled by "
        "taking @njit away"
    )
