"""What every weighted mean has to be, for whatever data and in every algorithm that can do it: properties.

A problem is drawn first, and then an algorithm from those that can do it. One in three is large enough for several
leaves, tiles, cells and panels, and for a transform.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, empty_state, kernel_names, merge, pool, pool_state, pooling_weights
from kernpool.pooling import rounding_bound
from tests.support.capabilities import OTHERS, able, algorithms, fitting_columns
from tests.support.problems import with_products

EPSILON = np.finfo(float).eps
seeds = st.integers(0, 10**6)
numbers = st.floats(-100, 100).map(lambda x: round(x, 3))  # far from underflow
EVERY_KERNEL = with_products(kernel_names())


@dataclass(frozen=True)
class Case:
    """Queries, keys and values, how they are pooled, and by what."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    key_weight: np.ndarray | None
    kernel: str
    bandwidth: float
    algorithm: str = "auto"

    def __repr__(self):
        weights = "none" if self.key_weight is None else f"{self.weight.min():g} to {self.weight.max():g}"
        sizes = f"query {self.query.shape}, key {self.key.shape}, value {self.value.shape}, weights {weights}"
        return f"<{self.algorithm}: {sizes}, {self.options}>"

    @property
    def options(self):
        return {"kernel": self.kernel, "bandwidth": self.bandwidth}

    @property
    def problem(self):
        return Problem.from_arrays(self.query, self.key, self.value, key_weight=self.key_weight, **self.options)

    @property
    def weight(self):
        return np.ones(len(self.key)) if self.key_weight is None else self.key_weight

    def pool(self, empty="mean", **changes):
        """Pool in the drawn algorithm, after some changes to the case."""
        case = replace(self, **changes)
        return pool(
            case.query, case.key, case.value, key_weight=case.key_weight, empty=empty, algorithm=case.algorithm,
            **case.options,
        )  # fmt: skip

    def close(self, found, expected, extra=0.0):
        """Both are within the promise; and no digit of the center of the values is more than a digit."""
        problem = self.problem
        state = choose(problem, "reference").reduce(problem)
        allowed = 2 * rounding_bound(problem, state) + 8 * EPSILON * np.abs(self.value).max(axis=0) + extra
        error = np.abs(found - expected)
        assert np.all(error <= allowed), f"{np.max(error / allowed):.3g} times what is allowed"


@st.composite
def cases(draw, kernels=EVERY_KERNEL, fewest_keys=1):
    """A problem with ties and duplicates now and then, and an algorithm that can do it.

    What decides which code runs is drawn evenly, from the seed; Hypothesis would rather have small numbers.
    """
    generator = np.random.default_rng(draw(seeds))
    large, d, pick = generator.random() < 0.3, generator.integers(1, 4), generator.integers(1 << 30)
    kernel = "gaussian" if "gaussian" in kernels and generator.random() < 0.4 else generator.choice(kernels)
    if large:
        m, n = draw(st.sampled_from([130, 300])), draw(st.sampled_from([200, 400, 700]))
    else:
        m, n = draw(st.integers(1, 12)), draw(st.integers(fewest_keys, 40))
    query, key = generator.normal(size=(m, d)), generator.normal(size=(n, d))
    if draw(st.booleans()):
        query, key = np.round(query, 1), np.round(key, 1)
    c = draw(st.integers(1, 3))
    value = generator.normal(size=(n, c)) * 10 + generator.choice([0.0, 1e4], c)
    weights = {
        "none": None,
        "counts": np.maximum(generator.integers(0, 4, n), np.arange(n) == 0).astype(float),
        "decades": 10.0 ** generator.uniform(-6, 0, n),
    }
    weight = draw(st.sampled_from(list(weights)))
    case = Case(query, key, value, weights[weight], kernel, draw(st.sampled_from([0.05, 0.4, 1.0, 7.0])))
    names = able(case.problem)
    special = [name for name in names if name in ("sweep", "kd_tree", "nufft")]  # those with a structure of their own
    return replace(case, algorithm=[*names, *special][pick % len(names + special)])


