"""Standard errors of probabilities and Wilson's intervals, against tables of shares and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from statsmodels.stats.proportion import proportion_confint

import tests.support.dense_classes as reference
from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    Nearest,
    kernel_names,
)
from kernpool.inference.class_probabilities import wilson_interval


def sample(generator, n=40, classes=3, columns=2):
    X = generator.uniform(-1.0, 1.0, size=(n, columns))
    y = np.array(["a", "b", "c"])[
        np.argmax(X[:, :1] * np.arange(classes) + generator.gumbel(size=(n, classes)), axis=1)
    ]
    return X, y


CASES = {
    "three classes": {},
    "two classes": {"classes": 2},
    "one column": {"columns": 1},
    "no prior": {"prior_share": 0.0},
    "much prior": {"prior_share": 0.7},
    "weights": {"weighted": True},
    "product": {"kernel": "product biweight", "bandwidth": 2.5},
} | {kernel: {"kernel": kernel, "bandwidth": 1.5} for kernel in kernel_names()}


def fitted(generator, kernel="gaussian", bandwidth=0.5, classes=3, columns=2, weighted=False, **options):
    X, y = sample(generator, classes=classes, columns=columns)
    weight = np.arange(40) % 4 * 0.75 if weighted else None
    return X, NadarayaWatsonClassifier(kernel, bandwidth, **options).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("case", CASES)
def test_standard_errors_are_those_of_tables(case, generator):
    X, model = fitted(generator, **CASES[case])
    new = np.concatenate([X[:5], generator.uniform(-1.5, 1.5, size=(20, X.shape[1]))])
    probability, error = model.predict_proba(new, return_std=True)
    assert_allclose(error, reference.standard_errors(model, X, new), rtol=1e-11)
    assert_array_equal(probability, model.predict_proba(new))
    assert_allclose(reference.shares(model, new) @ reference.labels_of(model), probability, rtol=1e-11, atol=1e-15)
    found, weight = model.probability_interval(new), reference.weight_of(model)
    lines = LocalLinearRegressor(model.kernel, model.bandwidth_ * weight.sum() ** (-1 / 20))
    lines.fit(X, reference.labels_of(model), sample_weight=weight)
    assert_allclose(found.center, np.clip(lines.predict(new), 0.0, 1.0), rtol=1e-9, atol=1e-11)
    share = lines.attention_weights(new)[:, weight > 0]
    assert_allclose(found.effective_rows, 1.0 / np.sum(share**2 / weight[weight > 0], axis=1), rtol=1e-9)


@pytest.mark.parametrize("window", ["fixed", "auto", Nearest()])
@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_cover_true_probabilities(window, classes):
    """Intervals around pooled labels covered 73 to 81 percent of these."""
    slopes, covered = np.array([[0.0, 3.0, 0.0], [0.0, -2.0, 2.5]])[:, :classes], []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        X, new = generator.uniform(-1.0, 1.0, size=(2, 80, 2))
        of_rows, truth = (np.exp(x @ slopes) / np.exp(x @ slopes).sum(axis=1, keepdims=True) for x in (X, new))
        y = np.sum(generator.uniform(size=(80, 1)) > of_rows.cumsum(axis=1), axis=1)
        found = NadarayaWatsonClassifier(window=window).fit(X, y).probability_interval(new)
        covered.append(np.mean((found.lower <= truth) & (truth <= found.upper)))
    assert np.mean(covered) > 0.9


def test_levels(generator):
    frame = pd.DataFrame({"x": generator.normal(size=40), "level": pd.Categorical(list("abca") * 10)})
    y = (frame.x + (frame.level == "a") + generator.normal(size=40) > 0.5).to_numpy()
    model = NadarayaWatsonClassifier(bandwidth=0.6, smoothing=0.2).fit(frame, y)
    found = model.predict_proba(frame, return_std=True)[1]
    assert_allclose(found, reference.standard_errors(model, frame, frame), rtol=1e-11)


def test_one_class_has_none(generator):
    X, _ = sample(generator)
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, np.full(40, 7))
    assert np.all(model.predict_proba(X, return_std=True)[1] == 0.0)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of the priors
@pytest.mark.parametrize("empty", ["mean", "nan", "nearest"])
def test_empty_windows_are_told_once(empty, generator):
    _, model = fitted(generator, kernel="epanechnikov", bandwidth=1.0, empty=empty)
    new = np.array([[0.0, 0.0], [9.0, 0.0]])
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries .*the first is query 1") as said:
        probability, error = model.predict_proba(new, return_std=True)
    assert sum(one.category is EmptyWindowWarning for one in said) == 1
    if empty == "mean":
        assert_allclose(probability[1], model.class_prior_)
    assert np.isfinite(error[0]).all()
    assert np.isnan(error[1]).all()
    with pytest.warns(EmptyWindowWarning):
        found = model.probability_interval(new)
    for numbers in (found.center, found.lower, found.upper, found.effective_rows):
        assert np.isfinite(numbers[0]).all()
        assert np.isnan(numbers[1]).all()


def test_far_away_the_nearest_row_is_all(generator):
    _, model = fitted(generator, prior_share=0.0)
    with pytest.warns(ExtrapolationWarning, match="far beyond the range"):
        assert model.probability_interval([[50.0, 50.0]]).effective_rows == pytest.approx(1.0)
    with pytest.warns(ExtrapolationWarning, match="1 of 1 queries") as caught:
        assert np.isnan(model.predict_proba([[1e7, 0.0]], return_std=True)[1]).all()
    assert len(caught) == 1


def test_too_few_rows_and_groups(generator):
    X, y = sample(generator)
    few, grouped = NadarayaWatsonClassifier(bandwidth=0.5), NadarayaWatsonClassifier(bandwidth=0.5)
    few.fit(X[:4], y[:4])
    grouped.fit(X, y, groups=np.arange(40) // 4)
    for ask, message in (
        (lambda: few.predict_proba(X, return_std=True), "at least 5 rows, got 4"),
        (
            lambda: grouped.predict_proba(X, return_std=True),
            "takes rows one by one, and this model",
        ),
        (lambda: grouped.probability_interval(X), "takes rows one by one, and this model"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


@given(
    st.floats(0.0, 1.0),
    st.floats(1.0, 1e6),
    st.floats(0.01, 0.999),
)
def test_wilson_is_that_of_statsmodels(share, rows, level):
    lower, upper = wilson_interval(np.array([share]), np.array([rows]), level)
    expected = proportion_confint(share * rows, rows, 1.0 - level, method="wilson")
    assert_allclose([lower[0], upper[0]], expected, rtol=1e-8, atol=1e-12)  # a difference there
    assert 0.0 <= lower[0] <= share <= upper[0] <= 1.0


def test_wilson_keeps_its_digits():
    """To the last, beside the formula in 50 digits."""
    from mpmath import mp, mpf, sqrt

    with mp.workdps(50):
        z2 = mpf("1.959963984540054235524594430520552") ** 2
        for share, rows in ((1e-9, 1e6), (0.3, 7.5), (1e-300, 20.0)):
            p, n = mpf(share), mpf(rows)
            middle, root = p + z2 / (2 * n), sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n**2)))
            exact = [float((middle - root) / (1 + z2 / n)), float((middle + root) / (1 + z2 / n))]
            lower, upper = wilson_interval(np.array([share]), np.array([rows]), 0.95)
            if share > 1e-20:  # fifty digits of a difference
                assert_allclose(lower[0], exact[0], rtol=1e-14)
            assert_allclose(upper[0], exact[1], rtol=1e-14)


def test_a_window_of_twelve_without_a_class():
    X = np.r_[np.linspace(0.0, 1.0, 12), 10.0, 10.1][:, None]
    model = NadarayaWatsonClassifier("boxcar", 2.0).fit(X, ["no"] * 12 + ["yes"] * 2)
    found = model.probability_interval([[0.5]])
    assert found.effective_rows[0] == pytest.approx(12.0, rel=1e-14)
    assert (found.lower[0, 1], found.upper[0, 0]) == (0.0, 1.0)
    assert found.upper[0, 1] == pytest.approx(0.2425, abs=1e-4)
