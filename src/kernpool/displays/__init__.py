"""Pictures in the style of scikit-learn: data in the constructor, style in `plot`, no mathematics.

Read `style.py` first, and `curve.py` as an example: `from_estimator` and `from_predictions` make a display, `plot`
draws it. How sure a curve is: its shades in `bands.py`, then `residuals.py`, `comparison.py`, `sizer.py`. What to
expect of the next row: `expected.py`, `fan.py`, `coverage.py` with `slices.py`, and `class_sets.py`. `training.py` also
writes animations, as a GIF or as the page `training.html`.
"""

from kernpool.displays.attention import AttentionDisplay
from kernpool.displays.bandwidth_path import BandwidthPathDisplay
from kernpool.displays.class_sets import ClassSetDisplay
from kernpool.displays.comparison import CurveComparisonDisplay
from kernpool.displays.coverage import CoverageDisplay
from kernpool.displays.curve import KernelCurveDisplay
from kernpool.displays.fan import QuantileFanDisplay
from kernpool.displays.kernels import KernelDisplay
from kernpool.displays.residuals import ResidualDisplay
from kernpool.displays.sizer import SiZerDisplay
from kernpool.displays.style import import_pyplot
from kernpool.displays.training import TrainingDisplay

__all__ = [
    "AttentionDisplay",
    "BandwidthPathDisplay",
    "ClassSetDisplay",
    "CoverageDisplay",
    "CurveComparisonDisplay",
    "KernelCurveDisplay",
    "KernelDisplay",
    "QuantileFanDisplay",
    "ResidualDisplay",
    "SiZerDisplay",
    "TrainingDisplay",
    "import_pyplot",
]
