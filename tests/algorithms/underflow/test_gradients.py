"""Gradients of queries far from all keys, against difference quotients of 150 digits."""

from dataclasses import replace

import numpy as np
import pytest
from mpmath import exp, matrix, mp, mpf, sqrt

from kernpool import Problem, choose, make_kernel
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Factors
from kernpool.kernels import get_categorical_kernel
from tests.support.capabilities import algorithms, fitting_columns
from tests.support.log_kernels import LOG
from tests.support.problems import EVERYTHING
from tests.support.thinning import slow

INFINITE = ["gaussian", "laplace", "logistic"]


def exact_gradients(
    query, key, value, *, bandwidth, kernel="gaussian", composition="radial", key_weight=None, degree=0, bias=None
):
    """Difference quotients of the sum of all pooled values; that by log_bandwidth has one row per query."""

    def pooled(i, q, keys, values, h):
        logits = []
        for j, k in enumerate(keys):
            u = [(q[a] - k[a]) / h[a] for a in range(len(h))]
            radial = composition == "radial"
            parts = [sqrt(sum(x * x for x in u))] if radial else [abs(x) for x in u]
            logits.append(sum(LOG[kernel](part) for part in parts) + (0 if bias is None else mpf(bias[i][j])))
        top = max(logits)
        weights = [w * exp(logit - top) for w, logit in zip(times, logits, strict=True)]
        if not degree:
            sums = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in values.T]
            return sum(sums) / sum(weights)
        design = matrix([[1, *((k[a] - q[a]) / h[a] for a in range(len(h)))] for k in keys])
        weighted = matrix([[w * x for x in design[j, :]] for j, w in enumerate(weights)])
        return sum(mp.lu_solve(weighted.T * design, weighted.T * matrix(list(column)))[0] for column in values.T)

    with mp.workdps(150):
        exactly = np.vectorize(mpf, otypes=[object])
        q, k, v, h = (exactly(np.asarray(x, dtype=float)) for x in (query, key, value, bandwidth))
        times = exactly(np.ones(len(k)) if key_weight is None else np.asarray(key_weight, dtype=float))
        found = {"query": np.zeros(q.shape), "log_bandwidth": np.zeros(q.shape)}
        found |= {"key": np.zeros(k.shape), "value": np.zeros(v.shape)}
        for i in range(len(q)):
            parts = {"query": q[i], "key": k, "value": v, "log_bandwidth": h}
            for name, array in parts.items():
                for index in np.ndindex(array.shape):
                    step = mpf(10) ** -50
                    ends = []
                    for moved in (array.copy(), array.copy()):
                        moved[index] = moved[index] * exp(step) if name == "log_bandwidth" else moved[index] + step
                        ends.append(pooled(i, *(parts | {name: moved}).values()))
                        step = -step
                    row = (i, *index) if name in ("query", "log_bandwidth") else index
                    found[name][row] += float((ends[0] - ends[1]) / (2 * step))
    return found


def check(problem, expected, *, rtol=1e-8, names=None):
    """Every algorithm that can do the problem has these gradients."""
    for name in names or [name for name, each in ALGORITHMS.items() if each.refusal(problem) is None]:
        plan = choose(problem, name)
        cotangent = np.ones((len(problem.query), problem.value.shape[1]))
        found = plan.pullback(problem, plan.reduce(problem), cotangent, EVERYTHING)
        for wanted in EVERYTHING:
            target = expected[wanted]
            atol = rtol * max(1.0, np.abs(target).max())
            np.testing.assert_allclose(
                getattr(found, wanted), target, rtol=0, atol=atol, err_msg=f"{name}, by {wanted}"
            )


def arrange(which, far, columns, kernel):
    """Some keys, and a query many bandwidths away."""
    h, generator = 0.7, np.random.default_rng(5)
    query, key = np.zeros((1, columns)), h * generator.normal(size=(3, columns))
    query[0, 0] = far * h
    near = 1.0 / far if kernel == "gaussian" else 1.0  # how much nearer a key has to be to count three times as much
    if which == "competing keys":
        key[:] = 0.0
        key[1:, 0] = (near * h, -2.0 * near * h)
    elif which == "keys at one place":
        key[1] = key[0]
        key[2, 0] = -9.0
    elif which == "a tie":
        query[:], key[:] = 0.0, 0.0
        key[:, 0] = far * h * np.array([1.0, -1.0, 4.0])
    return query, key, generator.normal(3.0, 1.0, size=(3, 2)), np.full(columns, h)


