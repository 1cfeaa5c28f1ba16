"""The plug-in bandwidth for one column: the asymptotic optimum, with what is unknown in it estimated.

Read `plugin.py` first; `pilots.py` estimates, on the grid of `points.py`.
"""

from kernpool.bandwidth.plugin.plugin import plugin_bandwidth

__all__ = ["plugin_bandwidth"]
