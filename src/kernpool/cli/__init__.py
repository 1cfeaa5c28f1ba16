"""The command line: arguments to estimators and pictures.

Read `main.py` first: the parser; `parsing.py` reads what is written behind options. `commands.py` runs what is asked
for, `chunked.py` the same on files that need not fit into memory, `testing.py` the tests; `uncertainty.py` says how
sure predictions are, `terminal.py` is all that is said to the user.
"""

from kernpool.cli.main import main

__all__ = ["main"]
