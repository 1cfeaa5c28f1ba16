"""How many evaluations searches make, and how far above a minimum they stop."""

import weakref

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernpool import get_kernel
from kernpool.bandwidth.search import descent, one_factor, per_column, search
from kernpool.bandwidth.search.descent import GaussNewton, descend
from kernpool.bandwidth.search.objective import Objective
from kernpool.core import Categories
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import canonical_rows, objective_of, search_bandwidth
from tests.support.thinning import slow, thinned

GAUSSIAN = get_kernel("gaussian")


def a_line(seed, n=2500):
    generator = np.random.default_rng(seed)
    x = generator.random(n) if seed % 2 else generator.beta(0.7, 1.5, n)
    y = np.sin(generator.uniform(2, 30) * x) + generator.uniform(0.1, 1.0) * generator.normal(size=n)
    return x[:, None], y[:, None]


@pytest.mark.covering
@pytest.mark.parametrize(("degree", "seed"), thinned([0, 1], range(4)))
def test_one_factor_on_many_rows_is_within_the_promise(degree, seed):
    """1e-7 of the criterion above the minimum nearby, which a library finds without derivatives."""
    X, y = a_line(seed)
    found = search_bandwidth(X, y, kernel=GAUSSIAN, degree=degree)
    assert found.rows > search.MOST_ROWS_FOR_GRID
    assert len(found.tried) <= 8
    objective = objective_of(canonical_rows(X, y), "loo", degree=degree, kernel=GAUSSIAN)
    place = float(np.log(found.bandwidth[0]))
    around = {"bounds": (place - 0.05, place + 0.05), "method": "bounded", "options": {"xatol": 1e-8}}
    best = minimize_scalar(lambda log: objective.evaluate(np.array([log])).penalised, **around)
    assert found.value <= best.fun * (1 + 1e-7)


class Curve:
    """A function in place of an objective, and how often it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def evaluate(self, theta):
        self.asked.append(float(theta[0]))
        return self

    @property
    def penalised(self):
        return self.function(self.asked[-1])


@pytest.mark.parametrize("off", [-0.9, -0.2, -0.02, 0.0, 1e-9, 0.01, 0.1, 0.35, 2.0])
@pytest.mark.parametrize("share", [1e-4, 1e-1, 10.0])
def test_squared_bias_and_variance_are_minimised_in_few_evaluations(off, share):
    """1 + share (h^4 / 4 + 1 / h), which is least at h = 1."""
    curve = Curve(lambda log: 1.0 + share * (np.exp(4 * log) / 4 + np.exp(-log)))
    one_factor.minimise_near(curve, np.ones(1), np.exp(off))
    lowest = min(map(curve.function, curve.asked))
    assert lowest <= curve.function(0.0) * (1 + 1e-7)
    assert len(curve.asked) <= 8 + abs(off) / one_factor.STRIDE


@pytest.mark.parametrize("kink", [-0.031, 0.0, 0.117])
def test_kinks_and_steps_end(kink):
    for function in (lambda log: 1 + abs(log - kink), lambda log: 1 + (log > kink), lambda _: 2.0):
        curve = Curve(function)
        one_factor.minimise_near(curve, np.ones(1), 1.0)
        assert len(curve.asked) <= one_factor.MOST_EVALUATIONS
        assert min(map(function, curve.asked)) <= function(kink) + 1e-3
        assert len(set(curve.asked)) == len(curve.asked)


def wide(columns, seed=0, n=120):
    """A wave, a product and a line among many columns of noise."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, size=(n, columns))
    y = np.sin(4 * X[:, 3]) + 2 * X[:, 5] * X[:, 6] + X[:, 8] + 0.2 * generator.normal(size=n)
    return X, y[:, None]


def counted(monkeypatch):
    """Count Jacobians, which searches do not report."""
    made, jacobian = [], Objective.jacobian
    monkeypatch.setattr(Objective, "jacobian", lambda self, at: made.append(1) or jacobian(self, at))
    return made


@pytest.mark.parametrize("columns", [12, 36])
def test_the_number_of_evaluations_hardly_grows_with_the_columns(columns, monkeypatch):
    X, y = wide(columns)
    jacobians = counted(monkeypatch)
    found = search_bandwidth(X, y, kernel=GAUSSIAN, algorithm="brute")
    assert found.evaluations <= 250
    assert len(jacobians) <= 120
    assert found.value < 0.25  # of a variance of 1.4


