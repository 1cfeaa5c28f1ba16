"""Self-contained pages, which need no network: the tour, and the explorer.

Read `tour/steps.py` first, or `explorer/explore.py`.
"""

from kernpool.pages.explorer import Explorer, explore
from kernpool.pages.tour import make_tour

__all__ = ["Explorer", "explore", "make_tour"]
