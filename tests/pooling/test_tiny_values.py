"""Values whose products with weights would underflow: scaling values scales the answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Problem, choose, kernel_names, merge, pool, pool_state
from tests.support.capabilities import able

SCALES = (1e-20, 1e-28, 1e-100, 1e-200, 1e-290)
WANTED = ("query", "key", "value", "log_bandwidth")


def test_far_queries_of_tiny_values_are_not_zero():
    for scale in SCALES:
        for algorithm in ("reference", "brute", "sweep", "kd_tree", "auto"):
            found = pool([25.0], [0.0, 0.1], scale * np.array([1.0, 2.0]), algorithm=algorithm)
            assert found[0] == pytest.approx(1.92379056 * scale, rel=1e-7), algorithm


@pytest.mark.covering
@pytest.mark.parametrize("scale", [2.0**-70, 2.0**-600, 2.0**-950])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("columns", [1, 2])
def test_powers_of_two_scale_the_answer_exactly(columns, degree, kernel, scale, generator):
    """One column of ordinary size beside a tiny one; near queries, and some at up to 36 bandwidths."""
    key = generator.normal(size=(700, columns))
    query = generator.normal(size=(40, columns)) * np.where(np.arange(40) % 4, 1.0, 12.0)[:, None]
    value = generator.normal((3.0, 5.0), size=(700, 2))
    options = {"kernel": kernel, "bandwidth": 0.9, "degree": degree}
    plain = Problem.from_arrays(query, key, value, **options)
    tiny = Problem.from_arrays(query, key, value * [1.0, scale], **options)
    for algorithm in able(plain):
        one, other = (choose(problem, algorithm).reduce(problem) for problem in (plain, tiny))
        expected, found = one.finalize("zero")[:, :2], other.finalize("zero")[:, :2]
        assert_allclose(found, expected * [1.0, scale], rtol=1e-13, err_msg=algorithm)


@pytest.mark.parametrize("kernel", [name for name in kernel_names() if name not in ("boxcar", "constant")])
@pytest.mark.parametrize("degree", [0, 1])
def test_gradients_scale_too(degree, kernel, generator):
    key, query = generator.normal(size=(300, 2)), generator.normal(size=(20, 2))
    value, cotangent = generator.normal((3.0, 5.0), size=(300, 2)), generator.normal(size=(20, 2))
    scale = 2.0**-300
    options = {"kernel": kernel, "bandwidth": 1.3, "degree": degree}
    gradients = []
    for factor in (1.0, scale):
        problem = Problem.from_arrays(query, key, value * factor, **options).without_center()
        for algorithm in able(problem):
            plan = choose(problem, algorithm)
            if plan._chosen.pullback is not None:
                found = plan.pullback(problem, plan.reduce(problem), cotangent, WANTED)
                gradients.append((factor, found))
    _, right = gradients[0]
    for factor, found in gradients:
        for name in WANTED:
            target = getattr(right, name) * (1.0 if name == "value" else factor)
            assert_allclose(getattr(found, name), target, rtol=1e-8, atol=1e-10 * np.abs(target).max())


def test_states_of_chunks_of_tiny_values_merge(generator):
    query, key = np.array([0.0, 25.0]), generator.normal(size=200)
    value = 1e-200 * generator.normal(3.0, size=200)
    parts = [pool_state(query, key[part], value[part], algorithm="brute") for part in (slice(0, 90), slice(90, 200))]
    expected = pool(query, key, 1e200 * value, algorithm="reference") / 1e200
    assert_allclose(merge(*parts).finalize()[:, 0], expected, rtol=1e-12)
