"""What is no question is refused, with what was expected."""

import numpy as np
import pytest

from kernpool import InferenceWarning, NadarayaWatsonRegressor
from kernpool.conformal import METHODS
from kernpool.conformal.jackknife_plus import check_pairs

X, Y = np.linspace(0.0, 1.0, 40)[:, None], np.sin(7.0 * np.linspace(0.0, 1.0, 40))


@pytest.fixture(scope="module")
def model():
    return NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"level": level}, "level must lie between 0 and 1") for level in (0, 1.0, "0.9", np.nan, True)),
        ({"level": 90}, "90 percent is level=0.9"),
        ({"method": "rlcp"}, r"method must be one of 'auto', 'adaptive', 'jackknife\+', .* 'cqr'.*got 'rlcp'"),
        ({"method": ["cv+"]}, "method must be one of"),
        ({"method": "split"}, "needs calibration rows that the model was not fitted to: give X_calibration"),
        ({"X_calibration": X}, "go together, and y_calibration is None"),
        ({"y_calibration": Y}, "go together, and X_calibration is None"),
        ({"calibration": "half"}, "calibration must be one of None, 'all', 'unsearched', got 'half'"),
        ({"calibration": "unsearched"}, "it was given, and not searched; fit with search="),
        ({"calibration": "all", "X_calibration": X, "y_calibration": Y}, "is about the training rows"),
        ({"method": "cv+", "X_calibration": X, "y_calibration": Y}, "has no use for X_calibration"),
        ({"X_calibration": np.ones((3, 2)), "y_calibration": Y[:3]}, "X_calibration: X has 2 features"),
        ({"X_calibration": X, "y_calibration": Y[:3]}, r"y_calibration must have shape \(40,\).*got \(3,\)"),
        ({"X_calibration": X, "y_calibration": np.ones((40, 2))}, r"y_calibration must have shape \(40,\)"),
        ({"X_calibration": X, "y_calibration": np.full(40, np.nan)}, "y_calibration must .*NaN.* in row 0"),
        ({"method": "cv+", "groups": np.arange(40)}, "in clusters are for method='adaptive'.* without groups"),
        ({"groups": np.arange(3)}, "groups must have one label for each of the 40 rows"),
        ({"groups": np.arange(40) % 3}, "needs at least 5"),
        ({"random_state": "now", "method": "cv+"}, "random_state must be an integer"),
    ],
)
def test_options_that_do_not_go_together_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.prediction_interval(X, **options)


def test_weights_that_are_all_zero_leave_nothing_to_say(model):
    with pytest.raises(ValueError, match="sample_weight is zero for every key, so there is nothing to pool"):
        NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="0 sample"):
        model.prediction_interval(X, method="split", X_calibration=X[:0], y_calibration=Y[:0])


def test_too_many_pairs_are_refused_with_the_remedy():
    check_pairs("jackknife+", 1 << 15, 1 << 15)
    with pytest.raises(ValueError, match="at most 1,073,741,824, got 32,769 times 32,768; use method='adaptive'"):
        check_pairs("jackknife+", (1 << 15) + 1, 1 << 15)


def test_rows_of_no_weight_do_not_calibrate():
    weight = np.r_[np.ones(20), np.zeros(20)]
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y, sample_weight=weight)
    for method, record in METHODS.items():
        if record.rows != "other":
            assert model.prediction_interval(X[:3], level=0.5, method=method).n_calibration == 20.0


def test_folds_leave_nearly_no_row_out_and_count_those_that_they_hold():
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(np.arange(19.0)[:, None] / 19, np.arange(19.0))
    found = model.prediction_interval([[0.5]], method="cv+", level=0.95)
    assert found.n_calibration == 19
    assert np.isfinite(found.upper[0])
    few = NadarayaWatsonRegressor(bandwidth=0.2).fit(np.arange(18.0)[:, None] / 18, np.arange(18.0))
    with pytest.warns(InferenceWarning, match="at least 19"):
        found = few.prediction_interval([[0.5]], method="cv+", level=0.95)
    assert found.upper[0] == np.inf
