"""Pooling weights: dense, of plain problems and of those with categorical columns, in one way."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem
from kernpool.algorithms.reference import pair_weights
from kernpool.core import Factors
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling import Recipe, local_fit, weight_rows


def make_mixed(generator, kernel, smoothing, **options):
    """A numeric column and an unordered one of three levels, 9 queries and 40 keys."""
    problem = Problem.from_arrays(
        generator.normal(size=9), generator.normal(size=40), generator.normal(size=40), kernel=kernel, **options
    )
    aitchison = get_categorical_kernel("aitchison_aitken")
    query, key = generator.integers(-1, 3, (9, 1)), generator.integers(0, 3, (40, 1))
    tables = (aitchison.table(3, smoothing),), (aitchison.table_slope(3, smoothing),)
    return problem.with_factors(Factors(query, key, *tables))


def factors_of(mixed):
    factors = mixed.factors
    table = np.vstack([factors.tables[0], np.full((1, 3), factors.tables[0][0, -1])])
    return table[factors.query_code, factors.key_code[:, 0]]


def masks(generator):
    boolean = generator.random((9, 40)) < 0.6
    return {
        "no mask": {},
        "boolean mask": {"attn_mask": boolean},
        "float mask": {"attn_mask": np.where(boolean, 30.0 * generator.normal(size=(9, 40)), -np.inf)},
        "bias of a row": {"attn_mask": generator.normal(size=40)},
        "weights": {"key_weight": generator.integers(0, 4, 40), "attn_mask": boolean},
        "own keys": {"exclude_self": True, "self_index": np.arange(-1, 8)},
    }


@pytest.mark.covering
@pytest.mark.parametrize("variant", list(masks(np.random.default_rng(0))))
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_weights_of_mixed_problems_are_the_product_of_their_factors(kernel, smoothing, variant, generator):
    mixed = make_mixed(generator, kernel, smoothing, **masks(generator)[variant])
    _, numeric = pair_weights(mixed.without_factors())
    expected = numeric * factors_of(mixed)
    total = expected.sum(axis=1, keepdims=True)
    expected = np.divide(expected, total, where=total > 0, out=np.zeros_like(expected))
    found = np.concatenate([part for _, part in weight_rows(mixed)])
    assert_allclose(found, expected, rtol=1e-11, atol=1e-300)
    fit = local_fit(mixed, Recipe.of())
    assert_array_equal(found.any(axis=1), fit.occupied)
    value = mixed.value + mixed.value_center
    assert_allclose(found @ value, fit.intercept, rtol=1e-10, atol=1e-13)


def test_rows_come_some_at_a_time(monkeypatch, generator):
    monkeypatch.setattr("kernpool.pooling.weights.PAIRS_AT_ONCE", 85)
    mixed = make_mixed(generator, "gaussian", 0.2)
    parts = list(weight_rows(mixed))
    assert [(rows.start, rows.stop) for rows, _ in parts] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    _, expected = pair_weights(replace(mixed.without_factors(), logit_bias=np.log(factors_of(mixed))))
    found = np.concatenate([part for _, part in parts])
    assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-14)