@pytest.mark.covering
@pytest.mark.parametrize("which", ["keys as they come", "competing keys", "keys at one place", "a tie"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", INFINITE)
def test_gradients_are_right_at_any_distance(kernel, columns, which):
    for far in (1e2, 1e5, 1e8, 1e12, 1e15):
        query, key, value, h = arrange(which, far, columns, kernel)
        options = {"kernel": kernel, "bandwidth": h}
        problem = Problem.from_arrays(query, key, value, **options)
        check(problem, exact_gradients(query, key, value, **options))


@algorithms()
@pytest.mark.parametrize("far", [3e4, 1e8, 1e12, 1e40, 1e140])
def test_where_one_key_has_all_the_weight_gradients_are_exactly_zero(far, algorithm):
    columns = fitting_columns(algorithm)
    key, value = np.tile([[0.1], [0.7], [-3.0]], columns), np.array([[0.3], [1e3], [7.0]])
    problem = Problem.from_arrays([[far] * columns], key, value, bandwidth=0.9)
    plan = choose(problem, algorithm)
    found = plan.pullback(problem, plan.reduce(problem), np.ones((1, 1)), EVERYTHING)
    for name in ("query", "key", "log_bandwidth"):
        np.testing.assert_array_equal(getattr(found, name), 0.0, err_msg=name)
    np.testing.assert_array_equal(found.value, [[0.0], [1.0], [0.0]])


@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("kernel", INFINITE)
def test_columns_of_different_bandwidths_and_weights(kernel, composition):
    """Grid points at equal distances, counted in different bandwidths."""
    h = np.array([0.5e-8, 2e-8])
    query, key = np.array([[0.0, 0.0]]), np.array([[0.75, 4.0], [1.25, 0.0], [-0.75, 4.0], [3.0, 20.0]])
    if composition == "product":
        key[1, 0] = 1.75
    value = np.array([[1.0], [3.0], [-2.0], [100.0]])
    options = {"kernel": kernel, "bandwidth": h, "composition": composition, "key_weight": [1.0, 2.5, 0.125, 1.0]}
    check(Problem.from_arrays(query, key, value, **options), exact_gradients(query, key, value, **options))


def test_a_tie_of_a_local_linear_fit():
    """The line through the two keys at the same distance, one on either side."""
    for far in (1e2, 1e5, 1e8, 1e11):
        query, key = np.array([[0.0]]), np.array([[1.0], [-1.0], [5.0]])
        value, options = np.array([[1.0], [4.0], [2.0]]), {"bandwidth": [1 / far]}
        problem = Problem.from_arrays(query, key, value, degree=1, **options)
        check(problem, exact_gradients(query, key, value, degree=1, **options), rtol=1e-6)


def test_a_local_linear_fit_of_one_place_is_constant():
    query, key = np.array([[1e9]]), np.array([[0.5], [0.5], [-8.0]])
    value, options = np.array([[1.0], [4.0], [2.0]]), {"bandwidth": [0.3]}
    check(Problem.from_arrays(query, key, value, degree=1, **options), exact_gradients(query, key, value, **options))


@pytest.mark.parametrize("kernel", INFINITE)
def test_a_bias_on_all_logits(kernel):
    """What is far by a mask alone is no farther than it was."""
    query, key, value = np.array([[0.2]]), np.array([[0.0], [1.0], [2.5]]), np.array([[1.0], [3.0], [7.0]])
    bias = np.array([[-(2.0**40), -(2.0**40) + 0.5, -(2.0**40) + 1.0]])
    expected = exact_gradients(query, key, value, kernel=kernel, bandwidth=[0.8], bias=bias)
    check(Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.8, attn_mask=bias), expected)


@pytest.mark.covering
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("columns", [3, *slow(1, 17)])  # each compiles loops
def test_near_and_far_queries_together(columns, n_jobs, generator):
    """Weights, own keys, blocks: the sum of the gradients of both, with the same bits for any number of threads."""
    query, key = generator.normal(size=(700, columns)), generator.normal(size=(900, columns))
    value, weight = generator.normal(size=(900, 2)), generator.integers(0, 3, 900).astype(float)
    far = np.arange(700) % 3 == 1
    query[far, 0] += 1e9
    own = generator.integers(-1, 900, 700)
    problem = Problem.from_arrays(query, key, value, key_weight=weight, exclude_self=True, self_index=own)
    cotangent = generator.normal(size=(700, 2))
    for name in ("reference", "brute", "kd_tree"):
        if ALGORITHMS[name].refusal(problem) is not None:
            continue
        plan, seen = choose(problem, name), []
        state = plan.reduce(problem)
        found = plan.pullback(
            problem,
            state,
            cotangent,
            EVERYTHING,
            n_jobs=n_jobs,
            progress=lambda *report, seen=seen: seen.append(report),
        )
        assert not seen or seen[-1][0] == seen[-1][1]
        again = plan.pullback(problem, state, cotangent, EVERYTHING, n_jobs=1)
        parts = {}
        for rows in (np.flatnonzero(far), np.flatnonzero(~far)):
            part = problem.block(rows)
            parts[len(rows)] = plan.pullback(part, plan.reduce(part), cotangent[rows], EVERYTHING)
            for wanted in ("query", "log_bandwidth"):
                target = getattr(parts[len(rows)], wanted)
                np.testing.assert_allclose(getattr(found, wanted)[rows], target, atol=1e-12 * np.abs(target).max())
        for wanted in EVERYTHING:
            assert getattr(found, wanted).tobytes() == getattr(again, wanted).tobytes()
        for wanted in ("key", "value"):
            target = sum(getattr(part, wanted) for part in parts.values())
            np.testing.assert_allclose(getattr(found, wanted), target, atol=1e-12 * np.abs(target).max())


@pytest.mark.parametrize("algorithm", ["auto", "brute"])
def test_cells_of_categorical_columns_compete_from_afar(algorithm):
    """Two keys of different levels near each other, and the query far from both."""
    kernel, far, h = get_categorical_kernel("li_racine"), 1e8, 0.7
    query, key, value = np.array([[far * h]]), np.array([[0.0], [h / far], [-1.0]]), np.array([[1.0], [3.0], [8.0]])
    problem = Problem.from_arrays(query, key, value, bandwidth=h)
    levels = np.array([[0], [1], [0]])
    tables = (kernel.table(2, 0.25),), (kernel.table_slope(2, 0.25),)
    mixed = problem.with_factors(Factors(levels[:1], levels, *tables))
    plan = choose(mixed, algorithm)
    expected = exact_gradients(query, key, value, bandwidth=[h], kernel="gaussian", key_weight=[1.0, 0.25, 1.0])
    found = plan.pullback(mixed, plan.reduce(mixed), np.ones((1, 1)), ["log_bandwidth", "query"])
    for name in ("log_bandwidth", "query"):
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_state_of_other_values_is_the_fit(degree):
    """The hat diagonal is differentiated so: values are zero, and the state says what they would be."""
    problem = Problem.from_arrays([[1e6]], [[0.0], [0.25], [-1.0]], np.zeros((3, 1)), degree=degree)
    plan = choose(problem, "reference")
    state = plan.reduce(problem)
    numerator = state.numerator.copy()
    numerator[:, 0] = 5.0 * state.denominator
    found = plan.pullback(problem, replace(state, numerator=numerator), np.ones((1, 1)), {"log_bandwidth"})
    if not degree:
        assert found.log_bandwidth[0, 0] == pytest.approx(-5.0 * (1e6 - 0.25) ** 2, rel=1e-9)
    else:
        assert np.isfinite(found.log_bandwidth).all()


def test_kernels_of_ones_own():
    """Tails that fall faster than any that the package comes with."""
    steep = make_kernel(
        "steep", lambda u: np.exp(-(u**4)), log_profile=lambda u: -(u**4), log_slope=lambda u: -4 * u**3
    )
    query, key, value = np.array([[1e5]]), np.array([[0.0], [1e-15], [-1.0]]), np.array([[1.0], [3.0], [8.0]])
    problem = Problem.from_arrays(query, key, value, kernel=steep)
    plan = choose(problem, "reference")
    found = plan.pullback(problem, plan.reduce(problem), np.ones((1, 1)), EVERYTHING)
    share = np.array([1.0, np.exp(4.0)]) / (1.0 + np.exp(4.0))  # the logits differ by 4 u^3 times 1e-15
    np.testing.assert_allclose(found.value[:, 0], [*share, 0.0], rtol=1e-6)
    spread = share[0] * share[1] * 2.0
    assert found.key[1, 0] == pytest.approx(4e15 * spread, rel=1e-6)
    assert found.log_bandwidth[0, 0] == pytest.approx(-4.0 * 4.0 * spread, rel=1e-6)


def test_what_cannot_be_told_is_refused():
    """Distances that agree to 32 digits, of which logits of 1e40 would need more."""
    h = np.array([1.0, 1.5]) * 2.0**-66
    problem = Problem.from_arrays([[2.0**-107, 0.0]], [[3.0, 1.5], [1.0, 4.5]], [1.0, 2.0], bandwidth=h)
    plan = choose(problem, "brute")
    with pytest.raises(ValueError, match=r"gradients of 1 of 1 far queries are not determined.* larger bandwidth"):
        plan.pullback(problem, plan.reduce(problem), np.ones((1, 1)), EVERYTHING)
