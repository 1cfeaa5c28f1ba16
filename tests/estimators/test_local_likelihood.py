"""Local likelihood: the numbers of statsmodels and R, dense sums and refits, laws, and what is refused."""

import json
import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logit, xlogy
from sklearn.metrics import d2_tweedie_score, log_loss

from kernpool import (
    Floor,
    LocalLikelihoodRegressor,
    LocalLogisticClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    RankDeficiencyWarning,
    get_kernel,
    load_model,
    open_chunks,
    pooling_weights,
    save_model,
)
from kernpool.likelihood import families as likelihood_families
from kernpool.likelihood.criterion import Deviance
from tests.support.searches import canonical_rows, check_derivatives, objective_of

STORED = json.loads((Path(__file__).parent / "likelihood_numbers.json").read_text(encoding="utf-8"))
DATA = {name: np.array(column) for name, column in STORED["data"].items()}
X = DATA["x"][:, None]
OF = {"binomial": DATA["b"], "poisson": DATA["c"], "gamma": DATA["g"]}
FAMILIES = list(OF)
AT = np.linspace(0.05, 0.95, 10)[:, None]
N = len(X)


def mean_of(family, theta):
    return expit(theta) if family == "binomial" else np.exp(theta)


def link_of(family, mean):
    return logit(mean) if family == "binomial" else np.log(mean)


def score(family, y, m):
    """First and minus the second derivative of the log likelihood by the link, for a gamma of shape one."""
    if family == "binomial":
        return y - m, m * (1 - m)
    return (y - m, m) if family == "poisson" else (y / m - 1, y / m)


def deviance(family, y, m):
    """Twice the distance of the log likelihood to the best one, for each unit of weight."""
    if family == "binomial":
        return 2 * (xlogy(y, y / m) + xlogy(1 - y, (1 - y) / (1 - m)))
    return 2 * (xlogy(y, y / m) - (y - m)) if family == "poisson" else 2 * ((y - m) / m - np.log(y / m))


def fit_at(kernel, offset, y, weight, family, degree=1, ridge=0.0):
    """Return the link at one query and its model-based standard error (of a gamma: of shape one).

    A ridge, per squared unit of each column, penalises half of the squares of slopes.
    """
    kernel, offset, y, weight = (a[kernel * weight > 0] for a in (kernel, offset, y, weight))
    z = np.column_stack([np.ones(len(y)), offset / (unit := np.abs(offset).max(axis=0))])[:, : None if degree else 1]
    penalty = np.append(0.0, ridge / unit**2)[: z.shape[1]]
    w = kernel * weight
    beta = np.zeros(z.shape[1])
    beta[0] = link_of(family, w @ y / w.sum())

    def loss(beta):
        return w @ deviance(family, y, mean_of(family, z @ beta)) + penalty @ beta**2

    for _ in range(100):
        first, second = score(family, y, mean_of(family, z @ beta))
        matrix = (z * (w * second)[:, None]).T @ z + np.diag(penalty)
        step = np.linalg.solve(matrix, z.T @ (w * first) - penalty * beta)
        while loss(beta + step) > loss(beta) * (1 + 1e-14):
            step /= 2
        beta = beta + step
        if np.abs(step).max() < 1e-13 * (1 + np.abs(beta).max()):
            break
    second = score(family, y, mean_of(family, z @ beta))[1]
    inverse = np.linalg.inv((z * (w * second)[:, None]).T @ z + np.diag(penalty))
    return beta[0], np.sqrt((inverse @ (z * (w * kernel * second)[:, None]).T @ z @ inverse)[0, 0])


def fits(kernel, query, key, y, family, degree=1, weight=None, ridge=0.0):
    """Return links and standard errors of all queries, of kernel weights of shape (m, n)."""
    weight = np.ones(len(y)) if weight is None else weight
    each = [fit_at(row, key - q, y, weight, family, degree, ridge) for row, q in zip(kernel, query, strict=True)]
    return np.transpose(each)


