"""The explorer: move the bandwidth and the query of a kernel regression, and see weights and curve follow.

Read `explore.py` first: what can be explored. `subject.py` is a model with what is known beside it, `payload.py` turns
it into JSON for the program in `js/`, which `bundle.py` joins into one module with the kernels' formulas that
`kernels.py` traces in the registry. `page.py`, `widget.py` and `server.py` are three hosts of that module: a file, a
notebook, and `kernpool explore`; `engine.py` answers for rows that are too many for a page.
"""

from kernpool.pages.explorer.explore import Explorer, explore

__all__ = ["Explorer", "explore"]