@given(cases())
def test_weights_are_probability_distributions(case):
    weights = pooling_weights(case.query, case.key, key_weight=case.key_weight, empty="zero", **case.options)
    assert np.all(weights >= 0)
    total = weights.sum(axis=1)
    assert_allclose(total[total > 0], 1, rtol=1e-14)


@given(cases())
def test_predictions_lie_between_the_values(case):
    found = case.pool()
    slack = 8 * EPSILON * np.abs(case.value).max(axis=0)
    assert np.all(found >= case.value.min(axis=0) - slack)
    assert np.all(found <= case.value.max(axis=0) + slack)


@given(cases(), numbers, numbers)
def test_affine_in_the_values(case, slope, intercept):
    moved = replace(case, value=slope * case.value + intercept)
    lost = 8 * EPSILON * (np.abs(slope * case.value).max(axis=0) + np.abs(intercept))
    moved.close(moved.pool(), slope * case.pool() + intercept, lost)


@given(cases(), seeds)
def test_invariant_to_the_order_of_keys(case, seed):
    order = np.random.default_rng(seed).permutation(len(case.key))
    weight = None if case.key_weight is None else case.key_weight[order]
    other = case.pool("nearest", key=case.key[order], value=case.value[order], key_weight=weight)
    case.close(other, case.pool("nearest"))


@given(cases(), seeds)
def test_invariant_to_the_order_of_queries_and_to_which_others_there_are(case, seed):
    """Which tile, panel or block a query is in must not matter."""
    some = np.random.default_rng(seed).permutation(len(case.query))[: 1 + seed % len(case.query)]
    replace(case, query=case.query[some]).close(case.pool(query=case.query[some]), case.pool()[some])


@given(cases())
def test_invariant_to_shifts(case):
    """On a dyadic grid shifts are exact, so differences are the same to the last bit."""
    case = replace(case, query=np.round(case.query * 64) / 64, key=np.round(case.key * 64) / 64)
    case.close(case.pool(query=case.query + 1024, key=case.key + 1024), case.pool())


@given(cases(), st.integers(-20, 20))
def test_powers_of_two_scale_exactly(case, exponent):
    factor = 2.0**exponent
    found = case.pool(query=case.query * factor, key=case.key * factor, bandwidth=case.bandwidth * factor)
    assert_array_equal(found, case.pool())


@given(cases(), seeds)
def test_duplicates_equal_weights(case, seed):
    times = np.random.default_rng(seed).integers(0, 4, len(case.key))
    times[0] = max(times[0], 1)
    key, value = np.repeat(case.key, times, axis=0), np.repeat(case.value, times, axis=0)
    counted = replace(case, key_weight=times.astype(float))
    counted.close(counted.pool(), case.pool(key=key, value=value, key_weight=None))


@given(cases(fewest_keys=2), seeds)
def test_leave_one_out_equals_deletion(case, seed):
    """Row by row, with frequencies: one unit of the own row is taken away."""
    generator = np.random.default_rng(seed)
    weight = generator.integers(1, 4, len(case.key)).astype(float)
    case = replace(case, query=case.key, key_weight=weight)
    found = pool(
        case.key, case.key, case.value, key_weight=weight, exclude_self=True, empty="mean", algorithm=case.algorithm,
        **case.options,
    )  # fmt: skip
    for i in generator.permutation(len(case.key))[:20]:
        left = weight.copy()
        left[i] -= 1
        without = replace(case, query=case.key[i : i + 1], key_weight=left)
        without.close(found[i], without.pool()[0])


@given(cases(), st.lists(st.floats(0, 1), max_size=4))
def test_any_chunking_equals_the_whole(case, cuts):
    edges = [0, *sorted(int(cut * len(case.key)) for cut in cuts), len(case.key)]
    options = case.options | {"algorithm": case.algorithm}
    state = empty_state(len(case.query), case.value.shape[1])
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        if case.weight[part].any():
            weight = None if case.key_weight is None else case.key_weight[part]
            state = merge(state, pool_state(case.query, case.key[part], case.value[part], key_weight=weight, **options))
    case.close(state.finalize("zero"), case.pool("zero"))


