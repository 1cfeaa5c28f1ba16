"""scikit-learn estimators: thin, because the numbers come from the floors below."""

from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.regressor import NadarayaWatsonRegressor

__all__ = ["NadarayaWatsonClassifier", "NadarayaWatsonRegressor"]
