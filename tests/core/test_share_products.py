"""Products of shares, against shares written down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import ndtri

from kernpool import Problem, choose, pool_state, pooling_weights
from kernpool.core import Layout, monomials, solve
from kernpool.core.local_fit import mean_product


def regressors_of(problem, degree):
    """Offsets, and with degree 2 their products of two, of shape (m, n, p)."""
    d = problem.key.shape[1]
    columns = [problem.similarity.offset(problem.query, problem.key, a) for a in range(d)]
    products = [columns[a] * columns[b] for a, b in monomials(d, 2)]
    found = [*(columns if degree else []), *(products if degree == 2 else [])]
    return np.stack(found, axis=2) if found else np.zeros((*problem.shape, 0))


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_products_of_shares_are_sums_over_keys(columns, degree, generator):
    """Of two fits at two bandwidths: the product of two Gaussians is one of a third."""
    key, query = generator.normal(size=(200, columns)), generator.normal(size=(20, columns))
    value, noise, h = generator.normal(size=200), generator.uniform(0.1, 3.0, 200), np.linspace(0.9, 1.6, columns)
    ratio = 1.3
    shares, fits, masses = [], [], []
    for width in (1.0, ratio):
        problem = Problem.from_arrays(query, key, value, bandwidth=width * h, degree=degree)
        state = choose(problem).reduce(problem)
        fit = solve(state, problem.layout)
        z = regressors_of(problem, degree)
        weight = pooling_weights(query, key, bandwidth=width * h)
        shares.append(weight * (fit.base[:, None] + np.einsum("mp,mnp->mn", fit.tilt, z)))
        assert_allclose(shares[-1] @ value, fit.intercept[:, 0], rtol=1e-10, atol=1e-12)
        fits.append(fit)
        masses.append(state.log_denominator)
    for i, k, width in ((0, 0, 0.5**0.5), (1, 1, ratio * 0.5**0.5), (0, 1, 1 / np.sqrt(1 + ratio**-2))):
        product = Problem.from_arrays(query, key, value, bandwidth=width * h, degree=degree, key_weight=noise)
        state, layout = choose(product).reduce(product), product.layout
        order = np.repeat([1, 2], [columns, columns * (columns + 1) // 2])[: layout.regressors]  # of each regressor
        pairs = [(fits[j].base, fits[j].tilt * (width / (1.0, ratio)[j]) ** order) for j in (i, k)]
        unit = np.exp(state.log_denominator - masses[i] - masses[k])
        found = unit * mean_product(state, layout, *pairs)[0]
        size = np.sum(np.abs(shares[i] * shares[k] * noise), axis=1)
        assert np.all(np.abs(found - np.sum(shares[i] * shares[k] * noise, axis=1)) <= 1e-12 * size)


@given(seed=st.integers(0, 10**6), columns=st.integers(1, 3), far=st.floats(0.0, 30.0))
def test_norms_are_not_negative_and_at_least_those_of_a_mean(seed, columns, far):
    """Shares that sum to one have a norm of at least one over the number of keys, however far the query."""
    generator = np.random.default_rng(seed)
    key, query = generator.normal(size=(40, columns)), generator.normal(size=(4, columns)) + far
    problem = Problem.from_arrays(query, key, key[:, 0], bandwidth=1.0, degree=2)
    state, layout = choose(problem).reduce(problem), problem.layout
    fit = solve(state, layout)
    squared = Problem.from_arrays(query, key, key[:, 0], bandwidth=0.5**0.5, degree=2)
    sums = choose(squared).reduce(squared)
    pair = fit.base, fit.tilt * 0.5 ** np.repeat([0.5, 1.0], [columns, layout.regressors - columns])
    found = np.exp(sums.log_denominator - 2 * state.log_denominator) * mean_product(sums, layout, pair, pair)[0]
    assert np.all(found >= (1 / 40) * (1 - 1e-9))


def test_offsets_beyond_all_fourth_powers(generator):
    key = generator.normal(size=(30, 1))
    problem = Problem.from_arrays([[1e90]], key, key, kernel="constant", degree=2)
    state, layout = choose(problem).reduce(problem), problem.layout
    fit = solve(state, layout)
    pair = fit.base, fit.tilt
    found = mean_product(state, layout, pair, pair)[0] / 30
    assert found[0] == pytest.approx(1 / 30, rel=1e-9)


NPROBUST = {  # tau.bc and se.rb of R's nprobust: lprobust(p = 1, h = b = 0.06, kernel = "gau", vce = "nn")
    0.0: (-0.004112942052698819, 0.06816674843583047),
    0.1: (0.7780512796341741, 0.04926387677536108),
    0.25: (1.6918805020979137, 0.05313932136977993),
    0.5: (2.0516998835453517, 0.0661514551474661),
    0.75: (-0.28109839556415717, 0.09103494208282248),
    0.9: (-0.45617683175549073, 0.07410548615565582),
    1.0: (-0.21274479990221853, 0.2681681081908643),
}


def test_the_robust_estimate_of_nprobust():
    """Its bias-corrected estimate is the local quadratic fit, and its error the sandwich of that fit's shares."""
    steps = np.arange(1, 201)
    x, chance = np.mod(0.5 + steps * 0.6180339887498949, 1.0), np.mod(0.5 + steps * 0.41421356237309515, 1.0)
    y = np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2) + (0.2 + 0.3 * x) * ndtri(chance)
    distance = np.abs(x[:, None] - x)
    np.fill_diagonal(distance, np.inf)
    near = distance <= np.sort(distance, axis=1)[:, 2:3]  # with all that are as far as the third
    count = near.sum(axis=1)
    noise = count / (count + 1) * (y - near @ y / count) ** 2
    places, h, layout = np.array(list(NPROBUST)), 0.06, Layout(1, 1, 2)
    state = pool_state(places, x, y, bandwidth=h, degree=2)
    fit = solve(state, layout)
    squared = pool_state(places, x, y, bandwidth=h * 0.5**0.5, key_weight=noise, degree=2)
    pair = fit.base, fit.tilt * [0.5**0.5, 0.5]
    unit = np.exp(squared.log_denominator - 2.0 * state.log_denominator)
    found = np.column_stack([fit.intercept, np.sqrt(unit * mean_product(squared, layout, pair, pair)[0])])
    assert_allclose(found, list(NPROBUST.values()), rtol=1e-11)
