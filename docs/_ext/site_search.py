"""Search: decisions, benchmarks and changes are left out, and guides come before the reference.

`search_scorer.js` has the weights; words that readers use and a page does not are its ``keywords``.
"""

from __future__ import annotations

from typing import Any

LEFT_OUT = ("decisions/", "benchmarks/", "project/changes")


def leave_out(app: Any, _doctree: Any) -> None:
    """Keep a page out of the index."""
    if app.env.docname.startswith(LEFT_OUT):
        app.env.metadata[app.env.docname]["nosearch"] = True


def setup(app: Any) -> dict[str, Any]:
    """Connect."""
    app.connect("doctree-read", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
