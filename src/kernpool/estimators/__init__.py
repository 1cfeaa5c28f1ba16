"""scikit-learn estimators: thin, because the numbers come from the floors below.

Read `smoother.py` first: what they have in common.
"""

from kernpool.estimators.classifier import NadarayaWatsonClassifier
from kernpool.estimators.learned.classifier import LearnedPoolingClassifier
from kernpool.estimators.learned.regressor import LearnedPoolingRegressor
from kernpool.estimators.local_linear import LocalLinearRegressor
from kernpool.estimators.nadaraya_watson import NadarayaWatsonRegressor

__all__ = [
    "LearnedPoolingClassifier",
    "LearnedPoolingRegressor",
    "LocalLinearRegressor",
    "NadarayaWatsonClassifier",
    "NadarayaWatsonRegressor",
]
