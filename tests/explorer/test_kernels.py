"""Kernels in JavaScript are those of the registry, and what cannot be traced says so."""

import math

import numpy as np
import pytest

import kernpool
from kernpool.explorer.numpy_to_javascript import UntraceableKernelError, trace
from kernpool.explorer.page_bundle import bundle, kernels_source
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel, get_kernel
from tests.support.browser import ask, browser, opened, page_of  # noqa: F401  # the fixture

NAMES = kernpool.kernel_names()[:11]
EPSILON = np.finfo(float).eps


def of_everything(u):
    """Every function of NumPy that a profile is likely to use, decreasing."""
    x = np.clip(u, 0.0, 3.0)
    falling = np.exp(-np.square(x)) + np.sqrt(1 / (1 + np.abs(x))) + np.where((u < 1) & ~(u > 2), 0.5, 0.0)
    falling = falling + np.reciprocal(np.cosh(x)) + np.log1p(np.minimum(np.full_like(u, 2.0), 1 / (1 + u)))
    falling = np.asarray(falling) + np.arctan(1 / (1 + u)) + 2.0**-x + np.power(0.5, x) + (1 + u) ** -1.5
    return falling + np.maximum(1 - u, 0.0) ** 2 + np.positive(0.0 * u) + (-u) * 0.0


MINE = [
    kernpool.make_kernel("of everything", of_everything),
    kernpool.make_kernel("raised cosine", lambda u: np.where(u < 1, 1 + np.cos(np.pi * u), 0.0), support=1.0),
    kernpool.make_kernel("cauchy", lambda u: 1 / (1 + u**2) ** 2, log_slope=lambda u: -4 * u / (1 + u**2)),
]


@pytest.fixture(scope="module")
def page(browser):  # noqa: F811  # a fixture
    module = bundle(["kernels.js", "exponential.js"], [*NAMES, *MINE])
    with opened(browser, page_of(module, ["KERNELS", "FACTORS", "exponential"])) as found:
        yield found


@pytest.mark.parametrize("kernel", [*map(get_kernel, NAMES), *MINE], ids=lambda kernel: kernel.name)
def test_every_function_of_a_kernel(page, kernel):
    u = np.r_[
        0.0,
        np.geomspace(1e-9, 0.999999999, 60),
        np.nextafter(1.0, 0.0),
        1.0,
        np.nextafter(1.0, 2.0),
        1.5,
        3.0,
        9.0,
        50.0,
    ]
    function = """(name, u) => {
      const { profile, logProfile, logSlope, profiles, logProfiles } = KERNELS[name], loop = (of) => {
        const all = Float64Array.from([NaN, ...u, NaN]);
        of(all, 1, u.length + 1);
        return Array.from(all);
      };
      const text = (all) => Array.from(all, String);
      const slope = logSlope ? u.map(logSlope) : [];
      return [u.map(profile), u.map(logProfile), slope, loop(profiles), loop(logProfiles)].map(text);
    }"""
    profile, logarithm, slope, profiles, logarithms = (
        np.array(list(map(float, part))) for part in ask(page, function, kernel.name, u.tolist())
    )
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(profile, kernel.profile(u), rtol=8 * EPSILON, atol=1e-320)
        np.testing.assert_allclose(logarithm, kernel.log_profile(u), rtol=8 * EPSILON, atol=8 * EPSILON)
        inside = kernel.profile(u) > 0
        if kernel.log_slope is not None:
            np.testing.assert_allclose(slope[inside], kernel.log_slope(u)[inside], rtol=16 * EPSILON)
    np.testing.assert_array_equal(profiles, [np.nan, *profile, np.nan])  # the ends are not touched
    np.testing.assert_array_equal(logarithms, [np.nan, *logarithm, np.nan])


@pytest.mark.parametrize("name", categorical_kernel_names())
def test_tables_of_levels(page, name):
    kernel = get_categorical_kernel(name)
    for levels in (np.array([0.0, 1.0, 3.0]), np.arange(6.0)):
        given = levels if kernel.ordered else len(levels)
        distance = np.abs(levels[:, None] - levels) if kernel.ordered else 1.0 - np.eye(len(levels))
        for lam in (0.0, 0.25, kernel.largest(len(levels))):
            function = "(name, distances, lambda, count) => distances.map((one) => FACTORS[name](one, lambda, count))"
            found = ask(page, function, name, distance.ravel().tolist(), lam, len(levels))
            np.testing.assert_allclose(np.reshape(found, distance.shape), kernel.table(given, lam), rtol=4 * EPSILON)


def test_the_exponential(page):
    g = np.random.default_rng(0)
    x = np.r_[g.uniform(-745, 709, 3000), g.uniform(-1, 1, 3000), 0.0, -1e-300, -700.0, 700.0, -744.9, 709.7]
    found = np.array(ask(page, "(x) => x.map(exponential)", x.tolist()), dtype=float)
    exact = np.array([math.exp(one) for one in x])
    np.testing.assert_allclose(found, exact, rtol=2.5 * EPSILON, atol=5e-324)
    special = ask(page, "() => [-Infinity, Infinity, NaN, -800, 800].map((x) => String(exponential(x)))")
    assert special == ["0", "Infinity", "NaN", "0", "Infinity"]


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        (lambda u: np.array([math.exp(-float(x)) for x in u]), r"len|index|math|loop"),
        (lambda u: math.exp(-u), "NumPy's"),
        (lambda u: 1.0 if u < 1 else 0.0, "np.where"),
        (lambda u: u[0], "index"),
        (lambda u: np.sort(u), "sort"),
        (lambda u: np.add.reduce(u), "add"),
        (lambda u: np.exp(-u, dtype=float), "exp with more"),
        (lambda u: np.piecewise(u, [u < 1], [1.0]), "piecewise"),
        (lambda u: u.astype(float), "astype"),
        (lambda u: u + np.arange(3), "not a number"),
        (lambda _: "wide", "not a number"),
    ],
)
def test_what_cannot_be_traced_says_so(profile, reason):
    with pytest.raises(UntraceableKernelError, match=reason):
        trace(profile, "u")


def test_the_message_names_the_kernel():
    def ours(u):
        return np.where(np.sinc(u) > 0, 1.0, 0.0)

    with pytest.raises(
        UntraceableKernelError, match=r"kernel 'stepped' cannot be written in JavaScript.*sinc.*another kernel"
    ):
        kernels_source([kernpool.make_kernel("stepped", ours, support=1.0)])


def test_numbers_keep_their_digits():
    assert trace(lambda u: u * (1 / 3) - -1e-300, "u")[1] == "((u * 0.3333333333333333) - -1e-300)"
    assert trace(lambda u: -(-2.0 * u), "u")[1] == "(- (-2 * u))"
    assert trace(lambda u: np.float32(0.5) ** u, "u")[1] == "((0.5) ** u)"
