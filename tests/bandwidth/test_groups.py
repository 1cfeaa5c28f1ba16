"""Searches that leave out whole groups: the criterion against dense tables, its slopes, its minimum, and its laws."""

import numpy as np
import pytest

from kernpool import get_kernel
from kernpool.bandwidth.criteria import prior_of_others, prior_share
from kernpool.bandwidth.search import search
from kernpool.core import Categories, Exclusion
from kernpool.kernels import get_categorical_kernel
from tests.support.dense_groups import left_out, mean_of_others
from tests.support.searches import canonical_rows, check_derivatives, objective_of, search_bandwidth, search_log_loss

GAUSSIAN = get_kernel("gaussian")


def make_table(n=72, d=2, groups=8, *, seed=0, shock=0.5, outputs=2, width=0.2):
    """Clusters close together in x, each with a shock of its own that all of its rows share."""
    generator = np.random.default_rng(seed)
    group = np.arange(n) % groups
    middle = generator.uniform(-1, 1, size=(groups, d))
    X = middle[group] + width * generator.normal(size=(n, d))
    curve = np.sin(2 * X[:, :1]) + np.arange(outputs) * X[:, -1:]
    noise = shock * generator.normal(size=(groups, outputs))[group] + 0.2 * generator.normal(size=(n, outputs))
    return X, curve + noise, group


def make_objective(X, y, group, weight=None, *, kernel="gaussian", degree=0, **options):
    rows = canonical_rows(X, y, weight, options.pop("code", None), group)
    return objective_of(rows, "loo", degree=degree, kernel=get_kernel(kernel), **options)


def frequencies(n, seed=1):
    return np.random.default_rng(seed).integers(1, 4, n).astype(float)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_criterion_is_what_the_definition_says(kernel, degree, weighted):
    X, y, group = make_table()
    weight, h = frequencies(len(X)) if weighted else np.ones(len(X)), np.array([1.1, 1.6])
    h = h * (3.0 if kernel == "epanechnikov" else 1.0)
    at = make_objective(X, y, group, weight, kernel=kernel, degree=degree).evaluate(np.log(h))
    predicted = left_out(X, y, group, weight=weight, h=h, kernel=kernel, degree=degree)
    expected = weight @ np.sum((y - predicted) ** 2, axis=1) / weight.sum()
    assert at.penalised == pytest.approx(expected, rel=1e-12)


def test_rows_without_other_groups_in_reach_get_their_mean():
    X, y, group = make_table()
    weight = frequencies(len(X))
    X[group == 3] += 90.0
    objective = make_objective(X, y, group, weight, kernel="epanechnikov")
    at = objective.evaluate(np.log([3.0, 3.0]))
    assert objective.best.empty_windows == np.count_nonzero(group == 3)
    far = X[:, 0] > 45.0
    fits = left_out(X[~far], y[~far], group[~far], weight=weight[~far], h=3.0, kernel="epanechnikov", degree=0)
    squared = np.empty(len(X))
    squared[far] = np.sum((y - mean_of_others(y, group, weight))[far] ** 2, axis=1)
    squared[~far] = np.sum((y[~far] - fits) ** 2, axis=1)
    error, occupied = weight @ squared / weight.sum(), weight[~far].sum() / weight.sum()
    assert at.penalised == pytest.approx(error / occupied**2, rel=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "biweight"])
def test_gradients_agree_with_differences(kernel, degree):
    X, y, group = make_table()
    objective = make_objective(X, y, group, frequencies(len(X)), kernel=kernel, degree=degree, ridge=0.3 * degree)
    check_derivatives(objective, np.log([1.3, 1.9]) + (1.0 if kernel == "biweight" else 0.0))
    objective = make_objective(X, y, group, kernel=kernel, degree=degree, **levels(len(X)))
    check_derivatives(objective, np.array([1.0, 1.2, 0.25]))


def levels(n):
    kernel = get_categorical_kernel("aitchison_aitken")
    code = np.random.default_rng(3).integers(0, 3, (n, 1))
    return {"code": code, "categories": Categories((kernel,), (3,))}


