"""scikit-learn's own checks, all of them; `make test` runs this file a second time with SCIPY_ARRAY_API=1."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

ESTIMATORS = [
    NadarayaWatsonRegressor(),
    NadarayaWatsonRegressor(kernel="epanechnikov", empty="nearest"),
    NadarayaWatsonRegressor(kernel="biweight", composition="product", bandwidth="silverman", empty="mean"),
    NadarayaWatsonRegressor(kernel="constant"),
    NadarayaWatsonRegressor(bandwidth="gcv", common_factor=True),
    NadarayaWatsonRegressor(bandwidth="scott"),
    NadarayaWatsonRegressor(bandwidth=0.5, algorithm="brute"),
    LocalLinearRegressor(),
    LocalLinearRegressor(kernel="epanechnikov", bandwidth="scott", empty="nearest"),
    NadarayaWatsonRegressor(bandwidth="aicc"),
    NadarayaWatsonClassifier(),
    NadarayaWatsonClassifier(kernel="boxcar", bandwidth="scott"),
]


# Some checks have fewer rows than columns, which determine no plane: a warning to be expected.
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
