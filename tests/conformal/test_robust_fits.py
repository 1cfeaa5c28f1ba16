"""Prediction intervals of robust fits: those of models fitted again without each fold, laws, files and refusals."""

import re

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, load_model, save_model
from kernpool.conformal import METHODS
from kernpool.conformal.jackknife_plus import fold_sizes
from kernpool.inference.resampling.random_draws import generator
from tests.support.commands import kernpool
from tests.support.dense_conformal import order_statistic, ranks

N, LEVEL = 60, 0.8
NEW = np.linspace(0.05, 0.95, 7)[:, None]
SETTINGS = [
    (NadarayaWatsonRegressor, {"robust": True}),
    (LocalLinearRegressor, {"robust": 2}),
    (NadarayaWatsonRegressor, {"robust": "huber", "kernel": "tricube", "bandwidth": 0.3}),
    (LocalLinearRegressor, {"robust": "tukey", "kernel": "epanechnikov", "bandwidth": 0.3, "empty": "nan"}),
]


def rows(n=N, share=0.1, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(size=n)
    return x[:, None], np.sin(5 * x) + 0.3 * random.normal(size=n) + 6.0 * (random.uniform(size=n) < share)


def fitted(kind, options, weight=None):
    return kind(**{"bandwidth": 0.1} | options).fit(*rows(), weight)


def ends(interval):
    return np.array([interval.lower, interval.upper])


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "options"), SETTINGS)
def test_cv_plus_is_of_models_without_each_fold(kind, options, weighted):
    (X, y), weight = rows(), np.random.default_rng(1).integers(1, 4, N) if weighted else np.ones(N, dtype=int)
    model = fitted(kind, options, weight)
    unit = np.repeat(np.arange(N), weight)
    folds, size = fold_sizes(float(len(unit)))
    drawn = unit[generator(3, 0).permutation(len(unit))][: folds * size]
    at, score = np.empty((len(NEW), len(drawn))), np.empty(len(drawn))
    for fold in range(folds):
        mine = np.arange(len(drawn)) % folds == fold
        left = weight - np.bincount(drawn[mine], minlength=N)
        one = clone(model).fit(X[left > 0], y[left > 0], left[left > 0])
        at[:, mine] = one.predict(NEW)[:, None]
        score[mine] = np.abs(y - one.predict(X))[drawn[mine]]
    low, high = ranks(LEVEL, len(drawn))
    found = model.prediction_interval(NEW, level=LEVEL, method="cv+", random_state=3)
    assert_allclose(found.lower, np.sort(at - score, axis=1)[:, low - 1], rtol=0, atol=1e-12)
    assert_allclose(found.upper, np.sort(at + score, axis=1)[:, high - 1], rtol=0, atol=1e-12)
    assert_allclose(found.center, model.predict(NEW), rtol=0, atol=1e-12)
    assert_allclose(found.effective_rows, model.get_prediction(NEW[:6]).effective_sample_size, rtol=1e-12)
    assert found.guarantee.startswith(
        "Covers a new value with a probability of " + ("about" if weighted else "at least")
    )


@pytest.mark.parametrize(("kind", "options"), SETTINGS)
def test_jackknife_plus_is_of_models_without_each_cluster(kind, options):
    (X, y), group, model = rows(), np.arange(N) // 3, fitted(kind, options)
    at, score = np.empty((len(NEW), N)), np.empty(N)
    for cluster in range(20):
        one = clone(model).fit(X[group != cluster], y[group != cluster])
        at[:, group == cluster] = one.predict(NEW)[:, None]
        score[group == cluster] = np.abs(y - one.predict(X))[group == cluster]
    found = model.prediction_interval(NEW, level=LEVEL, groups=group)
    assert (found.method, found.n_calibration, found.units) == ("jackknife+", 20, "clusters")
    high = int(np.ceil(LEVEL * 21 * 3 - 1e-9))  # each row has a third of the weight of its cluster
    for place in range(len(NEW)):
        assert found.upper[place] == pytest.approx(order_statistic(at[place] + score, high), abs=1e-12)
        assert found.lower[place] == pytest.approx(-order_statistic(score - at[place], high), abs=1e-12)


@pytest.mark.parametrize(("kind", "options"), SETTINGS)
def test_split_is_the_prediction_and_a_quantile_of_residuals(kind, options):
    model, (X, y) = fitted(kind, options), rows(49, seed=5)
    found = model.prediction_interval(NEW, level=LEVEL, X_calibration=X, y_calibration=y)
    width = order_statistic(np.abs(y - model.predict(X)), 40)
    expected = model.predict(NEW) + np.array([[-width], [width]])
    assert_allclose(ends(found), expected, rtol=0, atol=1e-12)
    assert found.method == "split"
    assert "at least 0.8" in found.guarantee


