"""scikit-learn's own checks, all of them; with SCIPY_ARRAY_API=1, as in `make test`, those of other arrays too."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernpool import (
    EmptyWindowWarning,
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLikelihoodRegressor,
    LocalLinearRegressor,
    LocalLogisticClassifier,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    PartiallyLinearRegressor,
    VaryingCoefficientRegressor,
)

QUICK = [  # each check fits several times, so a search takes ten times as long
    NadarayaWatsonRegressor(bandwidth="scott"),
    KernelStackingRegressor(LocalLinearRegressor(bandwidth="scott")),
]
VARIANTS = [
    LocalPolynomialRegressor(bandwidth="scott"),
    PartiallyLinearRegressor(linear=[-1], bandwidth="scott", degree=0),
    VaryingCoefficientRegressor(by=[0], bandwidth="scott"),
    LocalLikelihoodRegressor(bandwidth="scott"),
    LocalLogisticClassifier(bandwidth="scott"),
    KernelStackingClassifier(NadarayaWatsonClassifier(bandwidth="scott")),
    NadarayaWatsonRegressor(),
    LocalLinearRegressor(),
    NadarayaWatsonClassifier(),
    NadarayaWatsonRegressor(kernel="product biweight", bandwidth="silverman", empty="mean"),
    LocalLinearRegressor(kernel="epanechnikov", bandwidth="scott"),
    NadarayaWatsonClassifier(kernel="boxcar", bandwidth="scott"),
    NadarayaWatsonClassifier(bandwidth="scott"),
    NadarayaWatsonRegressor(bandwidth="scott", periodic={0: 24}),
]


def expected_failures(estimator):
    """scikit-learn asks that X with one dimension be refused at fit; here it is one column, as in `kernpool.pool`."""
    return (
        {}
        if hasattr(estimator, "linear") or hasattr(estimator, "by")
        else {"check_fit1d": "X with one dimension is one column"}
    )


# Some checks have fewer rows than columns, which determine no plane, or ask about rows unlike the five of positive
# weight, or give all rows a weight of three: warnings to be expected.
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@parametrize_with_checks(QUICK, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_check_of_variants(estimator, check):
    name = check.func.__name__
    weights = name == "check_sample_weight_equivalence_on_dense_data"
    # 27 rows of positive weight, and columns that repeat others
    refusal = "fewer than the 30 coefficients" if weights else "a combination of" * (name == "check_array_api_input")
    if hasattr(estimator, "by") and refusal:
        with pytest.raises(ValueError, match=refusal):
            check(estimator)
    elif (
        weights and getattr(estimator, "kernel", None) == "epanechnikov"
    ):  # predicts at rows of weight zero, without others in reach
        with pytest.warns(EmptyWindowWarning):
            check(estimator)
    else:
        check(estimator)
