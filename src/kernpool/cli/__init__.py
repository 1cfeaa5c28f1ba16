"""The command line interface: commands that read tables, fit, predict, test, compare and plot.

Read `main.py` first: it runs one command. `options.py` declares all options, `terminal.py` has messages to the user,
`tables.py` reads tables, in memory or in chunks, and copies columns that are kept. Each command has a file: `fit.py`,
`predict.py`, `info.py`, `compare.py`, `explore.py` and `hypothesis_tests.py`.
"""

from kernpool.cli.main import main

__all__ = ["main"]