def test_methods_are_chosen_by_the_rows_and_answers_repeat():
    X, y = rows()
    model, plain = (LocalLinearRegressor(bandwidth=0.1, robust=robust).fit(X, y) for robust in (True, False))
    assert plain.prediction_interval(NEW).method == "adaptive"
    found = model.prediction_interval(NEW)
    assert found.method == "cv+"
    assert_array_equal(ends(found), ends(model.prediction_interval(NEW, method="cv+", random_state=0)))
    assert (ends(found) != ends(model.prediction_interval(NEW, random_state=1))).any()
    assert "found on the rows" in LocalLinearRegressor(robust=True).fit(X, y).prediction_interval(NEW).guarantee


def test_rows_that_the_search_has_not_seen_calibrate():
    X, y = rows(200)
    model = LocalLinearRegressor(robust=True, search={"rows": 60}).fit(X, y)
    found = model.prediction_interval(NEW, calibration="unsearched")
    assert len(model.search_rows_) == 60
    assert "at least" in found.guarantee
    assert "the search for the bandwidth has not seen" in found.guarantee
    assert found.n_calibration == 140.0


OTHERS, GROUPS = {"X_calibration": NEW, "y_calibration": NEW[:, 0]}, np.arange(N) // 3


@pytest.mark.filterwarnings("ignore::kernpool.inference.InferenceWarning")  # seven calibration rows, for 90 percent
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("rows_of", "only"), [({}, "cv+"), ({"groups": GROUPS}, "jackknife+"), (OTHERS, "split")])
def test_methods_that_do_not_fit_again_are_refused_and_the_remedy_works(method, rows_of, only):
    model = fitted(LocalLinearRegressor, {"robust": True})
    if method == only:
        assert model.prediction_interval(NEW, method=method, **rows_of).method == method
        return
    with pytest.raises(TypeError, match=f"method={re.escape(repr(method))} is for linear.* robust.*=False") as told:
        model.prediction_interval(NEW, method=method, **rows_of)
    assert "use method='auto'" in str(told.value)
    assert repr(only) in str(told.value)


def test_commands_and_files_have_the_same_intervals(tmp_path):
    (X, y), table = rows(), tmp_path / "new.csv"
    model = LocalLinearRegressor(bandwidth=0.1, robust=True).fit(pandas.DataFrame(X, columns=["x"]), y)
    save_model(model, tmp_path / "model", target="y")
    frame = pandas.DataFrame({"x": NEW[:, 0].round(3)})
    frame.assign(y=np.sin(5 * frame.x)).to_csv(table, index=False)
    expected = load_model(tmp_path / "model").prediction_interval(frame, level=0.8)
    assert_array_equal(ends(expected), ends(model.prediction_interval(frame, level=0.8)))
    predict = ["predict", tmp_path / "model", table, "--interval", "0.8", "--method"]
    run = kernpool(*predict, "auto", "--out", tmp_path / "out.csv")
    assert run.returncode == 0
    assert expected.guarantee in run.stderr.decode()
    found = pandas.read_csv(tmp_path / "out.csv")[["y_new_lower", "y_new_upper"]].to_numpy().T
    assert_allclose(found, ends(expected), rtol=1e-12)
    refused = kernpool(*predict, "adaptive", "--out", tmp_path / "no.csv")
    assert refused.returncode == 2
    assert "use --method auto (with --calibration it is 'split', else 'cv+'" in refused.stderr.decode()
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("robust", [True, "huber"])
def test_outliers_do_not_widen_intervals_that_need_not_hold_them(robust):
    clean, spoiled = rows(300, 0.0, 2), rows(300, 0.1, 2)
    widths = [
        LocalLinearRegressor(bandwidth=0.1, robust=kind)
        .fit(*some)
        .prediction_interval(NEW, level=0.8, method="cv+")
        .width
        for kind, some in ((robust, clean), (robust, spoiled), (False, spoiled))
    ]
    assert widths[1].mean() < 1.3 * widths[0].mean() < 0.9 * widths[2].mean()


@pytest.mark.slow
@pytest.mark.parametrize(("robust", "method", "level", "most"), [
    (True, "cv+", 0.9, 0.94), (True, "cv+", 0.7, 0.74), ("huber", "cv+", 0.9, 0.94), (True, "split", 0.7, 0.7 + 1 / 61),
])  # fmt: skip
def test_new_values_are_covered_with_a_fifth_of_outliers(robust, method, level, most):
    share = []
    for seed in range(120):
        X, y = rows(80, 0.2, [seed, 0])
        new, value = rows(100, 0.2, [seed, 1])
        other = rows(60, 0.2, [seed, 2]) if method == "split" else (None, None)
        model = LocalLinearRegressor(bandwidth=0.15, robust=robust).fit(X, y)
        found = model.prediction_interval(
            new, level=level, method=method, X_calibration=other[0], y_calibration=other[1], random_state=seed
        )
        share.append(np.mean((found.lower <= value) & (value <= found.upper)))
    error = np.std(share) / np.sqrt(len(share))
    least = level if method == "split" else level - 0.02  # guaranteed are 1 - 2 alpha
    assert least - 4 * error <= np.mean(share) <= most + 4 * error
