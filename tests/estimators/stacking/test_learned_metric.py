"""The learned metric of the global member, and the columns that it is of."""

import numpy as np
import pytest

from kernpool.data.encoding import Encoding
from kernpool.estimators.stacking import kernel_ridge
from kernpool.estimators.stacking.kernel_ridge import (
    StandardColumns,
    fit_metric_and_ridge,
    fit_table,
    metric_of,
    metric_optimism,
)


def line(generator, n=120, d=6):
    """Rows whose output depends on one direction of many."""
    columns = generator.normal(size=(n, d))
    direction = np.array([1.0, -1.0, *np.zeros(d - 2)]) / np.sqrt(2.0)
    return columns, np.sin(2.0 * columns @ direction)[:, None] + 0.1 * generator.normal(size=(n, 1)), direction


def test_the_metric_is_the_root_of_the_average_gradient_outer_product(generator):
    columns, value, _ = line(generator)
    value = np.hstack([value, -3.0 * value, np.cos(columns[:, :1])])
    weight = generator.integers(1, 3, len(columns)).astype(float)
    fit = fit_metric_and_ridge(columns, value, weight, rounds=0)
    transform = metric_of(fit, columns, value, weight)
    gradients = fit.gradients(columns) / kernel_ridge.spread_of(value, weight)
    outer = np.einsum("i,iac,ibc->ab", weight, gradients, gradients)
    root = transform @ transform.T
    np.testing.assert_allclose(root @ root, outer * np.trace(root @ root) / np.trace(outer), atol=1e-10)
    assert np.trace(root) == pytest.approx(1.0)


def test_it_finds_the_direction_that_matters(generator):
    columns, value, direction = line(generator)
    plain = fit_metric_and_ridge(columns, value, np.ones(120), rounds=0)
    learned = fit_metric_and_ridge(columns, value, np.ones(120))
    assert learned.error < 0.5 * plain.error
    assert np.trace(learned.metric) == pytest.approx(1.0)
    assert direction @ learned.metric @ direction > 0.7


def test_a_flat_fit_keeps_the_metric(generator):
    columns = generator.normal(size=(20, 3))
    found = fit_metric_and_ridge(columns, np.ones((20, 1)), np.ones(20))
    np.testing.assert_allclose(found.metric, np.eye(3) / 3.0)


def test_more_columns_than_rows(generator):
    columns = generator.normal(size=(8, 30))
    found = fit_metric_and_ridge(columns, columns[:, :1], np.ones(8))
    assert np.isfinite(found.predict(columns + 0.1)).all()
    assert found.transform.shape[1] <= 30


def test_columns_are_standardised_with_weights_as_copies(generator):
    key, code, weight = generator.normal(5.0, 3.0, size=(9, 2)), generator.integers(0, 3, (9, 1)), np.arange(1.0, 10.0)
    key[:, 1] = 0.1
    encoding = Encoding(None, ("numeric", "numeric", "unordered"), (("a", "b", "c"),), (None,))
    columns = StandardColumns.of(key, weight, encoding)
    copied = np.repeat(key, weight.astype(int), axis=0)
    expected = np.column_stack(
        [(key[:, 0] - copied[:, 0].mean()) / copied[:, 0].std(), np.zeros(9), np.eye(3)[code[:, 0]]]
    )
    np.testing.assert_allclose(columns.matrix(key, code), expected, atol=1e-12)
    assert columns.matrix(np.array([[0.0, 99.0]]), np.array([[-1]]))[0, 1:].tolist() == [0.0, 0.0, 0.0, 0.0]


def test_many_rows_have_landmarks(monkeypatch, generator):
    columns, value, _ = line(generator, n=400)
    whole = fit_table(columns, value, np.ones(400), generator=np.random.default_rng(0))
    monkeypatch.setattr(kernel_ridge, "MOST_LANDMARKS", 150)
    monkeypatch.setattr(kernel_ridge, "SEARCH_ROWS", 100)
    group = np.arange(400) // 4
    for clusters in (None, group):
        found = fit_table(columns, value, np.ones(400), clusters, generator=np.random.default_rng(0))
        assert found.landmarks.shape[0] == 150
        assert whole.error < found.error < 4 * whole.error


def fit_of(columns, value, group=None, **options):
    """A fit whose metric is learned from all of its rows."""
    generator = np.random.default_rng(0)
    return fit_table(columns, value, np.ones(len(columns)), group, generator=generator, **options)


def test_leave_one_out_errors_are_those_of_new_rows(generator):
    """In many columns a learned metric fits noise: without the optimism errors are too small by half."""
    columns, new = generator.normal(size=(80, 15)), generator.normal(size=(1000, 15))
    value = columns[:, :1] + generator.normal(size=(80, 1))
    fit = fit_of(columns, value)
    error = 1.0 + np.mean((new[:, :1] - fit.predict(new)) ** 2)
    assert np.mean((value - fit.left_out) ** 2) == pytest.approx(error, rel=0.25)
    assert fit.optimism[0] > 1.1
    np.testing.assert_allclose(fit.error * value.var() * fit.optimism**2, np.mean((value - fit.left_out) ** 2))


def test_the_optimism_is_held_out_over_leave_one_out_error(generator):
    columns, value, _ = line(generator, n=40)
    value = np.hstack([value, generator.normal(size=(40, 1))])
    group = np.arange(40) % 4
    found = fit_metric_and_ridge(columns, value, np.ones(40), group)
    length = found.kernel.length / kernel_ridge.distance_of(columns @ found.transform, np.ones(40))
    met = promised = 0.0
    for g in range(4):
        out = group == g
        fit = fit_metric_and_ridge(
            columns[~out], value[~out], np.ones(30), group[~out], lengths=(length,)
        )  # fmt: skip
        met = met + np.sum((value[out] - fit.predict(columns[out])) ** 2, axis=0)
        promised = promised + 10 * np.mean((value[~out] - fit.left_out) ** 2, axis=0)
    optimism = metric_optimism(found, columns, value, np.ones(40), group)
    np.testing.assert_allclose(optimism, np.sqrt(np.maximum(met / promised, 1.0)), rtol=1e-6)
    assert optimism.max() > 1.0


def test_without_a_learned_metric_there_is_no_optimism(monkeypatch, generator):
    columns, value, _ = line(generator, n=40)
    assert fit_of(columns, value, learn_metric=False).optimism == 1.0
    assert fit_of(columns[:, :1], value).optimism == 1.0
    assert fit_of(columns[:3], value[:3]).optimism == 1.0
    every = fit_of(columns, value).optimism
    monkeypatch.setattr(kernel_ridge, "SEARCH_ROWS", 30)
    some = fit_of(columns, value)
    monkeypatch.setattr(kernel_ridge, "metric_optimism", lambda *_: np.array([2.0]))
    np.testing.assert_allclose(fit_of(columns, value).optimism ** 2, 1.0 + 3.0 * 30 / 40)
    assert every > 1.0
    assert some.optimism > 1.0
