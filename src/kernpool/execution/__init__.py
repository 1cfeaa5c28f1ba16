"""Execution: threads, progress, Ctrl-C, compilation of loops, warnings and error messages.

Read `threads.py` first: blocks of work on Python threads, with results that do not depend on their number.
`compilation.py` compiles the loops and caches them on disk, `progress.py` reports progress and shows it where it takes
long, `warnings.py` attributes warnings to the calling line, `error_messages.py` has parts of error messages, and
`text_table.py` formats numbers in printed results.
"""

import os

from kernpool.execution.error_messages import abbreviate, as_count, as_level, check_choice, check_flag, explain_calls
from kernpool.execution.progress import Progress, current_progress, progress_bar, progress_between, report_progress
from kernpool.execution.text_table import ROWS, PrintedResult, frame_of, lines_of, names_of, printed_table
from kernpool.execution.threads import blas_threads, cut, resolve_n_jobs, run_blocks, weighted_sum
from kernpool.execution.warnings import warn_caller, warn_of_queries

__all__ = [
    "ROWS",
    "PrintedResult",
    "Progress",
    "abbreviate",
    "as_count",
    "as_level",
    "blas_threads",
    "check_choice",
    "check_flag",
    "current_progress",
    "cut",
    "explain_calls",
    "frame_of",
    "lines_of",
    "names_of",
    "printed_table",
    "progress_bar",
    "progress_between",
    "report_progress",
    "resolve_n_jobs",
    "run_blocks",
    "warn_caller",
    "warn_of_queries",
    "weighted_sum",
]

# What Numba's functions call while they compile would not be compiled either, and intrinsics run nowhere else.
if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    raise ImportError(
        "kernpool's loops run compiled only: unset NUMBA_DISABLE_JIT, and leave functions of your own uncompiled by "
        "taking @njit away"
    )
