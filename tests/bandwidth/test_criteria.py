"""Criteria against hat matrices written out, and their slopes against finite differences."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, get_kernel, kernel_names
from kernpool.bandwidth import CRITERIA
from kernpool.bandwidth.search.fast_objectives import PairwiseObjective
from tests.support.searches import canonical_rows, check_derivatives, gradient_of, objective_of


def make_rows(n=60, d=2, outputs=1, weighted=False, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    y = np.sin(2 * X[:, :1]) + 0.3 * generator.normal(size=(n, outputs))
    return canonical_rows(X, y, generator.integers(1, 4, n).astype(float) if weighted else None)


def make_objective(rows, criterion, kernel="gaussian", degree=0, **options):
    return objective_of(rows, criterion, degree=degree, kernel=get_kernel(kernel), **options)


def from_hat_matrix(rows, criterion, bandwidth, degree, kernel):
    """The criterion by its definition, every row as often as its weight says, each left out in turn for loo."""
    times = rows.weight.astype(int)
    X, y = np.repeat(rows.X, times, axis=0), np.repeat(rows.value, times, axis=0)
    make = (NadarayaWatsonRegressor, LocalLinearRegressor)[degree]
    n = len(X)
    if criterion == "loo":
        errors = []
        for i in range(n):
            others = np.arange(n) != i
            model = make(kernel, bandwidth, empty="mean").fit(X[others], y[others])
            errors.append(y[i] - model.predict(X[i : i + 1])[0])
        return np.mean(np.sum(np.square(errors), axis=1))
    hat = make(kernel, bandwidth).fit(X, y).attention_weights(X)
    share = np.clip(2 * np.diagonal(hat) - 1, 0, 1) if degree else np.zeros(n)
    deleted = (1 - np.diagonal(hat)) ** -(3 * share**2 - 2 * share**3)
    counted, bound = deleted[:, None] * (y - hat @ y), 2 * np.std(y, axis=0) * n / (n - 1)
    step = (3 * share**2 - 2 * share**3)[:, None]
    counted = (1 - step) * counted + step * counted / np.sqrt(1 + (counted / bound) ** 2)
    squares, trace = np.mean(np.sum(counted**2, axis=1)), np.trace(hat)
    if criterion == "gcv":
        return squares / (1 - trace / n) ** 2
    return np.log(squares) + (1 + trace / n) / (1 - (trace + 2) / n)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace", "triangular"])
@pytest.mark.parametrize("criterion", ["loo", "aicc", "gcv"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_criteria_are_what_their_definitions_say(criterion, kernel, degree, weighted):
    rows = make_rows(n=30, outputs=2, weighted=weighted)
    bandwidth = np.array([2.5, 3.5])
    at = make_objective(rows, criterion, kernel, degree).evaluate(np.log(bandwidth))
    expected = from_hat_matrix(rows, criterion, bandwidth, degree, kernel)
    value = np.log(at.penalised) if CRITERIA[criterion].in_logs else at.penalised
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", [name for name in kernel_names() if name not in ("boxcar", "constant")])
@pytest.mark.parametrize("criterion", ["loo", "aicc", "gcv"])
def test_gradients_agree_with_finite_differences(criterion, kernel, degree):
    scale = 3.0 if get_kernel(kernel).is_compact else 1.0
    for weighted, name in ((False, f"product {kernel}"), (False, kernel), (True, kernel)):
        rows = make_rows(outputs=2, weighted=weighted)
        objective = make_objective(rows, criterion, name, degree)
        # Short steps, within which no row passes the edge of a window.
        check_derivatives(objective, np.log([0.7 * scale, 1.3 * scale]), tolerance=1e-5, step=1e-5)


@pytest.mark.parametrize("algorithm", ["reference", "brute", "sweep", "kd_tree"])
@pytest.mark.parametrize("degree", [0, 1])
def test_every_algorithm_gives_the_same_criterion_and_gradient(algorithm, degree):
    rows = make_rows(n=200, d=1 if algorithm == "sweep" else 2)
    theta = np.log(np.full(rows.X.shape[1], 0.4))
    for criterion in CRITERIA:
        one, other = (make_objective(rows, criterion, degree=degree, algorithm=a) for a in ("reference", algorithm))
        expected, found = one.evaluate(theta), other.evaluate(theta)
        # Planes around rows with few neighbours are ill-conditioned: traces of vectors of 256 bits differ by 1.4e-11.
        assert found.penalised == pytest.approx(expected.penalised, rel=(1e-11, 1e-10)[degree])
        np.testing.assert_allclose(
            gradient_of(other, found), gradient_of(one, expected), rtol=(1e-9, 1e-8)[degree], atol=1e-12
        )


def test_a_fit_that_leaves_no_degree_of_freedom_has_no_criterion():
    """Tiny bandwidths interpolate: the hat matrix is the identity, and a guarded criterion is infinite, not small."""
    rows = make_rows()
    for criterion in ("aicc", "gcv"):
        assert make_objective(rows, criterion).evaluate(np.log([1e-6, 1e-6])).penalised == np.inf


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["loo", "aicc", "gcv"])
@pytest.mark.parametrize("d", [1, 3])
def test_every_pair_once_has_the_slopes_of_the_engine(criterion, weighted, d):
    rows = make_rows(n=200, d=d, outputs=2, weighted=weighted)
    engine = make_objective(rows, criterion)
    pairwise = make_objective(rows, engine.options.criterion.name, kind=PairwiseObjective)
    for theta in np.log(np.ptp(rows.X, axis=0)) + np.random.default_rng(3).uniform(-2.0, 1.0, size=(5, d)):
        exact, quick = engine.evaluate(theta), pairwise.evaluate(theta)
        assert quick.problem is pairwise.problem  # not by the engine
        assert quick.penalised == pytest.approx(exact.penalised, rel=1e-12)
        expected = engine.jacobian(exact)
        np.testing.assert_allclose(pairwise.jacobian(quick), expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("far", [0.03, 0.4, 2.0])
def test_every_pair_once_of_a_row_far_from_the_rest(far, generator):
    """Beyond the reach of loops, and near its end: not the nearest row alone, for the next one weighs about as much."""
    x = np.concatenate([np.linspace(0, 1, 450), [1.0 + far]])
    y = np.sin(6 * x) + 0.3 * generator.normal(size=len(x))
    y[-1] += 30.0
    rows = canonical_rows(x[:, None], y[:, None], np.where(x > 1, 0.5, 2.0))
    engine = make_objective(rows, "loo")
    pairwise = make_objective(rows, engine.options.criterion.name, kind=PairwiseObjective)
    for u in (10.0, 34.0, 34.9, 35.1, 36.0, 37.0, 40.0, 100.0, 1000.0):
        theta = np.log([far / u])
        assert pairwise.evaluate(theta).penalised == pytest.approx(engine.evaluate(theta).penalised, rel=1e-11)


def test_every_pair_once_of_rows_that_are_alone():
    """Small bandwidths: the nearest other row, whichever side, or the mean of two that are equally near."""
    rows = canonical_rows(np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([[1.0], [2.0], [4.0], [8.0]]))
    engine = make_objective(rows, "loo")
    exact, quick = (
        engine.evaluate(np.log([1e-3])),
        make_objective(rows, "loo", kind=PairwiseObjective).evaluate(np.log([1e-3])),
    )
    assert quick.penalised == exact.penalised
    both = canonical_rows(np.column_stack([rows.X, rows.X]), rows.value)
    pairwise = make_objective(both, "loo", kind=PairwiseObjective)
    at = pairwise.evaluate(np.log([1e-3, 1e-3]))
    assert at.penalised == exact.penalised
    assert pairwise.jacobian(at) == pytest.approx(0.0, abs=1e-12)


def noise_alone(n, seed):
    generator = np.random.default_rng([n, seed])
    return generator.uniform(size=(n, 1)), generator.normal(size=n)


@pytest.mark.parametrize("kernel", ["epanechnikov", pytest.param("boxcar", marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("criterion", ["regularised", pytest.param("gcv", marks=pytest.mark.slow)])
def test_windows_are_not_empty_where_the_input_explains_nothing(make, kernel, criterion):
    """Without a cost two thirds of these fits leave more than a twentieth of the windows empty."""
    inside = np.linspace(0.05, 0.95, 181)[:, None]
    for n in (30, 90):
        for seed in range(4):
            model = make(kernel, criterion).fit(*noise_alone(n, seed))
            assert np.mean(~model.get_prediction(inside).has_support) <= 0.05


@pytest.mark.parametrize("criterion", ["loo", "regularised", "gcv", "aicc"])
@pytest.mark.parametrize("weight", [None, "thirds"])
def test_each_empty_window_costs_a_degree_of_freedom(criterion, weight):
    """A pair of rows and five rows by themselves: the factor is that of generalised cross-validation."""
    X, y = np.array([0.0, 0.4, 10.0, 20.0, 30.0, 40.0, 50.0])[:, None], np.arange(7.0)[:, None] ** 2
    rows = canonical_rows(X, y, None if weight is None else np.full(7, 1 / 3))
    objective = make_objective(rows, criterion, "epanechnikov")
    at = objective.evaluate(np.log([1.0]))
    penalty = objective.options.criterion.log_penalty
    within = penalty(float(rows.weight @ at.hat), rows.total)[0] if penalty else 0.0
    assert objective.best.empty_windows == (5 if penalty is None else 0)
    if np.isfinite(at.penalised):
        np.testing.assert_allclose(at.penalised, np.sum(at.unpenalised**2) * np.exp(within) * (2 / 7) ** -2, rtol=1e-12)
        np.testing.assert_allclose(np.sum(at.residual**2), at.penalised, rtol=1e-12)
    wide = objective.evaluate(np.log([60.0]))
    within = penalty(float(rows.weight @ wide.hat), rows.total)[0] if penalty else 0.0
    if np.isfinite(wide.penalised):
        np.testing.assert_allclose(wide.penalised, np.sum(wide.unpenalised**2) * np.exp(within), rtol=1e-12)


def test_copies_of_a_row_are_no_empty_window():
    rows = canonical_rows(np.array([[0.0], [0.0], [9.0], [9.0]]), np.ones((4, 1)) * [[1.0], [1.0], [3.0], [3.0]])
    for criterion in ("loo", "gcv"):
        at = make_objective(rows, criterion, "boxcar").evaluate(np.log([1.0]))
        assert at.penalised == pytest.approx(np.sum(at.unpenalised**2), abs=1e-12)


def test_every_pair_once_with_tiny_weights(generator):
    x, y = generator.uniform(size=(410, 1)), generator.normal(size=(410, 1))
    rows = canonical_rows(x, y, np.full(410, 1e-285))
    engine = make_objective(rows, "loo")
    theta = np.log([0.04])
    quick = make_objective(rows, "loo", kind=PairwiseObjective).evaluate(theta)
    assert quick.penalised == pytest.approx(engine.evaluate(theta).penalised, rel=1e-11)
