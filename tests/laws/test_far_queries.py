"""Queries far from all keys: one rule for every way of pooling, and gradients against quotients of 150 digits."""

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf, sqrt
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, Problem, RankDeficiencyWarning, choose, open_chunks, pool
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Exclusion, Factors
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling.plan import FAR
from tests.support.capabilities import algorithms, fitting_columns
from tests.support.problems import EVERYTHING

EPSILON = np.finfo(float).eps
LOG = {
    "gaussian": lambda u: -u * u / 2,
    "laplace": lambda u: -u,
    "logistic": lambda u: -u - 2 * log(1 + exp(-u)),
}


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")
@pytest.mark.parametrize("degree", [1, 2])
def test_every_fit_ends_as_the_value_of_the_nearest_key(degree, generator):
    """Arrays, chunks and estimators alike, with a warning, as near to it as weights are to those of one key."""
    key = np.sort(generator.random(40))
    value, query = np.sin(6.0 * key) + 5.0, np.array([-1e3, -40.0, 40.0, 1e3, 1e9])
    options = {"bandwidth": 0.05, "degree": degree}
    with pytest.warns(RankDeficiencyWarning, match=r"around 5 of 5 queries"):
        found = pool(query, key, value, **options)
    assert_allclose(found, value[[0, 0, -1, -1, -1]], rtol=1e-6)
    with pytest.warns(RankDeficiencyWarning):
        chunked = pool(query, open_chunks([(key[:12], value[:12]), (key[12:], value[12:])]), **options)
    assert_allclose(chunked, found, rtol=1e-12)
    if degree == 1:
        with pytest.warns(RankDeficiencyWarning):
            predicted = LocalLinearRegressor(bandwidth=0.05, ridge=0.0).fit(key[:, None], value).predict(query[:, None])
        assert_allclose(predicted, found, rtol=1e-12)


def exact_gradients(query, key, value, *, bandwidth, kernel):
    """Difference quotients of the pooled value of one query and one output."""

    def pooled(q, keys, values, h):
        u = [[(q[a] - k[a]) / h[a] for a in range(len(h))] for k in keys]
        logits = [LOG[kernel](sqrt(sum(x * x for x in row))) for row in u]
        weights = [exp(logit - max(logits)) for logit in logits]
        return sum(w * v for w, v in zip(weights, values[:, 0], strict=True)) / sum(weights)

    with mp.workdps(150):
        exactly, step, found = np.vectorize(mpf, otypes=[object]), mpf(10) ** -50, {}
        parts = {"query": query[0], "key": key, "value": value, "log_bandwidth": bandwidth}
        parts = {name: exactly(np.asarray(part, dtype=float)) for name, part in parts.items()}
        for name, part in parts.items():
            found[name] = np.zeros(part.shape)
            for index in np.ndindex(part.shape):
                ends = []
                for by in (step, -step):
                    moved = part.copy()
                    moved[index] = moved[index] * exp(by) if name == "log_bandwidth" else moved[index] + by
                    ends.append(pooled(*(parts | {name: moved}).values()))
                found[name][index] = float((ends[0] - ends[1]) / (2 * step))
    return found


