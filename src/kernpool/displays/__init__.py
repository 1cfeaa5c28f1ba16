"""Plots of fits, intervals, tests and kernels as display objects in the style of scikit-learn.

Data is in the constructor, style is in `plot`, and no statistics are computed here. Read `drawing.py` first: colors and
axes; `inputs.py`: training rows and the evaluation points along a column; then `curve.py` as an example:
`from_estimator` and `from_predictions` make a display, `plot` draws it. `partial.py` draws a fit over each of its
columns. Uncertainty of a curve: `curve.py` (with its bands), `residuals.py`. Distribution of a new observation:
`quantile_fan.py`, `coverage.py`.
`kernels_and_weights.py` draws kernels and attention weights, `bandwidth_path.py` the course of a search.
"""

from kernpool.displays.bandwidth_path import BandwidthPathDisplay
from kernpool.displays.coverage import CoverageDisplay
from kernpool.displays.curve import KernelCurveDisplay
from kernpool.displays.drawing import chinese_font, cover_glyphs, import_pyplot, without_font_messages
from kernpool.displays.kernels_and_weights import AttentionDisplay, KernelDisplay
from kernpool.displays.partial import PartialDisplay
from kernpool.displays.quantile_fan import QuantileFanDisplay
from kernpool.displays.residuals import ResidualDisplay

__all__ = [
    "AttentionDisplay",
    "BandwidthPathDisplay",
    "CoverageDisplay",
    "KernelCurveDisplay",
    "KernelDisplay",
    "PartialDisplay",
    "QuantileFanDisplay",
    "ResidualDisplay",
    "chinese_font",
    "cover_glyphs",
    "import_pyplot",
    "without_font_messages",
]
