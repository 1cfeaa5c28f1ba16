"""The command line interface: commands that read tables, fit, predict, test, compare and plot.

Read `main.py` first: it runs one command. `options.py` has the parser and all options, `terminal.py` messages to
the user, `tables.py` reading and writing of tables. The commands: `commands.py` (also info and tour), `predict.py`
(columns added to predictions), `out_of_core.py` (fit and predict out of core), `hypothesis_tests.py`, `compare.py`,
`explore.py`, `datasets.py` and `setup_commands.py` (compiled loops, shell completion).
"""

from kernpool.cli.main import main

__all__ = ["main"]
