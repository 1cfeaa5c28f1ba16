"""Plots of fits, intervals, tests and kernels as display objects in the style of scikit-learn.

Data is in the constructor, style is in `plot`, and no statistics are computed here. Read `drawing.py` first: colors and
axes; `inputs.py`: training rows and the evaluation points along a column; then `curve.py` as an example:
`from_estimator` and `from_predictions` make a display, `plot` draws it. `partial.py` draws a fit over each of its
columns. Uncertainty of a curve: `curve.py`, with its bands. Distribution of a new observation: `new_observations.py`.
`local_coefficients.py` draws maps of coefficients, `diagnostics.py` residuals and the course of a search,
`kernels_and_weights.py` kernels and attention weights. `smooth_table.py` has curve and band as a table, `seaborn.py`
and `plotnine.py` make parts of plots of it.
"""

from kernpool.displays.curve import KernelCurveDisplay
from kernpool.displays.diagnostics import BandwidthPathDisplay, ResidualDisplay
from kernpool.displays.drawing import cover_glyphs, import_pyplot
from kernpool.displays.kernels_and_weights import AttentionDisplay, KernelDisplay
from kernpool.displays.local_coefficients import CoefficientDisplay
from kernpool.displays.new_observations import CoverageDisplay, QuantileFanDisplay
from kernpool.displays.partial import PartialDisplay
from kernpool.displays.smooth_table import smooth

__all__ = [
    "AttentionDisplay",
    "BandwidthPathDisplay",
    "CoefficientDisplay",
    "CoverageDisplay",
    "KernelCurveDisplay",
    "KernelDisplay",
    "PartialDisplay",
    "QuantileFanDisplay",
    "ResidualDisplay",
    "cover_glyphs",
    "import_pyplot",
    "smooth",
]