def left_out(kernel, key, y, family, degree=1, weight=None, unit=None):
    """Return the link of each row by a fit without one unit of it, or without all rows of its unit."""
    weight = np.ones(len(y)) if weight is None else weight
    found = np.empty(len(y))
    for i, row in enumerate(kernel):
        kept = weight - np.eye(len(y))[i] if unit is None else weight * (unit != unit[i])
        found[i] = fit_at(row, key - key[i], y, kept, family, degree)[0]
    return found


def curve(family, bandwidth=0.15, kernel="gaussian", **options):
    return LocalLikelihoodRegressor(kernel, bandwidth, family=family, **options)


def spread(model):
    """What standard errors are multiplied by: of counts, and of several trials, at least one."""
    if model.family == "gamma":
        return np.sqrt(model.dispersion_)
    return 1.0 if model.family == "binomial" and np.all(model.size_ == 1) else np.sqrt(max(1.0, model.dispersion_))


def of_peer(name):
    entries = [entry for entry in STORED["numbers"] if entry["of"] == name]
    assert entries
    return pytest.mark.parametrize("entry", entries, ids=lambda e: f"{e['family']}-{e['nn'] or e['h']}-{e['degree']}")


@of_peer("glm")
def test_links_are_those_of_generalized_linear_models(entry):
    family = entry["family"]
    found = curve(family, entry["h"]).fit(X, OF[family]).predict([[0.1], [0.3], [0.5], [0.7], [0.9]])
    assert_allclose(link_of(family, found), entry["values"], rtol=1e-9, atol=1e-10)


def in_window(entry):
    """A fit of locfit: tricube weights in a fixed window, or one of a share of the rows."""
    window = {"bandwidth": entry["h"]} if entry["h"] else {"window": Nearest(entry["nn"]), "bandwidth": "loo"}
    family, by_trials, _ = entry["family"].partition("_trials")
    y = {"y": DATA["hits"], "trials": DATA["trials"]} if by_trials else {"y": OF[family]}
    return curve(family, kernel="tricube", degree=entry["degree"], **window).fit(X, **y)


@of_peer("locfit")
def test_means_and_errors_of_locfit(entry):
    """Its steps end at a relative 1e-6 of the likelihood; errors are of the link, and of a gamma of shape one."""
    model = in_window(entry)
    found = model.get_prediction(AT)
    assert_allclose(found.mean, entry["values"][:10], rtol=3e-6)
    assert_allclose(found.link_standard_error / spread(model), entry["values"][10:], rtol=3e-6)


@of_peer("locfit left out")
def test_fits_of_locfit_without_each_row(entry):
    found = in_window(entry).leave_one_out()
    if entry["h"]:  # of nearest windows it keeps the widths of all rows
        assert_allclose(found.prediction[:, 0], entry["values"][:-1], rtol=3e-6)


@of_peer("sm")
def test_means_of_sm(entry):
    family, by_trials, _ = entry["family"].partition("_trials")
    y = {"y": DATA["hits"], "trials": DATA["trials"]} if by_trials else {"y": OF[family]}
    assert_allclose(curve(family, entry["h"]).fit(X, **y).predict(AT), entry["values"], rtol=3e-8)


