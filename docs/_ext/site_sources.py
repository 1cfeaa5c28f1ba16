"""What pages that are written for a forge need on the site: the pages below an index, and names on quoted sources."""

from __future__ import annotations

import re
from typing import Any

# A page that lists others in a table, which reads well on a forge, and what is below it.
BELOW = {"decisions/README": "*", "benchmarks/README": "*"}


def on_source_read(_app: Any, docname: str, source: list[str]) -> None:
    """Add the pages below an index, and turn ```` ```python core/state.py ```` into a block with that caption."""
    if docname in BELOW:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[docname]}\n```\n"
    source[0] = re.sub(r"^```python ([\w/]+\.py)$", r"```{code-block} python\n:caption: \1", source[0], flags=re.M)


def setup(app: Any) -> dict[str, Any]:
    """Connect."""
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
