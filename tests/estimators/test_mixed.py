"""Estimators of tables with categorical columns: frames, smoothings, unseen levels, models on disk."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from tests.support.thinning import thinned

pandas = pytest.importorskip("pandas", reason="frames of pandas are half of what this is about")


def make_frame(n=90, seed=0):
    """A wave, a city that matters, years that matter in their order, and letters of no use."""
    generator = np.random.default_rng(seed)
    year = generator.choice([2000, 2001, 2005], n)
    frame = pandas.DataFrame(
        {
            "city": generator.choice(["Aachen", "Bonn", "Celle"], n),
            "x": generator.normal(size=n),
            "year": pandas.Categorical(year, categories=[2000, 2001, 2005], ordered=True),
            "letter": generator.choice(["u", "v"], n),
        }
    )
    y = np.sin(2 * frame.x) + (frame.city == "Bonn") + 0.3 * (year - 2000) + 0.2 * generator.normal(size=n)
    return frame, y.to_numpy()


@pytest.mark.parametrize(
    ("make", "bandwidth"), thinned([NadarayaWatsonRegressor, LocalLinearRegressor], ["loo", "aicc", "gcv"])
)
def test_the_search_finds_which_columns_matter(make, bandwidth):
    frame, y = make_frame(n=150)
    model = make(bandwidth=bandwidth).fit(frame, y)
    assert model.relevance_.shape == (4,)
    assert model.relevance_[0] > 0.8  # cities
    assert model.relevance_[1] > 1.0  # x
    if bandwidth == "aicc":  # the others follow the noise on so few rows
        assert model.relevance_[3] < 0.5  # letters
    assert model.smoothing_.shape == (3,)
    assert model.score(frame, y) > 0.9
    if bandwidth == "loo":
        assert model.loo_error_ == pytest.approx(model.leave_one_out().error, rel=1e-9)
        for a in range(3):  # a minimum, along each smoothing
            for step in (-0.01, 0.01):
                moved = model.smoothing_.copy()
                moved[a] = np.clip(moved[a] + step, 0.0, [2 / 3, 0.99, 0.5][a])
                other = make(bandwidth=model.bandwidth_, smoothing=moved).fit(frame, y)
                assert other.leave_one_out().error >= model.loo_error_ * (1 - 1e-9)


def test_unseen_levels_are_errors_or_unlike_every_level():
    frame, y = make_frame()
    new = frame[:3].assign(city="Düren")
    model = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=[0.1, 0.3, 0.4]).fit(frame, y)
    with pytest.raises(ValueError, match=r"'city'.*'Düren'"):
        model.predict(new)
    model.set_params(unseen="unlike")
    without = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=[0.3, 0.4]).fit(frame.drop(columns="city"), y)
    np.testing.assert_allclose(model.predict(new), without.predict(frame[:3].drop(columns="city")), rtol=1e-12)


def test_levels_alone_are_a_table_too():
    frame, y = make_frame()
    only = frame[["city"]]
    model = NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.0]).fit(only, y)
    means = pandas.Series(y).groupby(frame.city).mean()
    np.testing.assert_allclose(model.predict(only), means[frame.city].to_numpy(), rtol=1e-12)
    found = NadarayaWatsonRegressor().fit(only, y)
    assert 0.0 < found.relevance_[0] <= 1.0


def test_classes_of_mixed_tables():
    frame, y = make_frame()
    labels = np.where(y > np.median(y), "high", "low")
    model = NadarayaWatsonClassifier().fit(frame, labels)
    assert model.score(frame, labels) > 0.8
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)


def test_empty_windows_of_mixed_tables():
    frame, y = make_frame()
    options = {"kernel": "epanechnikov", "bandwidth": 0.3, "smoothing": [0.0, 0.0, 0.0]}
    far = frame[:2].assign(x=50.0)
    nearest = NadarayaWatsonRegressor(empty="nearest", **options).fit(frame, y)
    for method, values in (("predict", 1.0), ("attention_weights", y)):
        with pytest.warns(RuntimeWarning, match="no key with positive weight .* nearest"):
            found = getattr(nearest, method)(far)
        np.testing.assert_allclose(np.dot(found, values), y[frame.x.argmax()])
    with pytest.warns(RuntimeWarning, match="no key with positive weight"):
        assert np.isnan(NadarayaWatsonRegressor(empty="nan", **options).fit(frame, y).predict(far)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.5}, "smoothing must be one number per categorical column"),
        ({"bandwidth": 0.5, "smoothing": [0.1]}, "smoothing must be one number per categorical column"),
        ({"bandwidth": 0.5, "smoothing": [0.9, 0.1, 0.1]}, r"smoothing must lie in \[0"),
        ({"smoothing": [0.1, 0.1, 0.1]}, "smoothing is searched for"),
        ({"kernel": "boxcar"}, "not flat"),
        ({"categorical_kernel": "wang_van_ryzin"}, "categorical_kernel must be 'aitchison_aitken' or 'li_racine'"),
        ({"unseen": "ignore"}, "unseen must be"),
    ],
)
def test_parameters_that_cannot_be_meant(options, message):
    frame, y = make_frame(n=30)
    with pytest.raises(ValueError, match=message):
        NadarayaWatsonRegressor(**options).fit(frame, y)


@pytest.mark.covering
@pytest.mark.parametrize(("seed", "bandwidth"), thinned([0, 4], ["loo", "aicc", "gcv"]))
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_repeated_rows_are_weights_in_mixed_tables(bandwidth, seed):
    """At a smoothing of zero slopes are as good as infinite where a row has only itself for a neighbour."""
    frame, y = make_frame(n=40, seed=seed)
    repeated = pandas.concat([frame, frame[:25]], ignore_index=True)
    one = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(repeated, np.r_[y, y[:25]])
    other = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(frame, y, sample_weight=1.0 + (np.arange(40) < 25))
    np.testing.assert_allclose(one.bandwidth_, other.bandwidth_, rtol=1e-9)
    np.testing.assert_allclose(one.smoothing_, other.smoothing_, rtol=1e-9)


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_no_bandwidth_and_smoothing_of_a_grid_is_better(make):
    generator = np.random.default_rng(0)
    group, x = generator.choice(list("abc"), 80), generator.uniform(size=80)
    y = np.sin(6 * x) * (group == "a") + (group == "b") + 0.2 * generator.normal(size=80)
    frame = pandas.DataFrame({"x": x, "group": group})
    found = make(bandwidth="loo").fit(frame, y).loo_error_
    for h in np.geomspace(0.03, 3.0, 9):
        for lam in (0.0, 0.1, 0.3, 2 / 3):
            assert found <= make(bandwidth=h, smoothing=[lam]).fit(frame, y).leave_one_out().error * (1 + 1e-9)


def test_a_column_of_one_level_has_no_role():
    frame, y = make_frame(n=40)
    for kernel in ("aitchison_aitken", "li_racine"):
        model = NadarayaWatsonRegressor(bandwidth="loo", categorical_kernel=kernel).fit(frame[["x"]].assign(one="a"), y)
        assert model.relevance_[1] == 0.0
        alone = NadarayaWatsonRegressor(bandwidth="loo").fit(frame[["x"]], y)
        assert model.loo_error_ == pytest.approx(alone.loo_error_, rel=1e-6)