RANDOM = np.random.default_rng(0)
PLANE = RANDOM.uniform(size=(60, 2))
KIND = np.arange(60) % 3
TWO = {
    "binomial": RANDOM.binomial(1, 0.2 + 0.5 * PLANE[:, 0]),
    "poisson": RANDOM.poisson(1 + 4 * PLANE[:, 1]),
    "gamma": RANDOM.gamma(3.0, 1 + PLANE[:, 0]),
}
WEIGHT = 1.0 + np.arange(60) % 2
WINDOWS = {
    "gaussian": {"kernel": "gaussian", "bandwidth": [0.3, 0.5]},
    "compact": {"kernel": "epanechnikov", "bandwidth": 0.6},
    "nearest": {"kernel": "tricube", "bandwidth": 1.0, "window": Nearest(40)},
    "floor": {"kernel": "gaussian", "bandwidth": 0.1, "window": Floor(12)},
}


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fits_and_errors_are_those_of_dense_sums(family, window, degree):
    options, y, at = WINDOWS[window], TWO[family], PLANE[:6] + 0.01
    constant = NadarayaWatsonRegressor(**options).fit(PLANE, y, sample_weight=WEIGHT)
    kernel = constant.attention_weights(at) / WEIGHT
    link, error = fits(kernel, at, PLANE, y, family, degree, WEIGHT)
    model = LocalLikelihoodRegressor(family=family, degree=degree, **options).fit(PLANE, y, sample_weight=WEIGHT)
    assert_allclose(model.predict(at), mean_of(family, link), rtol=1e-9)
    if not degree:
        assert_allclose(model.predict(at), constant.predict(at), rtol=1e-12)
    assert_allclose(model.get_prediction(at).link_standard_error, error * spread(model), rtol=1e-8)


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_many_rows_are_fitted_at_moved_queries(family):
    """Pools instead of pairs, from some 4 million pairs on."""
    x = np.random.default_rng(1).uniform(size=(2100, 1))
    y = np.random.default_rng(2).poisson(np.exp(np.sin(6 * x[:, 0]))) + (family == "gamma")
    model = curve(family, 0.05).fit(x, y)
    link, error = fits(pooling_weights(x[:5], x, bandwidth=0.05), x[:5], x, y, family)
    assert_allclose(model.predict(x)[:5], np.exp(link), rtol=1e-10)
    assert_allclose(model.get_prediction(x).link_standard_error[:5], error * spread(model), rtol=1e-8)
    others = np.where(np.eye(5, 2100), 0.0, pooling_weights(x[:5], x, bandwidth=0.05))
    without = fits(others, x[:5], x, y, family)[0]
    assert_allclose(model.leave_one_out().prediction[:5, 0], np.exp(without), rtol=1e-10)


