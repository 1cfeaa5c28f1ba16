"""The page's numbers are those of the engine: every weight, value and slope, in a real browser."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernpool
from kernpool import Problem
from kernpool.algorithms.reference import pair_weights
from kernpool.core.local_fit import RANK_TOLERANCE
from kernpool.pooling import Recipe, local_fit
from tests.support.browser import ask
from tests.support.explorer_answers import ANSWER, VALUES, WEIGHTS, assert_close, case, line
from tests.support.explorer_payloads import payload_of_arrays, settings, unpacked

# Where the engine warns, the page shows the same numbers.
pytestmark = pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning", "ignore::kernpool.RankDeficiencyWarning")
KERNELS = kernpool.kernel_names()[:11]
BANDWIDTHS = (0.003, 0.02, 0.1, 0.5, 3.0, 1e6)
# A slope that is not determined is bounded by covariances of which the engine has half of the digits left.
UNDETERMINED = 4.0 * np.finfo(np.float64).eps / RANK_TOLERANCE


def expected_fit(problem):
    """The plane of the engine; where the keys determine it, by offsets from their mean, which keeps all digits."""
    fit, value = local_fit(problem, Recipe.of()), problem.value + problem.value_center
    undetermined = fit.occupied & (fit.rank < problem.key.shape[1])
    pick = np.where(fit.occupied[:, None], fit.intercept, np.nan)
    weight = pair_weights(problem)[1]
    for i in np.flatnonzero(fit.occupied & ~undetermined) if problem.degree else ():
        alpha = weight[i, :, None] / weight[i].sum()
        key, level = np.sum(alpha * problem.key, axis=0), np.sum(alpha * value, axis=0)
        root = np.sqrt(alpha)
        plane = np.linalg.lstsq(root * (problem.key - key), root * (value - level), rcond=None)[0]
        fit.slope[i] = plane * problem.similarity.bandwidth[:, None]
        pick[i] = level + (problem.query[i] - key) @ plane
    if not problem.degree:
        return pick, None, np.zeros_like(undetermined), fit.rank
    slope = fit.slope / problem.similarity.bandwidth[:, None]
    return pick, np.where(fit.occupied[:, None, None], slope, np.nan), undetermined, fit.rank


def compare(reply, x, y, query, kernel, h, degree, composition="radial", weight=None):
    """Compare every answer with the engine's; return how many fits were of a plane that is not determined."""
    what = f"{kernel} h={h} degree={degree} {composition}"
    y, n, m = y.reshape(len(y), -1), len(x), len(query)
    c, d = y.shape[1], x.shape[1]
    name = kernel if composition == "radial" else f"product {kernel}"
    options = {"kernel": name, "bandwidth": h, "key_weight": weight}
    alpha = kernpool.pooling_weights(query, x, **options, empty="zero")
    found = unpacked(reply["weight"], m, n)
    assert_close(found, alpha, WEIGHTS, f"weights, {what}")
    problem = Problem.from_arrays(query, x, y, **options, degree=degree)
    value, slope, undetermined, rank = expected_fit(problem)
    size = np.ptp(y)
    tolerance = np.where(undetermined, UNDETERMINED, VALUES)[:, None] * size
    assert_close(unpacked(reply["value"], m, c), value, tolerance, f"values, {what}")
    assert_close(unpacked(reply["values"], c, m).T, value, tolerance, f"values of many, {what}")
    counts = unpacked(reply["counts"], m, 5)
    squares = np.sum(alpha**2 / (1.0 if weight is None else np.where(weight > 0, weight, 1.0)), axis=1)
    effective = np.divide(1.0, squares, where=squares > 0, out=np.zeros(m))
    assert_allclose(counts[:, 0], effective, rtol=1e-10, err_msg=f"effective size, {what}")
    assert_array_equal(counts[:, 3], ~alpha.any(axis=1), err_msg=f"empty windows, {what}")
    in_reach = np.sum(alpha > 0, axis=1)
    assert np.all(np.abs(counts[:, 1] - in_reach) <= np.sum((alpha < 1e-300) & (found < 1e-300), axis=1)), what
    if degree:
        found = unpacked(reply["slope"], m, d, c)
        # Of a plane that is not determined the engine's slope is rounding over next to nothing, and moves no value.
        sure = ~undetermined
        steep = np.maximum(np.abs(slope), size / np.broadcast_to(h, d)[None, :, None])
        assert_close(found[sure], slope[sure], VALUES * steep[sure], f"slopes, {what}")
        assert np.isfinite(found[undetermined]).all(), what
        assert_array_equal(counts[:, 4], rank, err_msg=f"rank, {what}")
    return int(np.count_nonzero(undetermined))


@pytest.mark.parametrize("degree", [0, 1])
def test_along_a_line(page, degree):
    x, y, query = line()
    combinations = [(kernel, h) for kernel in KERNELS for h in BANDWIDTHS]
    replies = ask(
        page, ANSWER, [payload_of_arrays(x, y)], [case(0, query, settings(*one, degree)) for one in combinations]
    )
    for (kernel, h), reply in zip(combinations, replies, strict=True):
        compare(reply, x, y, query, kernel, h, degree)
        assert_array_equal(unpacked(reply["curve"]), unpacked(reply["values"]))


@cache
def plane():
    """Two columns of different units, frequencies with zeros, two outputs."""
    g = np.random.default_rng(2)
    x = g.uniform(size=(90, 2)) * [1.0, 20.0]
    y = np.column_stack([np.cos(4 * x[:, 0]) + 0.1 * x[:, 1], 50 + g.normal(size=90)])
    weight = g.integers(0, 4, 90).astype(float)
    query = np.r_[g.uniform(-0.2, 1.2, size=(18, 2)) * [1.0, 20.0], x[[0, 5]]]
    return x, y, weight, query


@pytest.mark.parametrize("degree", [0, 1])
def test_in_two_columns_with_frequencies(page, degree):
    x, y, weight, query = plane()
    widths = [np.array([0.02, 0.7]), np.array([0.3, 6.0]), np.array([30.0, 1e4])]
    payloads = [payload_of_arrays(x, y[:, j], weight) for j in range(2)]
    combinations = [
        (kernel, h, composition) for kernel in KERNELS for h in widths for composition in ("radial", "product")
    ]
    cases = [
        case(j, query, settings(kernel, h, degree, composition))
        for kernel, h, composition in combinations
        for j in (0, 1)
    ]
    replies = ask(page, ANSWER, payloads, cases)
    for i, (kernel, h, composition) in enumerate(combinations):
        for j in (0, 1):
            compare(replies[2 * i + j], x, y[:, j], query, kernel, h, degree, composition, weight)