def test_levels_are_searched_with_the_bandwidths():
    X, y, group = make_table(outputs=1)
    options = levels(len(X))
    y = y + options["code"]
    found = search_bandwidth(X, y, group=group, kernel=GAUSSIAN, **options)
    at = make_objective(X, y, group, **options).evaluate(np.append(np.log(found.bandwidth), found.smoothing))
    assert at.penalised == pytest.approx(found.value, rel=1e-12)
    assert found.exclusion.units.number(0) == 8
    assert found.way == "by the engine: some rows are left out together"
    assert found.smoothing[0] < 0.3  # levels differ


def test_a_weight_of_three_is_three_rows_of_the_group():
    X, y, group = make_table(outputs=1, n=40)
    weight = frequencies(len(X))
    times = weight.astype(int)
    one = search_bandwidth(X, y, weight, group=group, kernel=GAUSSIAN)
    other = search_bandwidth(
        *(np.repeat(a, times, axis=0) for a in (X, y)), group=np.repeat(group, times), kernel=GAUSSIAN
    )
    np.testing.assert_array_equal(one.bandwidth, other.bandwidth)
    assert one.value == other.value


@pytest.mark.parametrize("d", [1, 2])
def test_starts_on_drawn_rows_know_the_groups(monkeypatch, d):
    monkeypatch.setattr(search, "MOST_ROWS_FOR_GRID", 40)
    monkeypatch.setattr(search, "MOST_ROWS_FOR_STARTS", 40)
    X, y, group = make_table(n=160, d=d, groups=10, outputs=1)
    found = search_bandwidth(X, y, group=group, kernel=GAUSSIAN)
    at = make_objective(X, y, group).evaluate(np.log(found.bandwidth))
    assert at.penalised == pytest.approx(found.value, rel=1e-12)


def test_rows_that_are_drawn_are_of_two_groups_at_least():
    group = np.r_[np.zeros(99, dtype=int), 1]
    rows = canonical_rows(np.arange(100.0)[:, None], np.zeros((100, 1)), group=group)
    for seed in range(20):
        drawn = rows.draw(5, np.random.RandomState(seed))
        assert len(np.unique(drawn.X)) == 5
        assert drawn.exclusion.units.number(0) == 2


def test_the_log_loss_leaves_groups_out():
    X, _, group = make_table(n=80, groups=10)
    generator = np.random.default_rng(5)
    weight = generator.integers(1, 4, len(X)).astype(float)
    label = np.eye(3)[np.digitize(X[:, 0] + 0.4 * generator.normal(size=10)[group], [-0.4, 0.4])]
    found = search_log_loss(X, label, weight, group=group, kernel=GAUSSIAN)
    pooled = np.sum(label * left_out(X, label, group, weight=weight, h=found.bandwidth, degree=0), axis=1)
    loss = prior_share(pooled, prior_of_others(label, weight, Exclusion(group)), weight).log_loss
    relevance = found.spread / found.bandwidth
    assert found.value == pytest.approx(loss + relevance.sum() / weight.sum(), rel=1e-9)
    assert found.exclusion.units.number(0) == 10


def test_priors_of_the_other_groups():
    label = np.eye(3)[[0, 1, 0, 1, 1, 2]]
    weight, group = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0]), np.array([0, 0, 1, 1, 2, 2])
    others = (weight * (group[:, None] != group)) @ label
    expected = np.sum(label * others, axis=1) / others.sum(axis=1)
    expected[5] = 2.0 / 10.0  # no other group has the class
    np.testing.assert_allclose(prior_of_others(label, weight, Exclusion(group)), expected, rtol=1e-14)


def test_equal_rows_of_two_groups_stay_two():
    X, y, group = np.array([[1.0], [1.0], [1.0], [2.0]]), np.zeros((4, 1)), np.array([0, 1, 0, 1])
    rows = canonical_rows(X, y, group=group)
    assert rows.units.code.tolist() == [0, 1, 1]
    assert rows.weight.tolist() == [2.0, 1.0, 1.0]
