"""The tree: what it may leave out, what it must not, and that it leaves out a lot."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, get_kernel, kernel_names, pool
from kernpool.algorithms.algorithm import PairSample
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.algorithms.tree.blocks import PreparedTree, visit_blocks
from kernpool.pooling import rounding_bound
from tests.support.problems import EVERYTHING, with_products

KERNELS = kernel_names()  # before other tests register kernels of their own
INFINITE = [name for name in kernel_names() if not get_kernel(name).is_compact]


def places(generator, kind, n, d):
    if kind == "uniform":
        return generator.random((n, d))
    if kind == "heavy tails":
        return generator.standard_cauchy((n, d))
    centers = generator.random((8, d))
    return centers[generator.integers(0, 8, n)] + (1e-12 if kind == "clusters of 1e-12" else 0.01) * generator.normal(
        size=(n, d)
    )


def count_pairs(problem):
    """Count the pairs of a query and a key that the tree looks at one by one, by running it."""
    planted = PreparedTree(problem)
    return visit_blocks(planted, planted.blocks())[1]


def compare(problem, extra=0.0, n_jobs=1):
    """Hold the tree against the reference; `extra` is the share that may be missing, times the range of the values."""
    expected = choose(problem, "reference").reduce(problem)
    state = choose(problem, "kd_tree").reduce(problem, n_jobs=n_jobs)
    assert_array_equal(state.denominator == 0, expected.denominator == 0)
    error = np.abs(state.finalize("zero") - expected.finalize("zero"))
    bound = rounding_bound(problem, expected) + extra * np.ptp(problem.value, axis=0)
    assert np.all(error <= bound), (error / bound).max()
    return error.max()


@pytest.mark.slow  # compiles the tree's loops for every kernel
@pytest.mark.parametrize("kind", ["uniform", "clusters", "heavy tails"])
@pytest.mark.parametrize("kernel", with_products(INFINITE))
def test_no_more_than_tol_is_missed(kernel, kind, generator):
    for d in (1, 2, 3, 5):
        query, key = places(generator, kind, 80, d), places(generator, kind, 2000, d)
        value = np.stack([generator.normal(size=2000), 1e3 * (key[:, 0] > np.median(key[:, 0]))], axis=1)
        for h in (0.003, 0.05, 1.0):
            for tol in (1e-3, 1e-6, 1e-12):
                options = {"kernel": kernel, "bandwidth": h, "tol": tol}
                compare(Problem.from_arrays(query, key, value, **options), extra=tol)


@pytest.mark.slow  # compiles the tree's loops for every kernel
@pytest.mark.parametrize("kernel", kernel_names())
@pytest.mark.parametrize("kind", ["uniform", "clusters of 1e-12", "heavy tails", "one place"])
def test_every_kernel_at_every_place(kernel, kind, generator):
    for d, h in ((2, 0.05), (3, 0.3), (2, 1e-12)):
        if kind == "one place":
            query, key = np.ones((70, d)), np.ones((1000, d))
        else:
            query, key = places(generator, kind, 200, d), places(generator, kind, 2500, d)
            query[::3] = key[:67]
        weight = 10.0 ** generator.uniform(-5, 5, len(key))
        value = generator.normal(size=(len(key), 3))
        for extra in ({}, {"key_weight": weight}):
            compare(Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h, **extra))


@pytest.mark.parametrize("kernel", INFINITE)
def test_far_queries_find_the_nearest_key(kernel, generator):
    key, value = generator.normal(size=(3000, 2)), generator.normal(size=3000)
    direction = generator.normal(size=(64, 2))
    query = key[:64] + direction * np.array([0.1, 30.0, 1e3, 1e6])[np.arange(64) % 4, None]
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=1.0)
    compare(problem)
    if kernel == "gaussian":
        far = query[3::4]
        nearest = np.argmin(((far[:, None] - key) ** 2).sum(axis=2), axis=1)
        lonely = pool(far, key, value, bandwidth=1e-3, algorithm="kd_tree")
        assert_allclose(lonely, value[nearest], rtol=1e-14)


def test_one_key_and_keys_of_weight_zero(generator):
    for kernel in KERNELS:
        assert pool([[0.1, 0.0]], [[0.0, 0.0]], [7.0], kernel=kernel, algorithm="kd_tree") == [7.0]
    key, weight = generator.normal(size=(900, 2)), np.zeros(900)
    weight[450:] = 2.0
    found = pool(key[:50], key, np.arange(900.0), key_weight=weight, algorithm="kd_tree")
    assert_allclose(found, pool(key[:50], key[450:], np.arange(450.0, 900.0)), rtol=1e-12)


@pytest.mark.slow  # compiles the tree's loops for every kernel; products have the edges of a single column
@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if "product" in name and name != "product boxcar" else ())
        for name in with_products(kernel_names())
        if get_kernel(name).is_compact
    ],
)
def test_edges_on_a_grid(kernel):
    """Keys exactly at distance h, in nodes that lie inside, outside, and across."""
    x, y = np.meshgrid(np.arange(50) * 0.1, np.arange(50) * 0.1)
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    for h in (0.1, 0.3, 0.5, 1.3, 4.0):
        for own in (False, True):
            problem = Problem.from_arrays(grid, grid, np.arange(2500.0), kernel=kernel, bandwidth=h, exclude_self=own)
            compare(problem)
            if "boxcar" in kernel:
                expected = choose(problem, "reference").reduce(problem).denominator
                assert_array_equal(choose(problem, "kd_tree").reduce(problem).denominator, expected)


def test_far_pairs_are_left_out_and_the_estimate_knows_it(generator):
    query, key, value = generator.random((10_000, 2)), generator.random((40_000, 2)), generator.normal(size=40_000)
    everything = len(query) * len(key)
    for kernel, h, most in (("epanechnikov", 0.02, 0.02), ("gaussian", 0.005, 0.05)):
        problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h)
        share = count_pairs(problem) / everything
        assert share < most
        assert share / 3 < PairSample(problem).share < 8 * share + 0.02
    wide = Problem.from_arrays(generator.normal(size=(5000, 8)), generator.normal(size=(5000, 8)), value[:5000])
    assert PairSample(wide).share > 0.9
    loose = Problem.from_arrays(query, key, value, bandwidth=0.02, tol=1e-3)
    tight = Problem.from_arrays(query, key, value, bandwidth=0.02)
    assert count_pairs(loose) < 0.5 * count_pairs(tight)


def test_gradients_are_sums_over_near_pairs(generator, monkeypatch):
    """Against brute force, with far and with empty queries; and most pairs are not looked at."""
    looked_at = []
    of_block = CompiledBlocks.differentiate_block

    def counted(blocks, queries, keys, *rest):
        looked_at.append((queries.stop - queries.start) * (keys.stop - keys.start))
        return of_block(blocks, queries, keys, *rest)

    key, value = generator.random((6000, 2)), generator.normal(size=(6000, 2))
    query = np.concatenate([generator.random((2000, 2)), 1.0 + generator.random((300, 2))])
    own = np.where(np.arange(2300) % 3, -1, np.arange(2300))
    for kernel, h in (("gaussian", 0.01), ("product laplace", 0.002), ("triweight", 0.03)):
        options = {
            "kernel": kernel,
            "bandwidth": h,
            "exclude_self": True,
            "self_index": own,
        }
        problem = Problem.from_arrays(query, key, value, **options)
        cotangent, plan = generator.normal(size=(2300, 2)), choose(problem, "kd_tree")
        state = plan.reduce(problem)
        expected = choose(problem, "brute").pullback(problem, state, cotangent, EVERYTHING)
        monkeypatch.setattr(CompiledBlocks, "differentiate_block", counted)
        looked_at.clear()
        found = plan.pullback(problem, state, cotangent, EVERYTHING)
        assert sum(looked_at) < 0.7 * 2 * 2300 * 6000
        again = plan.pullback(problem, state, cotangent, EVERYTHING, n_jobs=2)
        monkeypatch.undo()
        for name in EVERYTHING:
            right = getattr(expected, name)
            assert_allclose(getattr(found, name), right, rtol=1e-10, atol=1e-13 * np.abs(right).max())
            assert getattr(found, name).tobytes() == getattr(again, name).tobytes()
