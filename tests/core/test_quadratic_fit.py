"""Local quadratic fits: their sums in every algorithm, the fit against least squares, and what does not exist."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import (
    EmptyWindowWarning,
    Problem,
    RankDeficiencyWarning,
    choose,
    open_chunks,
    pool,
    pool_state,
    pooling_weights,
)
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Factors, Layout, PoolState, monomials
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling import Recipe, local_fit
from tests.support.capabilities import algorithms
from tests.support.moments import check_moments, least_squares

BOTH = ["radial", "product"]
COLUMNS = [1, 2, 3]


def regressors(offset):
    """Offsets, and their products of two, along the last axis."""
    pairs = [offset[..., a] * offset[..., b] for a, b in monomials(offset.shape[-1], 2)]
    return np.concatenate([offset, np.stack(pairs, axis=-1)], axis=-1)


def numerator(offset, value, weight):
    """Sums of a state, written down term by term."""
    columns = [value.T]
    for order in (1, 2, 3, 4):
        products = [np.prod(offset[:, list(one)], axis=1) for one in monomials(offset.shape[1], order)]
        columns.append(np.array(products))
        if order < 3:
            columns.append(np.array([product * v for product in products for v in value.T]))
    value_row, first, cross, second, cross_second, third, fourth = columns
    return np.concatenate([value_row, first, second, cross, third, fourth, cross_second]) @ weight


@pytest.mark.parametrize("columns", COLUMNS)
def test_sums_about_another_place_and_of_other_values(columns, generator):
    offset, value = generator.normal(size=(30, columns)), generator.normal(size=(30, 2))
    weight, shift = generator.uniform(1.0, 1.9, size=30), generator.normal(size=columns)
    layout, center = Layout(2, columns, 2), np.array([3.0, -5.0])
    sums, total = numerator(offset, value, weight)[None], weight.sum(keepdims=True)
    assert sums.shape == (1, layout.width)
    moved = layout.moved(total, sums, shift[None])
    assert_allclose(moved[0], numerator(offset + shift, value, weight), rtol=1e-12, atol=1e-12)
    centered = layout.with_center(PoolState(np.zeros_like(total), total, sums), center).numerator
    assert_allclose(centered[0], numerator(offset, value + center, weight), rtol=1e-12, atol=1e-12)
    problem = Problem.from_arrays(np.zeros((1, columns)), offset, value, key_weight=weight, degree=2, kernel="constant")
    assert_allclose(choose(problem).reduce(problem).numerator, sums, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kernel", "gap"), [("gaussian", 9.6), ("logistic", 44.0)])
@algorithms(columns=1, degree=2)
def test_keys_that_are_nothing_but_in_a_fourth_power(algorithm, kernel, gap, generator):
    """Beyond the windows of other fits, beside keys that are all within a hundredth of a bandwidth."""
    near, far = generator.uniform(-0.005, 0.005, 400), gap + generator.uniform(-0.005, 0.005, 600)
    key = np.concatenate([near, far])
    problem = Problem.from_arrays(near[:300], key, np.cos(key), kernel=kernel, degree=2)
    check_moments(problem, algorithm, "reference")


@algorithms(columns=1, degree=2)
def test_a_lost_digit_would_be_seen(algorithm, generator):
    """Against long double: windows that are one-sided, or three times as far away as they are wide."""
    key = np.sort(generator.uniform(size=400))
    value, weight = np.sin(7 * key), generator.uniform(0.5, 2.0, 400)
    query = np.concatenate([np.linspace(0.0, 1.0, 21), [1.1, 1.15]])
    found = pool(query, key, value, degree=2, bandwidth=0.09, key_weight=weight, algorithm=algorithm)
    for q, mine in zip(query, found, strict=True):
        t = (key.astype(np.longdouble) - q) / np.longdouble(0.09)
        w = weight * np.exp(-(t**2) / 2)
        design = np.stack([np.ones_like(t), t, t * t])
        left, right = (design * w) @ design.T, (design * w) @ value.astype(np.longdouble)
        for i in range(3):
            for k in range(i + 1, 3):
                ratio = left[k, i] / left[i, i]
                left[k], right[k] = left[k] - ratio * left[i], right[k] - ratio * right[i]
        curve = right[2] / left[2, 2]
        slope = (right[1] - left[1, 2] * curve) / left[1, 1]
        exact = float((right[0] - left[0, 1] * slope - left[0, 2] * curve) / left[0, 0])
        assert abs(mine - exact) <= (1e-12 if q <= 1.0 else 1e-9), (q, mine - exact)


@pytest.mark.covering
@algorithms(columns=COLUMNS, kernel=["gaussian", "epanechnikov"], degree=2)
def test_units_of_columns_and_values_do_not_matter(algorithm, kernel, columns, generator):
    key, query = np.round(generator.normal(size=(300, columns)) * 64) / 64, np.zeros((3, columns))
    query[:, 0] = [0.0, 0.5, 1.0]
    value = generator.normal(size=300)
    options = {"kernel": kernel, "degree": 2, "algorithm": algorithm}
    plain = pool(query, key, value, bandwidth=2.0, **options)
    assert_allclose(pool(query + 1024, key + 1024, value, bandwidth=2.0, **options), plain, rtol=1e-11)
    scale = 10.0 ** np.linspace(-5, 7, columns)
    scaled = pool(scale * query, scale * key, value, bandwidth=2.0 * scale, **options)
    assert_allclose(scaled, plain, rtol=1e-11)
    assert_allclose(pool(query, key, 3.0 - 1e-200 * value, bandwidth=2.0, **options), 3.0, rtol=1e-14)
    tiny = pool(query, key, 1e-200 * value, bandwidth=2.0, **options)
    assert_allclose(tiny, 1e-200 * plain, rtol=1e-11)


def test_chunks_and_partitions(generator):
    query, key = generator.normal(size=(20, 2)), generator.normal(size=(400, 2))
    value, weight = 50.0 + generator.normal(size=(400, 2)), generator.integers(1, 4, 400).astype(float)
    options = {"bandwidth": [0.9, 1.4], "degree": 2}
    expected = pool(query, key, value, key_weight=weight, **options)
    parts = [(key[i:j], value[i:j], weight[i:j]) for i, j in pairwise([0, 100, 130, 400])]
    assert_allclose(pool(query, open_chunks(parts), **options), expected, rtol=1e-11)
    array = pytest.importorskip("dask.array", reason="partitions need the extra 'dask'")
    from kernpool.dask import open_partitions

    rows, columns = array.from_array(key, chunks=(150, 2)), array.from_array(value, chunks=(150, 2))
    weights = array.from_array(weight, chunks=150)
    found = pool(query, open_partitions(rows, columns, weights), **options)
    assert_allclose(np.asarray(found), expected, rtol=1e-11)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_cells_of_levels_are_a_dense_sum(kernel, columns, generator):
    m, n = 40, 900
    codes = [generator.integers(0, 3, (rows, 1)) for rows in (m, n)]
    factors = Factors(*codes, (get_categorical_kernel("li_racine").table(3, 0.3),), (np.zeros((3, 3)),))
    key, query = generator.normal(size=(n, columns)), generator.normal(size=(m, columns))
    value = generator.normal((0.0, 5.0), size=(n, 2))
    weight = generator.integers(1, 4, n).astype(float)
    problem = Problem.from_arrays(
        query, key, value, kernel=kernel, bandwidth=2.0, degree=2, factors=factors, key_weight=weight
    )
    check = least_squares(
        query, key, value,
        pooling_weights(query, key, kernel=kernel, bandwidth=2.0, key_weight=weight)
        * np.exp(sum(factors.logarithms(), start=np.zeros((m, n)))),
        degree=2,
    )  # fmt: skip
    for name in ("auto", "brute"):
        assert_allclose(local_fit(problem, Recipe.of(algorithm=name)).intercept, check[:, 0], rtol=1e-9, atol=1e-10)


@algorithms(columns=1, degree=2)
def test_what_keys_do_not_determine_is_of_lower_degree(algorithm):
    """No key, one, two, one place, three: as much of a parabola as there is."""
    options = {"kernel": "epanechnikov", "algorithm": algorithm}
    key = np.array([0.0, 5.0, 5.0, 9.0, 9.5, 15.0, 15.5, 16.0])
    value = np.array([1.0, 2.0, 4.0, 7.0, 8.0, 0.0, 1.0, 4.0])
    query = [0.5, 5.1, 9.2, 15.25, 20.0]
    with pytest.warns(RankDeficiencyWarning, match=r"around 3 of 5 queries \(the first is query 0\) .* degree=1"):
        found = pool(query, key, value, empty="nearest", degree=2, **options)
    assert_allclose(found, [1.0, 3.0, 7.4, 0.25, 4.0], rtol=1e-12)
    with pytest.warns(EmptyWindowWarning):
        assert np.isnan(pool([20.0], key, value, degree=2, **options)).all()


@algorithms(columns=2, degree=2)
def test_dependent_columns_share_the_fit(algorithm):
    """On a line in two columns, and on a cross, where the product of the offsets is always zero."""
    x = np.linspace(0.0, 9.0, 12)
    twice = np.column_stack([x, 3 * x])
    with pytest.warns(RankDeficiencyWarning):
        found = pool(twice, twice, x**2 + 1, degree=2, bandwidth=[5.0, 15.0], algorithm=algorithm)
    assert_allclose(found, x**2 + 1, rtol=1e-10)
    arm = np.linspace(-1.0, 1.0, 9)
    cross = np.concatenate([np.column_stack([arm, 0 * arm]), np.column_stack([0 * arm, arm])])
    value = 2.0 + cross[:, 0] - cross[:, 1] + 3 * cross[:, 0] ** 2 - cross[:, 1] ** 2
    with pytest.warns(RankDeficiencyWarning):
        found = pool([[0.0, 0.0]], cross, value, degree=2, algorithm=algorithm)
    assert_allclose(found, [2.0], rtol=1e-12)


@algorithms(columns=1, degree=2)
@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_far_away_it_becomes_the_plane_of_the_nearest_keys(algorithm, generator):
    """And does so without a jump: quadratics end where the keys are within a hundredth of their distance."""
    key = np.sort(generator.uniform(size=(200, 1)), axis=0)
    value = np.cos(4 * key[:, 0])
    far = np.array([[8.0], [30.0], [1e4], [1e60], [-1e100]])
    plane, found = (pool(far, key, value, bandwidth=0.1, degree=degree, algorithm=algorithm) for degree in (1, 2))
    assert_allclose(found, plane, rtol=1e-6)
    walk = pool(np.linspace(1.5, 3.0, 4001), key, value, bandwidth=0.1, degree=2, algorithm=algorithm)
    assert np.abs(np.diff(walk)).max() < 0.05 * np.ptp(walk)


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")
def test_tiny_and_huge_windows(generator):
    """Fourth powers of offsets leave the range of numbers long before the offsets do."""
    key = generator.normal(size=(50, 2))
    value = key[:, 0] - 2 * key[:, 1] + 5.0
    found = pool(key, key, value, bandwidth=[1e100, 1e-3], kernel="constant", degree=2)
    assert_allclose(found, value, rtol=1e-10)
    found = pool(key * 1e90, key * 1e90, value, bandwidth=1.0, kernel="constant", degree=2)
    assert_allclose(found, value, rtol=1e-10)


@pytest.mark.parametrize("columns", COLUMNS)
def test_leaving_a_row_out_is_fitting_without_it(columns, generator):
    key, value = generator.normal(size=(60, columns)), generator.normal(size=60)
    weight = generator.integers(1, 3, 60)
    found = pool(key, key, value, degree=2, bandwidth=2.0, exclude_self=True, key_weight=weight)
    for i in range(0, 60, 7):
        left = weight.copy()
        left[i] -= 1
        again = pool(key[i : i + 1], key, value, degree=2, bandwidth=2.0, key_weight=left)
        assert_allclose(found[i], again[0], rtol=1e-10)


def test_what_there_is_not_is_refused_with_the_remedy(generator):
    four = generator.normal(size=(9, 4))
    for ask in (pool, pool_state):
        with pytest.raises(ValueError, match=r"degree=2 is for one to 3 columns, got 4.*use degree=1"):
            ask(four, four, four[:, 0], degree=2)
    key = four[:, :2]
    problem = Problem.from_arrays(key, key, key, degree=2, exclude_self=True)
    for name, algorithm in ALGORITHMS.items():
        assert algorithm.degree == 2 or "degree=2 (a local quadratic fit)" in algorithm.refusal(problem), name
    for name in ("reference", "brute"):
        plan = choose(problem, name)
        with pytest.raises(ValueError, match=r"no gradients of degree=2.*with degree=1"):
            plan.pullback(problem, plan.reduce(problem), np.ones((9, 2)), ["value"])
    code = np.zeros((9, 1), dtype=int)
    levels = problem.with_factors(Factors(code, code, (np.ones((1, 1)),), (np.zeros((1, 1)),)))
    with pytest.raises(ValueError, match=r"no gradients of degree=2"):
        choose(levels).pullback(levels, choose(levels).reduce(levels), np.ones((9, 2)))
