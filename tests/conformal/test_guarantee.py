"""Sentences promise what holds, and no more."""

import warnings

import numpy as np
import pytest

from kernpool import InferenceWarning, NadarayaWatsonRegressor
from kernpool.conformal import METHODS

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(size=(60, 1))
Y = np.sin(6 * X[:, 0]) + 0.3 * GENERATOR.normal(size=60)


def sentence(model, method, **options):
    return model.prediction_interval([[0.5]], method=method, random_state=0, **options).guarantee


OTHERS = {"X_calibration": X[40:], "y_calibration": Y[40:]}
GROUPS = {"X_calibration": X, "y_calibration": Y, "groups": np.arange(60) // 4}
FOUND = "without a finite-sample guarantee: the bandwidth was found on the rows that calibrate"
AS_A_FIT = "about 0.9 for new rows like these, without a finite-sample guarantee"


@pytest.mark.parametrize(("bandwidth", "weight", "method", "options", "words", "promised"), [
    *((found, 1.0, method, {}, FOUND, False) for found in ("loo", "scott") for method in ("jackknife+", "cv+")),
    ("regularised", 1.0, "jackknife+", {}, FOUND, False),
    (0.1, 1.0, "jackknife+", {}, "the bandwidth was not chosen by them", True),
    (0.1, 1.0, "jackknife+", {}, "at least 0.8 (1 - 2 alpha), and typically about 0.9", True),
    (0.1, 1.0, "jackknife+", {"level": 0.5}, "about 0.5", False),
    # K = 10, n = 60: the smaller of 2 (1 - 1/10) / 7 and (1 - 10/60) / 11.
    (0.1, 1.0, "cv+", {}, "at least 0.7242 (1 - 2 alpha - 0.0758)", True),
    *((0.1, 1.0, method, {}, AS_A_FIT, False) for method in ("adaptive", "cqr")),
    *(("loo", 0.5, method, OTHERS, "calibration rows", True) for method in ("adaptive", "split", "cqr")),
    (0.1, 1.0, "split", GROUPS, "a value of a new cluster with a probability of at least 0.9", True),
    (0.1, 1.0, "split", GROUPS, "calibration clusters", True),
    (0.1, 0.7, "jackknife+", {}, "weights are no whole numbers of rows", False),
])  # fmt: skip
def test_the_sentence_promises_what_holds(bandwidth, weight, method, options, words, promised):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, Y, sample_weight=np.full(60, weight))
    said = sentence(model, method, **options)
    assert words in said
    assert ("at least" in said) is promised
    assert said.startswith("Covers a")
    assert said.endswith(".")
    assert ". " not in said


@pytest.mark.parametrize("search", ["loo", "scott"])
def test_a_number_that_came_after_the_fit_gives_none(search):
    model = NadarayaWatsonRegressor(bandwidth=search).fit(X, Y).set_params(bandwidth=0.1)
    assert "about 0.9" in sentence(model, "jackknife+")
    assert "the bandwidth was found on the rows that calibrate" in sentence(model, "jackknife+")
    assert "at least 0.8" in sentence(model.set_params(bandwidth=0.2).fit(X, Y), "jackknife+")


def _with_levels(level):
    column = np.array(level, dtype=object)[:, None]
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.3], unordered=[0], unseen="unlike")
    return model.fit(column, np.arange(len(level), dtype=float))


def test_a_level_of_one_row_is_in_doubt_as_rows_left_out_and_new_rows_are_not_alike():
    new = np.array([["a"]], dtype=object)
    twice, once = _with_levels(["a", "b"] * 10), _with_levels(["a"] * 19 + ["b"])
    assert "at least 0.8" in twice.prediction_interval(new, method="jackknife+").guarantee
    assert "one training row alone" in once.prediction_interval(new, method="jackknife+").guarantee
    unseen = twice.prediction_interval(np.array([["c"]], dtype=object), method="jackknife+")
    assert "new rows only" in unseen.guarantee


def test_a_level_of_one_cluster_is_in_doubt():
    model = _with_levels(["a", "b"] * 10)
    new, mixed, apart = np.array([["a"]], dtype=object), np.arange(20) // 2, np.arange(20) % 2
    assert "at least" in model.prediction_interval(new, method="jackknife+", groups=mixed, level=0.8).guarantee
    apart = np.where(apart == 0, np.arange(20) // 2, 99)  # all rows of "b" are one cluster
    assert "about" in model.prediction_interval(new, method="jackknife+", groups=apart, level=0.8).guarantee


@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_their_own_ends_whatever_rounding_does(method):
    random = np.random.default_rng(0)
    own, found = METHODS[method].rows == "own", 0.0
    for _ in range(20):
        X, other, new = random.uniform(size=(3, 19, 1))
        y, y_other, y_new = random.choice([0.1, 0.7], size=(3, 19))
        rows = {} if own else {"X_calibration": other, "y_calibration": y_other}
        model = NadarayaWatsonRegressor("constant", bandwidth=1.0).fit(X, y)
        interval = model.prediction_interval(new, method=method, random_state=0, **rows)
        found += float(np.mean((interval.lower <= y_new) & (y_new <= interval.upper))) / 20
    assert found >= 0.9


def copied(share):
    kept = np.r_[np.arange(60), np.arange(int(60 * share))]
    return X[kept], Y[kept]


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("method", ["jackknife+", "cv+", "adaptive"])
def test_copies_of_rows_and_weights_above_one_end_the_guarantee(method):
    model = NadarayaWatsonRegressor(bandwidth=0.1)
    for said in (
        sentence(model.fit(*copied(0.5)), method),
        sentence(model.fit(X, Y, sample_weight=np.full(60, 2.0)), method),
    ):
        assert "about 0.9 for new rows like these, without a finite-sample guarantee: rows are repeated" in said
        assert "weights above one" in said
    if method == "adaptive":  # rows that the fit has not seen calibrate whatever the fit is
        assert "at least 0.9 for new rows like these" in sentence(model.fit(*copied(0.5)), method, **OTHERS)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("method", ["adaptive", "jackknife+", "cqr"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 1.0])
def test_intervals_of_copies_are_infinite_or_said_to_have_no_width(method, share):
    """A score over a scale of zero is infinite: no width of 1e166; and none of 4e-14 without a word."""
    model = NadarayaWatsonRegressor(bandwidth=2e-4).fit(*copied(share))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        width = model.prediction_interval(X, method=method, random_state=0).width
    said = " ".join(str(one.message) for one in said if one.category is InferenceWarning)
    assert np.all((width < 2e3 * np.ptp(Y)) | np.isinf(width))
    assert ("have no width" in said) == bool(np.any(width < 1e-13))
    assert ("are infinite" in said) == bool(np.any(np.isinf(width)))
    assert method != "adaptive" or said or share < 0.5
