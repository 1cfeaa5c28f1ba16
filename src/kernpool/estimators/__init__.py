"""scikit-learn estimators: kernel regression and classification, in memory, out of core, and on Dask.

They are thin: the numbers come from the other subpackages. Read `model.py` first, what a fitted model holds, then
`kernel_smoother.py`, the base class, and `fitted_model.py`: how a fitted model pools. `regressors.py` and
`classifier.py` have the public estimators. A fit checks its parameters, reads rows (`training_rows.py`), and
finds bandwidths and windows (`bandwidth.py`) and weights of outliers (`robust_regression.py`); `stored_rows.py` does
so for rows that are not in memory. `extrapolation.py` finds queries beyond the training rows, `expected_error.py`
estimates the error on new rows. `persistence.py` saves and loads models.

The folder `methods` has the methods of fitted models for inference, distributions and prediction; `stacking` averages
local fits and kernel ridge regressions, `semiparametric` has coefficients next to a curve.
"""

from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.methods.classification import ClassPrediction
from kernpool.estimators.methods.conditional_distribution import ConditionalDistribution, distribution_bandwidth
from kernpool.estimators.methods.inference import Prediction
from kernpool.estimators.methods.prediction import row_diagnostics
from kernpool.estimators.regressors import LocalLinearRegressor, LocalPolynomialRegressor, NadarayaWatsonRegressor
from kernpool.estimators.semiparametric.local_likelihood import LocalLikelihoodRegressor
from kernpool.estimators.semiparametric.local_logistic import LocalLogisticClassifier
from kernpool.estimators.semiparametric.partially_linear import PartiallyLinearRegressor
from kernpool.estimators.semiparametric.varying_coefficients import VaryingCoefficientRegressor
from kernpool.estimators.stacking.estimators import KernelStackingClassifier, KernelStackingRegressor

__all__ = [
    "ClassPrediction",
    "ConditionalDistribution",
    "KernelStackingClassifier",
    "KernelStackingRegressor",
    "LocalLikelihoodRegressor",
    "LocalLinearRegressor",
    "LocalLogisticClassifier",
    "LocalPolynomialRegressor",
    "NadarayaWatsonClassifier",
    "NadarayaWatsonRegressor",
    "PartiallyLinearRegressor",
    "Prediction",
    "VaryingCoefficientRegressor",
    "distribution_bandwidth",
    "row_diagnostics",
]