@pytest.mark.parametrize("which", ["keys as they come", "competing keys", "a tie"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
def test_gradients_lose_no_more_than_logits_round(kernel, columns, which):
    for far in (1e2, 1e4, 1e6):
        h, generator = np.full(columns, 0.7), np.random.default_rng(5)
        query, key = np.zeros((1, columns)), 0.7 * generator.normal(size=(3, columns))
        query[0, 0] = 0.7 * far
        if which == "competing keys":
            near = 0.7 / far if kernel == "gaussian" else 0.7  # how much nearer a key counts about three times as much
            key[:] = 0.0
            key[1:, 0] = near, -2.0 * near
        elif which == "a tie":
            query[:], key[:] = 0.0, 0.0
            key[:, 0] = 0.7 * far * np.array([1.0, -1.0, 4.0])
        value = generator.normal(3.0, 1.0, size=(3, 1))
        problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h)
        expected = exact_gradients(query, key, value, kernel=kernel, bandwidth=h)
        logit = far**2 / 2 if kernel == "gaussian" else far
        for name in [name for name, each in ALGORITHMS.items() if each.refusal(problem) is None]:
            plan = choose(problem, name)
            found = plan.pullback(problem, plan.reduce(problem), np.ones((1, 1)), EVERYTHING)
            for wanted in EVERYTHING:
                atol = (1e-11 + 16.0 * EPSILON * logit) * max(1.0, np.abs(expected[wanted]).max())
                got = getattr(found, wanted).reshape(expected[wanted].shape)
                assert_allclose(got, expected[wanted], rtol=0, atol=atol, err_msg=f"{name}, by {wanted}")


@algorithms()
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("far", [1e8, 1e12])
def test_beyond_that_a_fit_moves_with_the_value_of_the_nearest_key_alone(far, degree, algorithm, generator):
    """Next to near queries, whose gradients are as they were; with the same bits for any number of threads."""
    columns = fitting_columns(algorithm)
    key, value = np.tile(generator.normal(size=(30, 1)), columns), generator.normal(size=(30, 2))
    query = np.vstack([key[:9] + 0.1, np.full((1, columns), far)])
    problem = Problem.from_arrays(query, key, value, bandwidth=0.9, degree=degree)
    if ALGORITHMS[algorithm].refusal(problem) is not None:
        pytest.skip("local constant fits alone")
    plan, cotangent = choose(problem, algorithm), generator.normal(size=(10, 2))
    state = plan.reduce(problem)
    assert state.log_denominator[-1] < -FAR
    found = plan.pullback(problem, state, cotangent, EVERYTHING)
    near = problem.block(slice(0, 9))
    expected = plan.pullback(near, state.rows(slice(0, 9)), cotangent[:9], EVERYTHING)
    for name in ("query", "log_bandwidth"):
        assert_array_equal(getattr(found, name)[9:], 0.0)
        assert_allclose(getattr(found, name)[:9], getattr(expected, name), rtol=1e-12, atol=1e-13)
    assert_allclose(found.key, expected.key, rtol=1e-12, atol=1e-13)
    by_value = expected.value.copy()
    by_value[np.argmax(key[:, 0])] += cotangent[9]
    assert_allclose(found.value, by_value, rtol=1e-12, atol=1e-13)
    again = plan.pullback(problem, state, cotangent, EVERYTHING, n_jobs=2)
    for name in EVERYTHING:
        assert getattr(found, name).tobytes() == getattr(again, name).tobytes()


@pytest.mark.parametrize("sums", ["categories", "groups"])
def test_parts_of_a_sum_follow_the_same_rule(sums):
    """Cells of categories, and the groups that a query does not belong to: no gradient but that of near queries."""
    query, key, value = np.array([[1e8], [0.2]]), np.array([[0.0], [0.3], [-1.0]]), np.array([[1.0], [3.0], [8.0]])
    problem, codes = Problem.from_arrays(query, key, value, bandwidth=0.7), np.array([[0], [1], [0]])
    if sums == "categories":
        kernel = get_categorical_kernel("li_racine")
        tables = (kernel.table(2, 0.25),), (kernel.table_slope(2, 0.25),)
        problem = problem.with_factors(Factors(codes[:2], codes, *tables))
    else:
        problem = problem.excluding(np.array([1, 1]), Exclusion(codes[:, 0]))
    for algorithm in ("auto", "brute"):
        plan = choose(problem, algorithm)
        found = plan.pullback(problem, plan.reduce(problem), np.ones((2, 1)), ["log_bandwidth", "query"])
        for gradient in (found.log_bandwidth, found.query):
            assert gradient[0, 0] == 0.0 != gradient[1, 0]