@given(cases())
def test_a_large_bandwidth_gives_the_mean(case):
    mean = np.average(case.value, axis=0, weights=case.weight)
    found = case.pool(bandwidth=1e9)
    assert_allclose(found, np.broadcast_to(mean, found.shape), rtol=0, atol=1e-7 * np.abs(case.value).max())


@given(cases(with_products(["gaussian", "laplace", "logistic"])))
def test_a_small_bandwidth_gives_the_nearest_key(case):
    key = case.key + np.linspace(0, 1e-3, len(case.key))[:, None]  # no ties
    order = 1 if case.kernel.startswith("product") else 2
    distance = np.linalg.norm(case.query[:, None] - key[None], axis=2, ord=order)
    distance[:, case.weight == 0] = np.inf
    ordered = np.sort(distance, axis=1)
    clear = np.ones(len(case.query), bool) if len(key) == 1 else ordered[:, 1] - ordered[:, 0] > 1e-6
    assume(clear.any())
    found = case.pool(key=key, bandwidth=1e-9)
    expected, size = case.value[distance.argmin(axis=1)], np.abs(case.value).max()
    assert_allclose(found[clear], expected[clear], rtol=1e-12, atol=4 * EPSILON * size)


@given(cases(["triweight"]))
def test_empty_windows_take_the_nearest_key_or_the_mean(case):
    far = replace(case, query=case.query + 50.0, bandwidth=0.01)
    mean, size = np.average(case.value, axis=0, weights=case.weight), np.abs(case.value).max()
    assert_allclose(far.pool("mean"), np.broadcast_to(mean, (len(far.query), len(mean))), atol=1e-12 * size)
    distance = np.linalg.norm(far.query[:, None] - case.key[None], axis=2)
    distance[:, case.weight == 0] = np.inf
    for row, found in zip(distance, far.pool("nearest"), strict=True):
        near = case.value[row <= row.min() * (1 + 1e-9)]
        assert np.all(near.min(axis=0) - 1e-12 * size <= found)
        assert np.all(found <= near.max(axis=0) + 1e-12 * size)


@algorithms(columns=1)
def test_leave_one_out_by_index_and_not_by_distance(algorithm):
    """Two rows at one place: each is the other's neighbour, at distance zero."""
    found = pool(
        [1.0, 1.0, 9.0], [1.0, 1.0, 9.0], [10.0, 20.0, 0.0], exclude_self=True, bandwidth=0.1, algorithm=algorithm
    )
    assert_allclose(found[:2], [20.0, 10.0])


LAWS = {
    "affine": (test_affine_in_the_values, (-3.7, 1e3)),
    "order of keys": (test_invariant_to_the_order_of_keys, (0,)),
    "some of the queries": (test_invariant_to_the_order_of_queries_and_to_which_others_there_are, (150,)),
    "shifts": (test_invariant_to_shifts, ()),
    "powers of two": (test_powers_of_two_scale_exactly, (-7,)),
    "duplicates": (test_duplicates_equal_weights, (0,)),
    "leave one out": (test_leave_one_out_equals_deletion, (0,)),
    "chunks": (test_any_chunking_equals_the_whole, ([0.2, 0.9],)),
}


@pytest.mark.covering
@pytest.mark.parametrize("law", LAWS)
@algorithms(OTHERS, kernel=["gaussian", "epanechnikov", "laplace"])
def test_the_laws_where_no_algorithm_leaves_its_work_to_another(algorithm, kernel, law, generator):
    """A few thousand keys: enough for cells, panels, and certificates of the Fourier transform."""
    d = fitting_columns(algorithm)
    query, key, value = generator.random((300, d)), generator.random((2000, d)), generator.normal(size=(2000, 2))
    weight = generator.integers(0, 4, 2000).astype(float)
    case = Case(query, key, value, weight, kernel, 0.15, algorithm)
    test, arguments = LAWS[law]
    test.hypothesis.inner_test(case, *arguments)