@pytest.mark.parametrize("levels", [False, *slow(True)])
def test_as_low_as_by_trying_every_column(levels, monkeypatch):
    X, y = wide(9 if levels else 12, seed=1)
    options = {"kernel": GAUSSIAN}
    if levels:
        kernel, level = get_categorical_kernel("aitchison_aitken"), np.random.default_rng(0).integers(0, 3, (len(X), 2))
        y, options["categories"], options["code"] = y + level[:, :1], Categories((kernel, kernel), (3, 3)), level
    found = search_bandwidth(X, y, **options)
    monkeypatch.setattr(per_column, "MOST_COLUMNS", 100)
    thorough = search_bandwidth(X, y, **options)
    assert found.evaluations < 0.8 * thorough.evaluations
    assert found.value <= thorough.value * (1 + (0.005 if levels else 1e-5))


def test_what_a_column_is_missed_for():
    """The linear model knows the columns of noise of a fit with one common bandwidth."""
    X, y = wide(12)
    objective = objective_of(canonical_rows(X, y), "loo", kernel=GAUSSIAN)
    at = objective.evaluate(np.full(12, np.log(0.8)))
    gain = descent.gain_without(objective, at, objective.jacobian(at))
    without = [objective.evaluate(np.where(np.arange(12) == a, objective.box[1], at.theta)) for a in range(12)]
    true = [at.penalised - one.penalised for one in without]
    assert np.corrcoef(gain, true)[0, 1] > 0.7
    assert set(np.argsort(gain)[:2]) <= {3, 5, 6, 8}
    flat = objective.evaluate(np.where(np.arange(12) == 4, objective.box[1], at.theta))
    assert descent.gain_without(objective, flat, objective.jacobian(flat))[4] == -np.inf
    lines = per_column.promising(objective, flat)
    assert len(lines) == per_column.LINES
    assert 4 in lines
    assert np.all(np.diff(lines) > 0)


def test_enough_is_not_confirmed():
    """The descent makes the same steps, and no more than are worth it."""
    generator = np.random.default_rng(2)
    X = generator.uniform(-1, 1, size=(200, 3))
    y = np.sin(3 * X[:, :1]) + X[:, 1:2] * X[:, 2:] + 0.3 * generator.normal(size=(200, 1))
    tried = {}
    for enough in (0.0, 1e-3):
        objective = objective_of(canonical_rows(X, y), "loo", kernel=GAUSSIAN)
        start = objective.evaluate(np.log([0.4, 0.4, 0.4]))
        end = descend(objective, GaussNewton(start), 1e-12, max_steps=50, enough=enough)
        tried[enough] = [one.penalised for one in objective.tried]
        assert end.reason == "converged"
        assert end.end.penalised == min(tried[enough])
    few, many = tried[1e-3], tried[0.0]
    assert 2 < len(few) < len(many)
    assert few == many[: len(few)]
    assert few[-1] <= many[-1] * (1 + 1e-3)


@pytest.mark.parametrize("degree", [0, *slow(1)])
def test_on_all_rows_the_criterion_is_within_a_ten_thousandth(degree, monkeypatch):
    X, y = wide(9, n=1000)
    X = X[:, [3, 5, 6, 8]]
    monkeypatch.setattr(search, "MOST_ROWS_FOR_STARTS", 250)
    monkeypatch.setattr(search, "MOST_ROWS_FOR_GRID", 250)
    found = search_bandwidth(X, y, kernel=GAUSSIAN, degree=degree)
    monkeypatch.setattr(per_column, "ENOUGH_ON_ALL", 0.0)
    monkeypatch.setattr(per_column, "TOLERANCE_ON_ALL", 1e-11)
    further = search_bandwidth(X, y, kernel=GAUSSIAN, degree=degree)
    assert found.value <= further.value * (1 + 1e-4)
    assert len(found.tried) < len(further.tried)


def test_few_evaluations_are_held_at_a_time(monkeypatch):
    """One of planes in d columns has n d^2 / 2 numbers; a search that kept its starts held dozens of them."""
    held, most = [], [0]
    judge = Objective.judge

    def counted(self, *arguments):
        at = judge(self, *arguments)
        held[:] = [one for one in held if one() is not None] + [weakref.ref(at)]
        most[0] = max(most[0], len(held))
        return at

    monkeypatch.setattr(Objective, "judge", counted)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 10))
    y = np.sin(X[:, :1]) + X[:, 1:2] + 0.3 * generator.normal(size=(60, 1))
    found = search_bandwidth(X, y, kernel=GAUSSIAN, degree=1, criterion="regularised")
    assert found.evaluations > 100
    assert most[0] <= 12
