"""Interactive explorer of a kernel regression: change bandwidth and query, and see weights and curve change.

Read `explore.py` first: the function and its result. `explorer_model.py` describes a fitted model, its rows and
settings as JSON for the JavaScript program in the folder `js`, and makes an HTML page of its bundle, `page.js`.
The folder `words` has the texts.
"""

from kernpool.explorer.explore import Explorer, explore

__all__ = ["Explorer", "explore"]
