"""Self-contained pages, which need no network: the tour.

Read `tour/steps.py` first.
"""

from kernpool.pages.tour import make_tour

__all__ = ["make_tour"]
