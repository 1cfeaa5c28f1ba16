"""The bound on rounding that all other tests hold answers against."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Problem, choose, make_kernel
from kernpool.pooling import rounding_bound
from kernpool.pooling.rounding_error import rounding_of_weights


def bound(*arrays, **options):
    """Of a problem that the reference implementation sums; its values are 0 to 1, so that the range is one."""
    problem = Problem.from_arrays(*arrays, **options)
    return rounding_bound(problem, choose(problem, "reference").reduce(problem))


def test_nearby_it_is_a_share_of_the_range():
    assert_allclose(bound([0.0], [0.0, 1.0], [0.0, 1e-3]), [[1e-15]], rtol=1e-2)
    narrow = [np.float32([0.0]), np.float32([0.0, 1.0]), np.float32([0.0, 1e-3])]
    assert_allclose(bound(*narrow), [[2e-9]], rtol=0.1)


def test_it_grows_with_the_distance_from_the_nearest_key():
    near, far, farther = bound([100.0, 1e3, 1e4], [0.0, -1.0], [0.0, 1.0])[:, 0]
    assert near == pytest.approx(1e-12)
    assert far == pytest.approx(8 * 2.2e-16 * 1e6 / 2, rel=1e-2)
    assert farther == pytest.approx(8 * 2.2e-16 * 1e8 / 2, rel=1e-2)


def test_it_grows_where_a_compact_kernel_vanishes():
    """D is 2 d K'(1) at a distance of d from the edge of a single key: W / (1000 D) = 1 / (1500 d)."""
    found = bound([1 - 1e-6, 1 - 1e-9], [0.0, 9.0], [0.0, 1.0], kernel="epanechnikov")[:, 0]
    assert_allclose(found, [1e-12 / 1500e-6, 1e-12 / 1500e-9], rtol=1e-5)


def test_keys_count_by_their_weight_unless_they_are_left_out():
    """One of weight 1 next to the query, and 1e9 of them at five bandwidths, which weigh e^-12.5 each."""
    key, weight, value = [0.0, 5.0], [1.0, 1e9], [0.0, 1e-3]
    share = 1e9 / (1 + 1e9 * np.exp(-12.5)) / 1000
    problem = Problem.from_arrays([0.0], key, value, key_weight=weight)
    found = rounding_of_weights(problem, choose(problem, "reference").reduce(problem))
    assert_allclose(found, 1e-12 * share, rtol=1e-6)
    for leave in ({"exclude_self": True, "self_index": [1]}, {"attn_mask": [[True, False]]}):
        if "self_index" in leave:
            weight = [1.0, 1.0]
        problem = Problem.from_arrays([0.0], key, value, key_weight=weight, **leave)
        found = rounding_of_weights(problem, choose(problem, "reference").reduce(problem))
        assert_allclose(found, 1e-12, rtol=1e-6)


def test_a_kernel_of_ones_own_is_looked_up_in_tables(generator):
    """Products of it have a nearest key of their own kind."""
    mine = make_kernel("heavy", lambda u: 1 / (1 + u) ** 4, composition="product")
    query, key = generator.normal(size=(5, 2)), generator.normal(size=(40, 2))
    problem = Problem.from_arrays(query, key, generator.random(40), kernel=mine, bandwidth=0.01)
    state = choose(problem, "reference").reduce(problem)
    assert np.all(rounding_of_weights(problem, state) == 1e-12)
