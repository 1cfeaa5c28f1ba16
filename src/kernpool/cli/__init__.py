"""The command line: arguments to estimators and pictures.

Read `main.py` first: it runs one command, which `arguments.py` has the options of; those of tables are in
`table_options.py`, and `parsing.py` reads what is written behind options. `tables.py` reads tables as they were told to
be written. `commands.py` runs what is asked for and `reporting.py` says what came of it, `chunked.py` the same on files
that need not fit into memory, `comparing.py`, `exploring.py`, `testing.py`, `shipped.py` and `completing.py` the other
commands. `beside.py` is what stands beside predictions: `kept.py` the inputs, `uncertainty.py` how sure the curve is,
`expectation.py` what to expect of the next value, and `asking.py` has their options. `terminal.py` is all that is said to the user.
"""

from kernpool.cli.main import main

__all__ = ["main"]
