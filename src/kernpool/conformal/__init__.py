"""Conformal prediction: prediction intervals and sets of classes with finite-sample coverage.

Read `methods.py` first: the table of methods, and the coverage statement. `calibration.py` has the inputs of a method
and the order statistics of scores that bound an interval. The methods are in `split_conformal.py`
(constant and adaptive width, and conformalised quantiles) and `jackknife_plus.py` (jackknife+ and CV+). `sets.py` has
prediction sets of classes.
"""

from kernpool.conformal.calibration import Calibration, ConformalProblem, Origin, as_fraction, least_rows
from kernpool.conformal.methods import METHODS, MethodRecord, check_method, prediction_interval
from kernpool.conformal.sets import PredictionSet

__all__ = [
    "METHODS",
    "Calibration",
    "ConformalProblem",
    "MethodRecord",
    "Origin",
    "PredictionSet",
    "as_fraction",
    "check_method",
    "least_rows",
    "prediction_interval",
]
