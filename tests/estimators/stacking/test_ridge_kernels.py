"""Kernels that adapt to the fit, their optimism, and the columns that they are of."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool.bandwidth import canonical_rows
from kernpool.data.encoding import Encoding
from kernpool.estimators.stacking import kernel_ridge
from kernpool.estimators.stacking.kernel_ridge import adapt_kernel, fit_kernel_ridge, fit_table, optimism_of
from kernpool.estimators.stacking.ridge_kernels import AnovaKernel, ColumnKernel, LaplaceKernel
from kernpool.estimators.stacking.standard_columns import StandardColumns, spread_of
from tests.support.problems import rows_of


def line(generator, n=120, d=6):
    """Rows whose output depends on one direction of many."""
    columns = generator.normal(size=(n, d))
    direction = np.array([1.0, -1.0, *np.zeros(d - 2)]) / np.sqrt(2.0)
    return columns, np.sin(2.0 * columns @ direction)[:, None] + 0.1 * generator.normal(size=(n, 1)), direction


def laplace(columns):
    return LaplaceKernel.of(columns, np.ones(len(columns)))


def fit_of(start, rows):
    return fit_table(start, rows, np.random.default_rng(0))


def anova(columns):
    d = columns.shape[1]
    return AnovaKernel(tuple(ColumnKernel(slice(j, j + 1), None, None) for j in range(d)), np.ones(d))


def adapt(start, rows):
    return adapt_kernel(start, rows, start.SETTINGS)


def plain_fit(kernel, rows):
    return fit_kernel_ridge([replace(kernel, setting=setting) for setting in kernel.SETTINGS], rows)


def test_the_metric_is_the_root_of_the_average_gradient_outer_product(generator):
    columns, value, _ = line(generator)
    value = np.hstack([value, -3.0 * value, np.cos(columns[:, :1])])
    weight = generator.integers(1, 3, len(columns)).astype(float)
    fit = plain_fit(laplace(columns), rows_of(columns, value, weight))
    coefficients = fit.coefficients / spread_of(value, weight)
    root = fit.kernel.adapted(columns, coefficients, columns, weight).metric
    gradients = fit.kernel.gradients(columns, coefficients, columns)
    outer = np.einsum("i,iac,ibc->ab", weight, gradients, gradients)
    np.testing.assert_allclose(root @ root, outer * np.trace(root @ root) / np.trace(outer), atol=1e-10)


def test_it_finds_the_direction_that_matters(generator):
    columns, value, direction = line(generator)
    start, rows = laplace(columns), rows_of(columns, value)
    learned = adapt(start, rows)
    assert learned.error < 0.5 * plain_fit(start, rows).error
    metric = learned.kernel.metric
    assert direction @ metric @ direction > 0.6 * np.trace(metric)


def test_shares_are_standard_deviations_of_terms(generator):
    """And columns that say nothing have next to none."""
    columns, weight = generator.normal(size=(200, 5)), generator.integers(1, 3, 200).astype(float)
    value = np.sin(2.0 * columns[:, :1]) + columns[:, 1:2] ** 2 + 0.1 * generator.normal(size=(200, 1))
    rows = rows_of(columns, value, weight)
    fit = plain_fit(anova(columns), rows)
    some = fit.spectrum.landmarks
    fitted = [term.at(columns, some) @ fit.coefficients for term in fit.kernel.terms]
    size = np.array([np.sqrt(np.cov(each[:, 0], fweights=weight.astype(int), ddof=0)) for each in fitted])
    adapted = fit.kernel.adapted(some, fit.coefficients, columns, weight)
    np.testing.assert_allclose(adapted.share, size / size.max(), rtol=1e-9)
    assert adapt(anova(columns), rows).kernel.share[2:].max() < 0.1


def test_a_flat_fit_keeps_the_kernel(generator):
    columns = generator.normal(size=(20, 3))
    rows = rows_of(columns, np.ones((20, 1)))
    for start in (laplace(columns), anova(columns)):
        assert vars(adapt(start, rows).kernel) == vars(replace(start, setting=start.SETTINGS[0]))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_terms_are_centred_for_standard_normal_rows(d, generator):
    term, rows = ColumnKernel(slice(0, d), None, None), generator.normal(size=(20_000, d))
    found = term.at(rows[:3], rows)
    np.testing.assert_allclose(found.mean(axis=1), 0.0, atol=0.03)
    assert np.mean([term.at(row[None], row[None]) for row in rows]) == pytest.approx(1.0, abs=0.03)


def test_categories_are_centred_at_the_rows(generator):
    code = generator.integers(0, 3, 50)
    rows = np.eye(3)[code]
    kernel = ColumnKernel(slice(0, 3), rows.mean(axis=0), None).at(rows, rows)
    np.testing.assert_allclose(kernel.mean(axis=0), 0.0, atol=1e-12)
    assert np.diagonal(kernel).mean() == pytest.approx(1.0)
    assert np.ptp(kernel[code[:, None] == code]) > 0  # rare levels count more
    assert ColumnKernel(slice(0, 1), np.ones(1), None).at(np.ones((2, 1)), np.ones((2, 1))).tolist() == [[0.0, 0.0]] * 2


def test_skewed_columns_are_normal_scores(generator):
    """So the unit and any increasing map of a skewed column change nothing."""
    key = np.exp(2.0 * generator.normal(size=(80, 1)))
    encoding = Encoding(None, ("numeric",), (), ())
    found = []
    for each in (key, key**1.5):
        columns = StandardColumns.of(each, np.ones(80), encoding)
        matrix = columns.matrix(each, None)
        (term,) = AnovaKernel.of(columns, matrix, np.ones(80)).terms
        assert term.scores is not None
        found.append(term.at(matrix, matrix))
    np.testing.assert_allclose(*found, atol=1e-12)


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


@pytest.mark.parametrize("start_of", [laplace, anova])
def test_many_rows_have_landmarks(start_of, monkeypatch, generator):
    columns, value, _ = line(generator, n=400)
    start = start_of(columns)
    whole = fit_of(start, rows_of(columns, value))
    monkeypatch.setattr(type(start), "MOST_LANDMARKS", 150)
    monkeypatch.setattr(kernel_ridge, "SEARCH_ROWS", 100)
    monkeypatch.setattr(kernel_ridge, "LANDMARKS_OF_ROUNDS", 50)
    for group in (None, np.arange(400) // 4):
        found = fit_of(start, rows_of(columns, value, group=group))
        assert found.spectrum.landmarks.shape[0] <= 150
        assert 0.9 * whole.error < found.error < 4 * whole.error


@pytest.mark.parametrize("start_of", [laplace, anova])
def test_leave_one_out_errors_are_those_of_new_rows(start_of, generator):
    """In many columns a kernel that adapts fits noise: without the optimism errors are too small."""
    columns, new = generator.normal(size=(80, 15)), generator.normal(size=(1000, 15))
    value = columns[:, :1] + generator.normal(size=(80, 1))
    start = start_of(columns)
    fit = fit_of(start, rows_of(columns, value))
    error = 1.0 + np.mean((new[:, :1] - fit.predict(new)) ** 2)
    assert np.mean((value - fit.left_out) ** 2) == pytest.approx(error, rel=0.25)
    assert fit.optimism[0] > 1.05
    np.testing.assert_allclose(fit.error * value.var() * fit.optimism**2, np.mean((value - fit.left_out) ** 2))


def test_the_optimism_is_held_out_over_leave_one_out_error(generator):
    columns, value, _ = line(generator, n=40)
    value = np.hstack([value, generator.normal(size=(40, 1))])
    start, rows = laplace(columns), rows_of(columns, value, group=np.arange(40) % 4)
    rows = canonical_rows(rows)
    found = adapt(start, rows)
    met = promised = 0.0
    for g in range(4):
        (out,), (kept,) = np.nonzero(rows.units.code == g), np.nonzero(rows.units.code != g)
        fit = adapt_kernel(start, rows.take(kept), [found.kernel.setting])
        met = met + np.sum((rows.value[out] - fit.predict(rows.X[out])) ** 2, axis=0)
        promised = promised + 10 * np.mean((rows.value[kept] - fit.left_out) ** 2, axis=0)
    optimism = optimism_of(start, found, rows)
    np.testing.assert_allclose(optimism, np.sqrt(np.maximum(met / promised, 1.0)), rtol=1e-6)
    assert optimism.max() > 1.0


def test_rows_that_are_not_searched_share_no_optimism(monkeypatch, generator):
    columns, value, _ = line(generator, n=40)
    assert fit_of(laplace(columns[:3]), rows_of(columns[:3], value[:3])).optimism == 1.0
    monkeypatch.setattr(kernel_ridge, "SEARCH_ROWS", 30)
    monkeypatch.setattr(kernel_ridge, "optimism_of", lambda *_: np.array([2.0]))
    np.testing.assert_allclose(fit_of(laplace(columns), rows_of(columns, value)).optimism ** 2, 1.0 + 3.0 * 30 / 40)
