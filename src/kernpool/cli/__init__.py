"""The command line interface: commands that read tables, fit, predict, test, compare and plot.

Read `main.py` first: it runs one command. `options.py` has the parser and all options, `terminal.py` messages to
the user, `tables.py` reading and writing of tables. Each command has a file: `fit.py`, `predict.py` (with the columns
that it adds in `prediction_columns.py`), `info.py`, `hypothesis_tests.py`, `compare.py`, `explore.py` (also the tour),
`datasets.py` and `setup_commands.py` (compiled loops, shell completion). `out_of_core.py` fits and predicts in chunks.
"""

from kernpool.cli.main import main

__all__ = ["main"]