UNITS = {"rows": {}, "weights": {"sample_weight": WEIGHT}, "groups": {"groups": np.arange(60) // 4}}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_left_out_as_by_refits(family, unit):
    y, given = TWO[family], UNITS[unit]
    kernel = pooling_weights(PLANE, PLANE, bandwidth=0.4)
    weight = given.get("sample_weight", np.ones(60))
    theta = left_out(kernel, PLANE, y, family, 1, weight, given.get("groups"))
    model = curve(family, 0.4).fit(PLANE, y, **given)
    mean = mean_of(family, theta)
    assert_allclose(model.leave_one_out().prediction[:, 0], mean, rtol=1e-8)
    error = np.average(deviance(family, y, mean), weights=weight)
    assert model.leave_one_out().error == pytest.approx(error, rel=1e-8)
    residual = np.sign(y - mean) * np.sqrt(deviance(family, y, mean))
    assert_allclose(model.residuals().residual, residual, rtol=1e-6, atol=1e-8)


def test_neighbours_within_a_gap_are_left_out():
    model = curve("poisson", gap=2).fit(X, OF["poisson"], time=np.arange(N))
    kept = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) > 2
    kernel = pooling_weights(X, X, bandwidth=0.15) * kept
    theta = fits(kernel, X, X, OF["poisson"], "poisson")[0]
    assert_allclose(model.leave_one_out().prediction[:, 0], np.exp(theta), rtol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_search_finds_the_least_deviance(family):
    model = curve(family, "loo").fit(X, OF[family])

    def value(factor):
        kernel = pooling_weights(X, X, bandwidth=model.bandwidth_ * factor)
        theta = left_out(kernel, X, OF[family], family)
        return np.mean(deviance(family, OF[family], mean_of(family, theta)))

    assert model.loo_deviance_ == pytest.approx(value(1.0), rel=1e-8)
    assert model.loo_deviance_ < min(value(0.95), value(1.05))


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_slopes_of_the_criterion_are_those_of_differences(family, degree):
    rows = canonical_rows(PLANE, np.column_stack([TWO[family], WEIGHT]), WEIGHT, group=np.arange(60) // 4)
    kind = partial(Deviance, family=likelihood_families.FAMILIES[family])
    objective = objective_of(rows, "regularised", kind=kind, degree=degree, kernel=get_kernel("gaussian"))
    check_derivatives(objective, np.log([0.3, 0.5]))


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(FAMILIES), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
def test_units_of_x_and_the_order_of_rows_make_no_difference(family, origin, unit, seed):
    order = np.random.default_rng(seed).permutation(N)
    one = curve(family).fit(X, OF[family]).get_prediction(AT)
    other = curve(family, 0.15 * unit).fit(origin + unit * X[order], OF[family][order])
    at = other.get_prediction(origin + unit * AT)
    assert_allclose(at.mean, one.mean, rtol=1e-5)
    assert_allclose(at.link_standard_error, one.link_standard_error, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_weight_of_three_is_three_rows(family):
    weight = 1 + 2 * (np.arange(N) % 3 == 0)
    one = curve(family).fit(X, OF[family], sample_weight=weight)
    other = curve(family).fit(np.repeat(X, weight, axis=0), np.repeat(OF[family], weight))
    assert one.loo_deviance_ == pytest.approx(other.loo_deviance_, rel=1e-8)
    for name in ("lower", "upper"):
        assert_allclose(*(getattr(m.confidence_interval(AT), name) for m in (one, other)), rtol=1e-8)


def test_exposure_and_trials():
    exposure, c = 0.5 + DATA["g"], OF["poisson"]
    model = curve("poisson").fit(X, c, exposure=exposure)
    weighted = curve("poisson").fit(X, c / exposure, sample_weight=exposure)
    assert_allclose(model.predict(AT), weighted.predict(AT), rtol=1e-12)
    twice = curve("poisson").fit(X, c, exposure=2 * exposure)
    assert_allclose(2 * twice.predict(AT), model.predict(AT), rtol=1e-10)
    assert_allclose(model.quantile(AT, 0.5, exposure=3.0), stats.poisson.ppf(0.5, 3 * model.predict(AT)), atol=1)
    rows = np.repeat(np.arange(N), DATA["trials"])
    single = np.concatenate([np.arange(m) < k for k, m in zip(DATA["hits"], DATA["trials"], strict=True)])
    shares = curve("binomial").fit(X, DATA["hits"], trials=DATA["trials"])
    assert_allclose(shares.predict(AT), curve("binomial").fit(X[rows], 1 * single).predict(AT), rtol=1e-10)


def test_a_gamma_follows_the_unit_of_y():
    one, other = (curve("gamma", "loo").fit(X, OF["gamma"] * unit) for unit in (1.0, 1e-6))
    assert_allclose(other.bandwidth_, one.bandwidth_, rtol=1e-6)
    assert_allclose(other.predict(AT) * 1e6, one.predict(AT), rtol=1e-6)
    assert other.dispersion_ == pytest.approx(one.dispersion_, rel=1e-6)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning", "ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_stay_among_possible_means(family):
    far = np.linspace(-3, 4, 50)[:, None]
    model = curve(family, 0.1).fit(X, OF[family])
    for method in ("robust", "naive"):
        found = model.confidence_interval(far, method=method)
        assert np.all((found.lower >= 0) & (found.lower <= found.center) & (found.center <= found.upper))
        assert family != "binomial" or np.all(found.upper <= 1)
    naive = model.confidence_interval(AT, level=0.9, method="naive")
    half = 0.5 * (link_of(family, naive.upper) - link_of(family, naive.lower))
    assert_allclose(half, stats.norm.ppf(0.95) * model.get_prediction(AT).link_standard_error, rtol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_new_values_are_of_the_family(family):
    model = curve(family).fit(X, OF[family])
    low, middle, high = model.quantile(AT, [0.05, 0.5, 0.95]).T
    assert np.all((low <= middle) & (middle <= high))
    interval = model.prediction_interval(AT, level=0.9)
    assert np.all(interval.lower <= low + 1e-9)
    assert np.all(interval.upper >= high - 1e-9)
    if family != "gamma":
        assert np.all(interval.upper == interval.upper.round())
    inside = model.prediction_interval(X, level=0.9)
    assert np.mean((inside.lower <= OF[family]) & (OF[family] <= inside.upper)) > 0.85


@pytest.mark.parametrize(("family", "power"), [("poisson", 1), ("gamma", 2)])
def test_the_score_is_the_share_of_deviance(family, power):
    model = curve(family).fit(X, OF[family])
    assert model.score(X, OF[family]) == pytest.approx(d2_tweedie_score(OF[family], model.predict(X), power=power))


def chunks_of(x, values):
    return open_chunks([(x[i : i + 15], values[i : i + 15]) for i in range(0, len(x), 15)])


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_are_not_in_memory_have_the_answers_of_arrays(family, kernel, degree):
    """Gaussians with a log link by pools at moved queries, all else pair by pair; errors by the sample, here all."""
    one, other = (curve(family, 0.5, kernel, degree=degree) for _ in range(2))
    one.fit(PLANE, TWO[family])
    other.fit(chunks_of(PLANE, TWO[family]))
    at = np.vstack([PLANE[:5] + 0.01, [[2.0, 2.0]]])
    for ask in ("get_prediction", "confidence_interval", "prediction_interval"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first, second = (vars(getattr(model, ask)(at)) for model in (one, other))
        for name, numbers in first.items():
            if isinstance(numbers, np.ndarray):
                assert_allclose(second[name], numbers, rtol=1e-8, err_msg=f"{ask} {name}")
    assert other.dispersion_ == pytest.approx(one.dispersion_)


def test_files_and_dask_have_exposure_as_a_column(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    frame = pandas.DataFrame({"x": X[:, 0], "calls": OF["poisson"], "hours": 0.5 + DATA["g"]})
    frame.to_parquet(tmp_path / "calls.parquet")
    at = pandas.DataFrame(AT, columns=["x"])
    expected = curve("poisson").fit(X, OF["poisson"], exposure=0.5 + DATA["g"]).predict(AT)
    of_file = curve("poisson").fit(tmp_path / "calls.parquet", "calls", exposure="hours")
    assert_allclose(of_file.predict(at), expected)
    save_model(of_file, tmp_path / "model.skops")
    assert_allclose(load_model(tmp_path / "model.skops").predict(at), expected)
    dask = pytest.importorskip("dask.dataframe", reason="clusters need the extra 'dask'")
    on_dask = curve("poisson").fit(dask.from_pandas(frame, npartitions=3), "calls", exposure="hours")
    assert_allclose(on_dask.predict(at), expected)
    searched = curve("poisson", "loo").fit(chunks_of(X, OF["poisson"]))
    assert_allclose(searched.bandwidth_, curve("poisson", "loo").fit(X, OF["poisson"]).bandwidth_)
    with pytest.raises(TypeError, match="summary needs the rows themselves"):
        searched.summary()
    with pytest.raises(TypeError, match="so y must name one"):
        curve("poisson").fit(chunks_of(X, OF["poisson"]), exposure="hours")
    with pytest.raises(AttributeError, match="fit it to arrays"):
        searched.size_  # noqa: B018


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_slopes_of_little_weight_are_found_pair_by_pair():
    """Rounding of offsets from moved queries hides slopes in a column of two values far from each other."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=3000), rng.integers(0, 2, 3000)])
    y = rng.poisson(np.exp(np.sin(3 * x[:, 0])))
    at = np.column_stack([np.linspace(-2, 2, 1500), np.arange(1500) % 2])
    model = curve("poisson", 0.12).fit(x, y)
    found = model.get_prediction(at)
    assert not found.by_prior.any()
    few = model.get_prediction(at[:50])
    assert_allclose(found.mean[:50], few.mean, rtol=1e-8)
    assert_allclose(found.link_standard_error[:50], few.link_standard_error, rtol=1e-6)
    stored = curve("poisson", 0.12).fit(chunks_of(x[:300], y[:300])).predict(at[:40])
    assert_allclose(stored, curve("poisson", 0.12).fit(x[:300], y[:300]).predict(at[:40]), rtol=1e-8)


def test_a_direction_that_is_lost_on_the_way_has_no_maximum():
    x = np.array([[-0.63, 0.763], [0.53, -0.364], [-0.684, -0.063], [9.0, 9.0], [8.0, 9.0]])
    model = curve("binomial", 1.0, "epanechnikov").fit(x, [1, 5, 1, 1, 0], trials=[2, 5, 4, 1, 1])
    with pytest.warns(RankDeficiencyWarning, match="half an event"):
        found = model.get_prediction([[0.0, 0.0]])
    assert found.by_prior[0]
    assert abs(found.link[0]) < 5


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning", "ignore::kernpool.ExtrapolationWarning")
def test_columns_that_are_nearly_collinear_and_steep_amounts():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 200))
    y = 1.0 * (x + z + rng.logistic(size=200) > 0)
    near = [
        curve("binomial", 3.0).fit(np.column_stack([x, x + e * z, z]), y).predict([[1.0, 1.0 + e, 1.0]])[0]
        for e in (1e-3, 3e-5, 1.2e-5)
    ]
    assert_allclose(near, near[0], rtol=1e-4)
    plane = rng.normal(size=(150, 2))
    steep = curve("gamma", 20.0).fit(plane, np.exp(8 * plane[:, 0])).get_prediction([[-15.0, -15.0]])
    assert_allclose(steep.link, -120.0)


def test_trials_that_vary_more_than_binomial_ones_have_the_quantiles_of_arrays_in_chunks():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(6000, 1))
    values = np.column_stack([rng.binomial(10, rng.beta(3, 3, 6000)), np.full(6000, 10.0)])
    one = curve("binomial", 0.3).fit(x, values[:, 0], trials=values[:, 1])
    other = curve("binomial", 0.3).fit(open_chunks([(x, values)]))
    low, high = (model.quantile([[0.5]], [0.05, 0.95], trials=100.0)[0] for model in (one, other))
    assert_allclose(high, low, atol=2)


TWICE = np.concatenate([X, X + 1e-3])
REFUSED = {
    "counts below zero": (lambda: curve("poisson").fit(X, OF["poisson"] - 1.0), "negative"),
    "fractions without trials": (lambda: curve("binomial").fit(X, DATA["hits"] / DATA["trials"]), "trials"),
    "more hits than trials": (lambda: curve("binomial").fit(X, DATA["trials"] + 1, trials=DATA["trials"]), "trials"),
    "gamma with zero": (lambda: curve("gamma").fit(X, OF["poisson"]), "positive"),
    "exposure of zero": (lambda: curve("poisson").fit(X, OF["poisson"], exposure=np.zeros(N)), "exposure"),
    "exposure of yes or no": (lambda: curve("binomial").fit(X, OF["binomial"], exposure=np.ones(N)), "exposure"),
    "trials of counts": (lambda: curve("poisson").fit(X, OF["poisson"], trials=np.ones(N)), "trials"),
    "zeros alone": (lambda: curve("poisson").fit(X, np.zeros(N)), "no counts"),
    "one class": (lambda: LocalLogisticClassifier().fit(X, np.ones(N)), r"class, 1\.0,"),
    "another family": (lambda: curve("normal").fit(X, OF["gamma"]), "family must be"),
    "quadratics": (lambda: curve("poisson", degree=2).fit(X, OF["poisson"]), "degree must be"),
    "counts below zero in chunks": (lambda: curve("poisson").fit(chunks_of(X, OF["poisson"] - 1.0)), "negative"),
    "sizes of amounts in chunks": (lambda: curve("gamma").fit(chunks_of(X, np.ones((N, 2)))), "one output"),
    "zeros alone in chunks": (lambda: curve("poisson").fit(chunks_of(X, np.zeros(N))), "no counts"),
    "half a trial in chunks": (lambda: curve("binomial").fit(chunks_of(X, np.full((N, 2), 0.5))), "trials"),
    "three outputs in chunks": (lambda: curve("poisson").fit(chunks_of(X, np.ones((N, 3)))), "one output"),
    "two outputs": (lambda: curve("poisson").fit(X, np.column_stack([OF["poisson"]] * 2)), "one output"),
    "missing cells": (lambda: curve("poisson").fit(np.where(X > 0.9, np.nan, X), OF["poisson"]), "NaN"),
    "other lengths": (lambda: curve("poisson").fit(X, OF["poisson"], exposure=np.ones(3)), "exposure"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_fitted_is_refused(case):
    call, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        call()


THREE = np.array(["a", "b", "c"])[np.minimum(DATA["c"] // 2, 2)]


def of_class(y):
    """Probabilities with the penalty on slopes: a tenth of a row at the query."""
    kernel = np.exp(-0.5 * ((AT - X.T) / 0.15) ** 2)
    return mean_of("binomial", fits(kernel, AT, X, 1.0 * y, "binomial", ridge=0.1 * X.var())[0])


def test_two_classes_are_a_binomial_and_more_are_each_against_the_rest():
    share = of_class(OF["binomial"])
    model = LocalLogisticClassifier("gaussian", 0.15).fit(X, np.where(OF["binomial"], "yes", "no"))
    assert_allclose(model.predict_proba(AT)[:, 1], share, rtol=1e-8)
    assert_allclose(model.decision_function(AT), link_of("binomial", share), rtol=1e-8)
    np.testing.assert_array_equal(model.predict(AT), np.where(share > 0.5, "yes", "no"))
    found = model.probability_interval(AT)
    assert np.all((found.lower >= 0) & (found.upper <= 1) & (found.lower < found.upper))
    more = LocalLogisticClassifier("gaussian", 0.15).fit(X, THREE)
    each = np.column_stack([of_class(k == THREE) for k in "abc"])
    assert_allclose(more.predict_proba(AT), each / each.sum(axis=1, keepdims=True), rtol=1e-8)
    assert more.decision_function(AT).shape == (10, 3)
    assert_allclose(np.exp(more.predict_log_proba(AT)), more.predict_proba(AT))


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar"])
def test_separated_classes_have_probabilities_between_zero_and_one(kernel):
    y = (X[:, 0] > 0.5) * 1
    with pytest.warns(RankDeficiencyWarning, match=r"\d+ of"):
        found = LocalLogisticClassifier(kernel, 0.2).fit(X, y).predict_proba(AT)
    assert np.all((found > 0) & (found < 1))
    np.testing.assert_array_equal(found.argmax(axis=1), AT[:, 0] > 0.5)
    assert log_loss(y, LocalLogisticClassifier().fit(X, y).predict_proba(X)) < 0.2


def test_windows_without_events_have_small_means():
    counts = np.where(X[:, 0] < 0.5, 0.0, OF["poisson"])
    with pytest.warns(RankDeficiencyWarning, match=r"\d+ of"):
        found = curve("poisson", 0.1, "epanechnikov").fit(X, counts).predict([[0.2], [0.3]])
    assert np.all((found > 0) & (found < 0.5))


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_parameters_set_later_and_files_change_no_answer():
    frame = pandas.DataFrame({"x": X[:, 0], "kind": np.array(["u", "v"])[np.arange(N) % 2]})
    for model, y in ((curve("poisson", "loo"), OF["poisson"]), (LocalLogisticClassifier(), THREE)):
        model.fit(frame, y)
        answer = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        before = answer(frame[:5])
        model.set_params(bandwidth=3.0, degree=0)
        np.testing.assert_array_equal(answer(frame[:5]), before)
        restored = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(getattr(restored, answer.__name__)(frame[:5]), before)
