"""Where the next value is expected: prediction intervals that cover in finite samples.

Read `intervals.py` first: the table of methods. `setting.py` is what each is given, `ranks.py` which order statistic
ends an interval, `sentences.py` what is promised. Sets of classes begin with `sets.py` and `class_scores.py`.
"""

from kernpool.conformal.class_results import PredictionSet
from kernpool.conformal.intervals import METHODS, check_method, prediction_interval
from kernpool.conformal.ranks import as_level
from kernpool.conformal.ratio import DensityRatio, density_ratio
from kernpool.conformal.results import PredictionInterval
from kernpool.conformal.setting import Bounds, Calibration, MethodRecord, Setting

__all__ = [
    "METHODS",
    "Bounds",
    "Calibration",
    "DensityRatio",
    "MethodRecord",
    "PredictionInterval",
    "PredictionSet",
    "Setting",
    "as_level",
    "check_method",
    "density_ratio",
    "prediction_interval",
]
