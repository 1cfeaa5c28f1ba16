"""Numbers that others published, or that can be derived by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import pool, pooling_weights
from kernpool.algorithms import ALGORITHMS
from tests.support.capabilities import algorithms

ALL = ["auto", *ALGORITHMS]


@algorithms(ALL, columns=1, kernel="constant")
def test_batched_weights(algorithm):
    """Ten equal weights over the values 0..9 and 10..19 (mission M9)."""
    query, key = np.zeros((2, 1, 1)), np.zeros((2, 10, 1))
    value = np.arange(20.0).reshape(2, 10, 1)
    found = pool(query, key, value, kernel="constant", algorithm=algorithm)
    assert_allclose(found, [[[4.5]], [[14.5]]], rtol=1e-15)


@algorithms(ALL, columns=2, mask="bool")
def test_equal_scores_give_means_over_the_valid_keys(algorithm, generator):
    """Equal keys, so uniform weights over the first 2 and the first 6 values (the additive-score case)."""
    query, key = generator.normal(size=(2, 1, 2)), np.ones((2, 10, 2))
    value = np.broadcast_to(np.arange(40.0).reshape(1, 10, 4), (2, 10, 4))
    mask = np.arange(10) < np.array([2, 6])[:, None, None]
    found = pool(query, key, value, attn_mask=mask, algorithm=algorithm)
    assert_allclose(found, [[[2, 3, 4, 5]], [[10, 11, 12, 13]]], rtol=1e-14)


@algorithms(ALL, columns=1)
def test_weights_of_scikit_fda(algorithm):
    """From R fda.usc, by way of scikit-fda's tests: Gaussian, h = 10."""
    points = np.arange(1.0, 6.0)
    weights = pooling_weights(points, points, bandwidth=10)
    assert_allclose(weights[0], [0.206001865, 0.204974427, 0.201922755, 0.196937264, 0.190163689], atol=5e-10)
    assert_allclose(weights[2, :3], [0.198003042, 0.200995474, 0.202002968], atol=5e-10)
    pooled = pool(points, points, np.eye(5), bandwidth=10, algorithm=algorithm)
    assert_allclose(pooled, weights, rtol=1e-14)


@pytest.mark.parametrize(
    ("bandwidth", "expected"), [(3.5, [2.42, 2.61, 3.03, 3.24, 3.65]), (2, [1.84, 2.18, 3.09, 3.55, 4.28])]
)
@algorithms(ALL, columns=1)
def test_fit_of_scikit_fda(algorithm, bandwidth, expected):
    points = np.array([1.0, 2.0, 4.0, 5.0, 7.0])
    found = pool(points, points, np.arange(1.0, 6.0), bandwidth=bandwidth, algorithm=algorithm)
    assert_allclose(found, expected, atol=5e-3)


@algorithms(ALL, columns=1)
def test_a_far_query_gets_the_nearest_key(algorithm):
    assert pool([1000.0], [0.0, 1.0], [10.0, 20.0], algorithm=algorithm) == [20.0]
    assert_array_equal(pooling_weights([1000.0], [0.0, 1.0]), [[0.0, 1.0]])


@algorithms(ALL, columns=1)
def test_far_tails_against_mpmath(algorithm):
    """All raw weights underflow, yet the ratio of two of them is 0.24: the promise is 8 eps (1 + r^2 / 2)."""
    from mpmath import exp, mp, mpf

    query, key = 100.0, np.array([0.0, 0.01, -0.02])
    with mp.workdps(50):
        weights = [exp(-((mpf(query) - mpf(float(k))) ** 2) / 2) for k in key]
        exact = float(sum(w * v for w, v in zip(weights, (1, 2, 4), strict=True)) / sum(weights))
    found = pool([query], key, [1.0, 2.0, 4.0], algorithm=algorithm)[0]
    assert abs(found - exact) <= 8 * 2.2e-16 * (1 + query**2 / 2) * 3


@algorithms(ALL, columns=1)
def test_near_fits_against_mpmath(algorithm, generator):
    """Every digit counts: 1e-14 here would still catch one lost digit of the promised 1e-12."""
    from mpmath import exp, mp, mpf

    key, value = generator.normal(size=30) + 1e3, generator.normal(size=30)
    query = 1e3 + 0.3
    with mp.workdps(50):
        weights = [exp(-(((mpf(query) - mpf(float(k))) / mpf(0.2)) ** 2) / 2) for k in key]
        exact = float(sum(w * mpf(float(v)) for w, v in zip(weights, value, strict=True)) / sum(weights))
    assert pool([query], key, value, bandwidth=0.2, algorithm=algorithm)[0] == pytest.approx(exact, rel=0, abs=1e-14)
