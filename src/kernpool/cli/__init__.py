"""The command line: arguments to estimators and pictures.

Read `main.py` first: the parser; `parsing.py` reads what is written behind options. `commands.py` runs what is asked
for, `chunked.py` the same on files that need not fit into memory, `testing.py` the tests. `beside.py` is what stands
beside predictions: `uncertainty.py` says how sure the curve is, `expectation.py` what to expect of the next value, and
`asking.py` has their options. `terminal.py` is all that is said to the user.
"""

from kernpool.cli.main import main

__all__ = ["main"]
