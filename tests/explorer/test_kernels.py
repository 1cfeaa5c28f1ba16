"""Kernels in JavaScript are those of the registry, and those of users are interpolated."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import NadarayaWatsonRegressor, explore, make_kernel
from kernpool.explorer.explorer_model import payload_of
from kernpool.kernels import BUILT_IN, categorical_kernel_names, get_categorical_kernel, get_kernel
from tests.support.browser import ask
from tests.support.explorer_payloads import unpacked

EPSILON = np.finfo(float).eps
# Around the edge, between places of a table, and so far that exp(-u) underflows.
U = np.r_[0.0, np.geomspace(1e-9, 0.999999999, 60), 1 - EPSILON / 2, 1.0, 1 + EPSILON, 1.5, 3.0, 9.0, 50.0, 900.0]
FUNCTIONS = """(tables, name, u) => {
  addKernels(tables);
  const { support, profile, logProfile, profiles, logProfiles } = KERNELS[name];
  const loop = (of) => {
    const all = Float64Array.from([NaN, ...u, NaN]);
    of(all, 1, u.length + 1);
    return all;
  };
  const found = [u.map(profile), u.map(logProfile), profiles ? loop(profiles) : [], loop(logProfiles)];
  return [support, ...found].map((one) => typeof one === "number" ? String(one) : Array.from(one, String));
}"""


def functions(page, name, tables=()):
    """Return the support, profiles and logarithms at U, after a check that loops over arrays give the same."""
    support, *found = ask(page, FUNCTIONS, list(tables), name, U.tolist())
    profile, logarithm, profiles, logarithms = (np.array(list(map(float, one))) for one in found)
    for all_at_once, one_by_one in ((profiles, profile), (logarithms, logarithm)):
        if all_at_once.size:  # of kernels of infinite support, weights are never made of profiles
            assert_array_equal(all_at_once, [np.nan, *one_by_one, np.nan])  # the ends are not touched
    return float(support), profile, logarithm


@pytest.mark.parametrize("kernel", [*map(get_kernel, BUILT_IN)], ids=lambda kernel: kernel.name)
def test_every_function_of_a_kernel(page, kernel):
    support, profile, logarithm = functions(page, kernel.name)
    assert support == kernel.support
    with np.errstate(all="ignore"):
        expected = kernel.log_profile(U)
        rounding = EPSILON * (8 + np.minimum(np.abs(expected), 746))  # of a logarithm, and of its exponential
        assert np.all(np.abs(profile - kernel.profile(U)) <= rounding * kernel.profile(U) + 1e-320)
        assert_allclose(logarithm, expected, rtol=8 * EPSILON, atol=8 * EPSILON)


MINE = [
    make_kernel("raised cosine", lambda u: np.where(u < 1, 1 + np.cos(np.pi * u), 0.0), support=1.0),
    make_kernel("no support given", lambda u: np.maximum(1 - u, 0.0) ** 2),
    make_kernel("step at the edge", lambda u: np.where(u < 1, 2.0 - u, 0.0), support=1.0),
    make_kernel("cauchy", lambda u: 1 / (1 + u**2) ** 2),
    make_kernel("smooth end", lambda u: np.where(u < 1, np.exp(-1 / np.maximum(1 - u**2, 1e-9)), 0.0)),
    make_kernel("underflow", lambda u: np.exp(-0.5 * u**2)),
    make_kernel("logarithm given", lambda u: np.exp(-0.5 * u**2), log_profile=lambda u: -0.5 * u**2),
]


def payload_with(kernel, x, **options):
    model = NadarayaWatsonRegressor(kernel, empty="nan", **options).fit(x, np.sin(x[:, 0]))
    return model, payload_of(explore(model).subject)


@pytest.mark.parametrize("kernel", MINE, ids=lambda kernel: kernel.name)
def test_a_kernel_of_ones_own_is_interpolated(page, kernel):
    """Profiles are right to 1e-9 of that at zero, and weights of keys far away to as many digits."""
    x = np.sort(np.random.default_rng(0).uniform(0, 5, size=(80, 1)), axis=0)
    model, payload = payload_with(kernel, x, bandwidth=0.4)
    assert payload["kernels"] == [*BUILT_IN, kernel.name]
    support, profile, logarithm = functions(page, kernel.name, payload["tables"])
    is_inside = U != 1.0  # where a step is at the edge, the edge itself is on its other side
    with np.errstate(all="ignore"):
        expected, logs = kernel.profile(U), kernel.log_profile(U)
    assert_allclose(profile[is_inside], expected[is_inside], rtol=0, atol=1e-9 * expected[0])
    if support == np.inf:
        is_tail = (logs < -1) & (logs > -600)
        assert_allclose(logarithm[is_tail], logs[is_tail], rtol=1e-9)
    places = np.linspace(0.05, 4.95, 40)
    function = """(payload, places) => {
      const pool = makePool(readData(payload), payload.settings), query = { numeric: [0], codes: [] };
      return pack(pool.curve(0, Float64Array.from(places), query));
    }"""
    curve = unpacked(ask(page, function, payload, places.tolist()))
    assert_allclose(curve, model.predict(places[:, None]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", categorical_kernel_names())
def test_tables_of_levels(page, name):
    kernel = get_categorical_kernel(name)
    for levels in (np.array([0.0, 1.0, 3.0]), np.arange(6.0)):
        given = levels if kernel.ordered else len(levels)
        distance = np.abs(levels[:, None] - levels) if kernel.ordered else 1.0 - np.eye(len(levels))
        for lam in (0.0, 0.25, kernel.largest(len(levels))):
            function = "(name, distances, lambda, count) => distances.map((one) => FACTORS[name](one, lambda, count))"
            found = ask(page, function, name, distance.ravel().tolist(), lam, len(levels))
            assert_allclose(np.reshape(found, distance.shape), kernel.table(given, lam), rtol=4 * EPSILON)


def test_the_exponential(page):
    g = np.random.default_rng(0)
    x = np.r_[g.uniform(-745, 709, 3000), g.uniform(-1, 1, 3000), 0.0, -1e-300, -700.0, 700.0, -744.9, 709.7]
    found = np.array(ask(page, "(x) => x.map(exponential)", x.tolist()), dtype=float)
    exact = np.array([math.exp(one) for one in x])
    assert_allclose(found, exact, rtol=2.5 * EPSILON, atol=5e-324)
    special = ask(page, "() => [-Infinity, Infinity, NaN, -800, 800].map((x) => String(exponential(x)))")
    assert special == ["0", "Infinity", "NaN", "0", "Infinity"]
