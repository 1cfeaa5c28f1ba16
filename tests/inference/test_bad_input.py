"""What inference makes of data that it cannot judge: it works, warns, or says what to do; it never looks sure."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import (
    InferenceWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    RankDeficiencyWarning,
    specification_test,
)

RANDOM = np.random.default_rng(0)
X = np.sort(RANDOM.uniform(size=(40, 1)), axis=0)
Y = np.sin(6 * X[:, 0]) + 0.2 * RANDOM.normal(size=40)
Q = np.array([[0.2], [0.5]])
BOTH = [NadarayaWatsonRegressor, LocalLinearRegressor]
of_both = pytest.mark.parametrize("regressor", BOTH)
VARIANCES = ["local", "sandwich", "hc0", "hc1", "hc2"]
METHODS = ["robust", "quadratic", "naive", "undersmoothed"]
HALVES = np.arange(40) % 2


def asked(model, at=Q):
    """Every method of a model, with everything it can be asked."""
    yield "predict", lambda: model.predict(at, return_std=True)[1]
    for variance in [*VARIANCES, "nn"]:
        yield f"error {variance}", lambda v=variance: model.get_prediction(at, variance=v).standard_error
        yield f"interval {variance}", lambda v=variance: model.confidence_interval(at, variance=v).width
    for method in METHODS:
        yield method, lambda m=method: model.confidence_interval(at, method=m).width
    yield "slope", lambda: model.get_prediction(at).slope_standard_error
    yield "band", lambda: model.confidence_interval(at, simultaneous=True).width
    yield "summary", model.summary
    for kind in ("wild", "mammen", "gaussian", "residual", "pairs"):
        yield kind, lambda k=kind: np.std(model.bootstrap(at, kind=k, n_resamples=9), axis=0)
    for method in ("residual", "gradient"):
        yield f"test {method}", lambda m=method: model.significance_test(0, method=m, n_resamples=9)


@of_both
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")  # of the fit and the places
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # one to three rows reach nowhere
def test_too_few_rows_are_refused(regressor, rows):
    model = regressor(bandwidth=0.3).fit(X[:rows], Y[:rows])
    for _, ask in asked(model):
        with pytest.raises(ValueError, match=rf"at least 5 rows.*got {rows}"):
            ask()
    with pytest.raises(ValueError, match=rf"at least 5 rows.*got {rows}"):
        specification_test(X[:rows], Y[:rows])


@pytest.mark.parametrize("offset", [1.0, 1e6])
def test_a_line_that_is_fitted_exactly_is_no_certainty(offset):
    """Its residuals are not zero: they are what rounding leaves, and intervals of 1e-16 are no intervals."""
    line = 2 * X[:, 0] + offset
    model = LocalLinearRegressor(bandwidth=0.3).fit(X, line)
    for name, ask in asked(model):
        if name in ("error nn", "interval nn", "pairs", "summary", "test residual"):
            continue  # of differences, of rows, without a judgement, without the column
        if name == "test gradient":
            with pytest.raises(ValueError, match="no residuals beyond rounding"):
                ask()
            continue
        with pytest.warns(InferenceWarning, match=r"residuals (of output \d )?are zero.*no certainty"):
            width = ask()
        assert np.all(width <= 1e-12 * offset)
    with pytest.raises(ValueError, match="no residuals beyond rounding"):
        specification_test(X, line)
    quiet = LocalLinearRegressor(bandwidth=0.3).fit(X, line + 1e-8 * offset * RANDOM.normal(size=40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(quiet.confidence_interval(Q).width > 1e-10 * offset)  # little noise is noise


@of_both
def test_a_constant_output_is_no_certainty(regressor):
    model = regressor(bandwidth=0.3).fit(X, np.full(40, 3.3))
    for name, ask in asked(model):
        if name in ("pairs", "summary"):
            continue
        if name.startswith("test"):
            with pytest.raises(ValueError, match=r"y is 3\.3 in every row.*give one that varies"):
                ask()
            continue
        with pytest.warns(InferenceWarning, match="no certainty"):
            ask()
    assert np.isnan(model.summary().loo_r2[0])
    with pytest.raises(ValueError, match="in every row"):
        specification_test(X, np.full(40, 3.3))


@of_both
def test_a_fit_through_every_row_has_no_noise_to_judge_by(regressor):
    model = regressor(bandwidth=1e-5).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)  # once per fit
        model.predict(X)
    for name, ask in asked(model, X[:2]):
        if name.startswith(("predict", "error", "interval", "slope", "band")) or name in ("robust", "naive"):
            with pytest.raises(ValueError, match=r"40 effective parameters for 40 rows.*use a larger bandwidth"):
                ask()
    assert np.isnan(model.summary().residual_sd[0])
    assert np.isinf(model.summary().aicc[0])
    with pytest.warns(InferenceWarning, match="kind='wild' takes each row's residual from the others"):
        assert np.all(model.bootstrap(X[:2], kind="residual", n_resamples=9).std(axis=0) < 1e-15)
    assert np.all(model.bootstrap(X[:2], n_resamples=9).std(axis=0) > 1e-3)


@pytest.mark.parametrize("variance", [*VARIANCES, "nn"])
@pytest.mark.filterwarnings("ignore:around 1 of 2 queries .* determine no slope in some direction")
def test_one_row_in_a_window_has_no_slope(variance):
    alone = LocalLinearRegressor("epanechnikov", bandwidth=0.3).fit(np.r_[X, [[9.0]]], np.r_[Y, 1.0])
    at = [[9.0], [0.5]]
    with pytest.warns(
        RankDeficiencyWarning, match=r"around 1 of 2 queries \(the first is query 0\) the rows determine"
    ):
        error = alone.get_prediction(at, variance=variance).slope_standard_error
    assert np.isnan(error[0, 0])
    assert error[1, 0] > 0
    with pytest.warns(RankDeficiencyWarning, match="no slope by column 0"):
        found = alone.confidence_interval(at, quantity="derivative", variance=variance)
    assert np.isnan(found.lower[0, 0])
    assert np.isnan(found.upper[0, 0])
    assert found.width[1, 0] > 0
    if variance in ("local", "sandwich", "nn"):  # hc0 to hc2 have no residual there, and say so
        value = alone.confidence_interval(at, variance=variance)
        assert value.df[0] == pytest.approx(1.0)
        assert value.width[0] > 5.0  # of one residual, by Student's quantile for one


@of_both
def test_residuals_of_less_than_one_row_are_told(regressor):
    weight = np.r_[np.ones(40), 0.5]  # the last one is half a row, far from the others
    model = regressor(bandwidth=0.3).fit(np.r_[X, [[9.0]]], np.r_[Y, 1.0], weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)  # once per fit
        model.predict([[9.0]])
    for name, ask in asked(model, [[9.0], [0.5]]):
        if name in ("wild", "mammen", "gaussian", "residual", "pairs") or name.startswith("test"):
            with pytest.raises(ValueError, match=r"weights must be whole numbers, got 0\.5; round them"):
                ask()
        elif name not in ("summary", "quadratic", "slope"):
            with pytest.warns(InferenceWarning, match=r"around 1 of 2 queries \(the first is query 0\) .* less than"):
                found = ask()
            assert np.isnan(found[0])
            assert found[1] > 0


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of the one row that has a weight
@of_both
def test_rows_of_no_weight_have_no_say(regressor):
    """Neither in what is rounding beside the others, nor in whether residuals are zero."""
    weight = np.r_[np.ones(40), 0.0]
    model = regressor(bandwidth=0.3).fit(np.r_[X, [[0.5]]], np.r_[Y, 1e15], weight)
    plain = regressor(bandwidth=0.3).fit(X, Y)
    error = model.get_prediction(Q).standard_error
    assert_allclose(error, plain.get_prediction(Q).standard_error, rtol=1e-9)
    assert np.all(model.bootstrap(Q, n_resamples=9).std(axis=0) > 1e-3)
    equal = regressor(bandwidth=0.3).fit(X, Y, 7.0 * (np.arange(40) == 3))
    with pytest.warns(InferenceWarning, match="every resample is the fit itself"):
        equal.bootstrap(Q, n_resamples=3)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # away from the value of a constant column
def test_columns_without_a_slope_beside_one_that_has_it():
    """What the pseudo-inverse leaves in the other direction is 1e-16 of a slope, or zero."""
    flat = LocalLinearRegressor(bandwidth=0.2, ridge=0.0).fit(np.c_[X, np.full(40, 0.3)], Y)
    at = [[0.5, 0.3], [0.2, 0.1]]
    with pytest.warns(RankDeficiencyWarning):
        error = flat.get_prediction(at).slope_standard_error
    assert np.all(error[:, 0] > 0.1)
    assert np.isnan(error[:, 1]).all()
    wide = LocalLinearRegressor("constant", bandwidth=1.0).fit(1e8 * X, Y)  # little slope is slope
    steep = LocalLinearRegressor("constant", bandwidth=1.0).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = 1e8 * wide.get_prediction(1e8 * Q).slope_standard_error
    assert_allclose(found, steep.get_prediction(Q).slope_standard_error, rtol=1e-9)


@of_both
def test_models_that_are_not_fitted_say_so(regressor):
    from sklearn.exceptions import NotFittedError

    for _, ask in asked(regressor()):
        with pytest.raises(NotFittedError):
            ask()


@of_both
def test_places_that_are_none(regressor):
    model = regressor(bandwidth=0.2).fit(X, Y)
    wrong = {
        "3 features": np.zeros((2, 3)), "NaN": [[np.nan]], "column 0 of X is inf": [[np.inf]], "0 sample": X[:0],
    }  # fmt: skip
    for message, at in wrong.items():
        for name, ask in asked(model, at):
            if name != "summary" and not name.startswith("test"):
                with pytest.raises(ValueError, match=message):
                    ask()


@of_both
def test_several_outputs_are_refused_where_one_is_tested(regressor):
    both = np.c_[Y, Y**2]
    for name, ask in asked(regressor(bandwidth=0.2).fit(X, both)):
        if name.startswith("test"):
            with pytest.raises(ValueError, match="of one output, and the model has 2"):
                ask()
    with pytest.raises(ValueError, match="of one output, and y has 2"):
        specification_test(X, both)
    with pytest.warns(InferenceWarning, match="residuals of output 1 are zero"):
        regressor(bandwidth=0.2).fit(X, np.c_[Y, 0 * Y]).bootstrap(Q, n_resamples=3)


WORDS, SEEDS, SIZES = ("other", None, ["robust"]), ("a", 1.5, [1, 2]), (0, -1, 9.5)
LABELS = [
    np.where(HALVES > 0, np.nan, 1.0),
    np.array([None, "b"] * 20, dtype=object),
    np.array([1, "b"] * 20, dtype=object),
    np.ones(2),
    np.ones((40, 1)),
    np.ones(40, dtype=int),
]
STATISTICS = (3, lambda fit: fit[fit > 0], *(lambda _, s=s: s for s in (None, "a", 1j, [None, 1.0], {"mean": 1.0})))
MODEL = LocalLinearRegressor(bandwidth=0.2).fit(X, Y)
TEST, SPECIFICATION = partial(MODEL.significance_test, 0), partial(specification_test, X, Y)
# the call, the argument that its error names, and values that are refused
REFUSED = {
    partial(MODEL.get_prediction, X): {"variance": (*WORDS, np.array(["local"])), "groups": LABELS},
    partial(MODEL.confidence_interval, X): {
        "level": (0, 1, 95, True, "0.95", np.nan, None, [0.9]), "method": WORDS, "quantity": WORDS, "groups": LABELS,
        "simultaneous": ("bonferroni",),
    },
    partial(MODEL.confidence_interval, X, simultaneous="multiplier"): {"random_state": SEEDS, "n_resamples": SIZES},
    MODEL.bootstrap: {
        "kind": WORDS, "groups": LABELS, "random_state": SEEDS, "statistic": STATISTICS,
        "max_bytes": ("a", None, True, [9], 100),
    },
    TEST.func: {"columns": (2, "x", True, 0.5, [])},
    TEST: {"kind": WORDS, "method": WORDS, "random_state": SEEDS, "n_resamples": SIZES},
    SPECIFICATION: {
        "kind": WORDS, "random_state": SEEDS, "n_resamples": SIZES, "bandwidth": ([1.0, 2.0, 3.0],),
        "sample_weight": (np.ones(3), -np.ones(40)), "model": (LocalLinearRegressor, "linear"),
    },
    partial(specification_test, y=Y): {"X": (X[None],)},
    partial(specification_test, X): {"y": (Y[:9],)},
}  # fmt: skip


@pytest.mark.parametrize(("call", "name"), [(call, name) for call, names in REFUSED.items() for name in names])
def test_what_is_refused(call, name):
    for value in REFUSED[call][name]:
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            call(**{name: value})


def test_outputs_without_squares():
    for y, message in ((1e200 * Y, "beyond 1e.150 in magnitude.*rescale"), (1e-200 * Y, "square underflows; rescale")):
        with pytest.raises(ValueError, match=message):
            specification_test(X, y)
    with pytest.raises(ValueError, match="y holds numbers beyond 1e"):
        LocalLinearRegressor(bandwidth=0.2).fit(X, 1e200 * Y)
    model = LocalLinearRegressor(bandwidth=0.2).fit(X, 1e-200 * Y)
    for method in ("residual", "gradient"):
        with pytest.raises(ValueError, match=message):
            model.significance_test(0, method=method)
