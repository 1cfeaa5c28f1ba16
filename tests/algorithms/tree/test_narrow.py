"""The tree with narrow kernels: leaves are many bandwidths wide, and exponents reach the end of their range."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import NadarayaWatsonRegressor, Problem, choose, pool
from kernpool.algorithms.tree.blocks import PreparedTree
from tests.support.problems import with_algorithm
from tests.support.thinning import thinned

LARGEST_EXPONENT = 1021.0  # of the loop in float64 without a clamp
KERNELS = ("gaussian", "laplace")
PLACES = {
    "uniform": lambda g, n, d: g.random((n, d)),
    "normal": lambda g, n, d: g.normal(size=(n, d)) / 4,
    "grid": lambda g, n, d: np.round(g.random((n, d)) * (8 if d == 3 else 40)) / 10,
    "one narrow cluster": lambda g, n, d: np.where(np.arange(n)[:, None] % 2, 1e-3, 1.0) * g.random((n, d)),
    "nearly on a line": lambda g, n, d: g.random((n, 1)) + 1e-3 * g.random((n, d)),
}


def corners(lower, upper):
    """All corners of the boxes, of shape (leaves, 2**d, d)."""
    d = lower.shape[1]
    choice = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    return np.where(choice, upper[:, None], lower[:, None])


@pytest.mark.covering
@pytest.mark.parametrize("places", list(PLACES))
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_box_allows_no_key_exceeds(kernel, d, places, generator):
    """Queries at the largest gap that a leaf allows, off its corners and faces: there the farthest keys decide."""
    key = PLACES[places](generator, 4000, d)
    for h in np.geomspace(2e-4, 0.2, 8):
        walk = PreparedTree(Problem.from_arrays(key, key, key[:, 0], kernel=kernel, bandwidth=h))
        tree, profile = walk.tree, walk.profile
        leaves = len(tree.key)
        places_of_box = corners(tree.lower[:leaves], tree.upper[:leaves])
        outward = places_of_box - tree.center[:, None]
        outward = np.where(np.abs(outward) > 0, outward, 1.0) * profile.factor
        allowed = tree.lowest <= 0
        gap = np.maximum(-tree.lowest, 0.0)  # exponents are -gap**2 of a Gaussian, -gap of Laplace
        gap = (np.sqrt(gap) if kernel == "gaussian" else gap)[:, None, None]
        for direction in (outward, np.sign(outward) * (np.arange(d) == 0)):
            step = gap * direction / np.linalg.norm(direction, axis=2, keepdims=True)
            query = ((places_of_box - tree.center[:, None]) * profile.factor + step)[allowed]
            squared = ((query[:, :, :, None] - tree.near_key[allowed][:, None]) ** 2).sum(axis=2)
            farthest = squared.max(initial=0.0)
            assert (farthest if kernel == "gaussian" else np.sqrt(farthest)) <= LARGEST_EXPONENT


@pytest.mark.covering
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("d", "places"), thinned([2, 3], list(PLACES)))
def test_every_answer_of_narrow_windows_is_that_of_brute_force(kernel, d, places, generator):
    n, m = 6000, 600
    query, key = PLACES[places](generator, m, d), PLACES[places](generator, n, d)
    value = generator.normal(size=(n, 2)) + 5.0
    for h in np.geomspace(5e-4, 0.25, 10):
        options = {"kernel": kernel, "bandwidth": h, "n_jobs": 2}
        found = pool(query, key, value, algorithm="kd_tree", **options)
        expected = pool(query, key, value, algorithm="brute", **options)
        error = np.abs(found - expected)
        assert np.all(error <= 1e-11), (h, np.nanmax(error), np.sum(~(error <= 1e-11)))


def test_the_second_call_of_a_process_is_right_as_well(generator):
    """Once the compiler is loaded, `auto` may take the tree: what it said was 4.09 for 4.49, infinite and NaN."""
    key, query = generator.random((20_000, 3)), generator.random((2000, 3))
    value = generator.normal(size=20_000) + 5.0
    pool(query, key, value, bandwidth=0.0105, algorithm="brute")
    for h in (0.009, 0.0105, 0.012):
        expected = pool(query, key, value, bandwidth=h, algorithm="brute")
        for algorithm in ("auto", "kd_tree"):
            assert_allclose(pool(query, key, value, bandwidth=h, algorithm=algorithm), expected, rtol=1e-11)


def test_a_grid_of_the_bandwidth_is_right(generator):
    """Keys on a lattice of width h in three columns: leaves of a dozen bandwidths, corners without keys."""
    key = generator.integers(0, 20, (20_000, 3)) * 0.1
    query, value = generator.random((3000, 3)) * 2.0, generator.normal(size=20_000)
    for h in (0.1, 0.06, 0.04):
        expected = pool(query, key, value, bandwidth=h, algorithm="brute")
        assert_allclose(pool(query, key, value, bandwidth=h, algorithm="kd_tree"), expected, rtol=0, atol=1e-11)


def test_leave_one_out_and_estimators_are_right_as_well(generator):
    key = generator.random((20_000, 3))
    value = generator.normal(size=20_000) + 5.0
    options = {"bandwidth": 0.0105, "exclude_self": True}
    problem = Problem.from_arrays(key[:3000], key, value, self_index=np.arange(3000), **options)
    found, expected = (choose(problem, name).reduce(problem).finalize() for name in ("kd_tree", "brute"))
    assert_allclose(found, expected, rtol=1e-11)
    model = with_algorithm(NadarayaWatsonRegressor(bandwidth=0.0105).fit(key, value), "kd_tree")
    query = generator.random((3000, 3))
    expected = pool(query, key, value, bandwidth=0.0105, algorithm="brute")
    assert_allclose(model.predict(query), expected, rtol=1e-11)
