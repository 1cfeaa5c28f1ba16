"""Weights of members by their leave-one-out residuals, compared with a dense search."""

import numpy as np
import pytest

from kernpool.estimators.stacking.stack import stacking_weights


def loss(mixed, residuals, weight):
    return float(weight @ np.sum(sum(m * r for m, r in zip(mixed, residuals, strict=True)) ** 2, axis=1))


def test_they_are_half_way_between_the_best_on_the_simplex_and_equal_ones(generator):
    weight = generator.uniform(0.5, 2.0, 30)
    common = generator.normal(size=(30, 2))
    residuals = [common + s * generator.normal(size=(30, 2)) for s in (0.5, 1.0, 3.0)]
    found = stacking_weights(residuals, weight)
    best = 2.0 * found - 1.0 / 3.0
    assert best.sum() == pytest.approx(1.0)
    assert best.min() >= -1e-12
    least = loss(best, residuals, weight)
    for mixed in generator.dirichlet(np.ones(3), 2000):
        assert least <= loss(mixed, residuals, weight) * (1 + 1e-12)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_they_do_not_depend_on_the_unit(size, generator):
    residuals = [generator.normal(size=(20, 1)), generator.normal(size=(20, 1))]
    expected = stacking_weights(residuals, np.ones(20))
    np.testing.assert_allclose(stacking_weights([size * r for r in residuals], np.ones(20)), expected)


def test_perfect_members_are_equal_and_a_bad_one_keeps_a_quarter():
    assert stacking_weights([np.zeros((4, 1))] * 2, np.ones(4)).tolist() == [0.5, 0.5]
    assert stacking_weights([np.zeros((4, 1)), np.ones((4, 1))], np.ones(4)).tolist() == [0.75, 0.25]
    assert stacking_weights([np.ones((4, 1))], np.ones(4)).tolist() == [1.0]
