"""Interactive explorer of a kernel regression: change bandwidth and query, and see weights and curve change.

Read `explore.py` first: the function and its result. `explorer_model.py` describes a fitted model, its rows and
settings as JSON for the JavaScript program in the folder `js`. `page_bundle.py` bundles that program, with the kernels
that `numpy_to_javascript.py` turns into JavaScript, into one module and an HTML page. The module runs in that page, in
a notebook (`widget.py`), or with `kernpool explore` (`server.py`), which also sums over rows that are too many for a
page. The folder `words` has the texts.
"""

from kernpool.explorer.explore import Explorer, explore

__all__ = ["Explorer", "explore"]
