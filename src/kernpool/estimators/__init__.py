"""scikit-learn estimators: thin, because the numbers come from the rooms below.

Read `smoother.py` first, then `fitted.py`: how a fitted model pools. A fit checks parameters (`parameters.py`), reads
rows (`rows.py`) and finds a bandwidth (`bandwidth_choice.py`); `chunked.py` and `dask_regressor.py` do so for rows that
are not in memory, on a sample (`search_sample.py`). `saving.py` writes models of all kinds. In `learned/` the
similarity learns.
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
