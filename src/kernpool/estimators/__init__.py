"""scikit-learn estimators: thin, because the numbers come from the floors below."""

from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.local_linear import LocalLinearRegressor
from kernpool.estimators.regressor import NadarayaWatsonRegressor

__all__ = ["LocalLinearRegressor", "NadarayaWatsonClassifier", "NadarayaWatsonRegressor"]
