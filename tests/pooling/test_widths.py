"""Windows that reach to the k-th nearest key: widths by definition, sums by a dense reference, and laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import kernpool
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Exclusion, Factors, PoolState, Problem
from kernpool.kernels import get_categorical_kernel, make_kernel
from kernpool.pooling.recipe import Recipe, choose
from kernpool.pooling.widths import LARGER, SMALLEST, Nearest, nearest_widths, with_widths

KERNELS = "tricube", "epanechnikov", "biweight", "triweight", "triangular", "boxcar", "cosine", "gaussian", "laplace"


def widths_by_definition(problem: Problem, k: float | list[float]) -> np.ndarray:
    """Formula (A1): sort each row of distances, and cumulate the weights."""
    if isinstance(k, list):
        return np.column_stack([widths_by_definition(problem, each) for each in k])
    u = np.abs(problem.query[:, None] - problem.key[None]) / problem.similarity.bandwidth
    distance = u.max(axis=-1) if problem.similarity.kernel.composition == "product" else np.sqrt((u**2).sum(axis=-1))
    found = np.ones(len(problem.query))
    for i, times in enumerate(problem.multiplicity() * problem.weight_unit):
        order = np.argsort(np.where(times > 0, distance[i], np.inf), kind="stable")[: np.count_nonzero(times)]
        near, until = distance[i, order], np.cumsum(times[order])
        if not near.size or near[-1] == 0.0:
            continue
        if until[-1] < k * (1 - 1e-12):
            found[i] = LARGER * near[-1] * (k / until[-1]) ** (1 / problem.key.shape[1])
            continue
        width = near[np.searchsorted(until, k * (1 - 1e-12))]
        found[i] = LARGER * (width if width > 0 else SMALLEST * near[near > 0].min())
    return found


def drawn(seed: int, d: int, *, tied: bool = False, loo: bool = False, weighted: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 260))
    key = rng.exponential(size=(n, d))
    key = np.round(key, 1) if tied else key
    query = key if loo else rng.exponential(1.5, size=(40, d))
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return {"query": query, "key": key, "value": rng.normal(size=(n, 2)), "key_weight": weight, "exclude_self": loo}


@given(
    seed=st.integers(0, 10_000), d=st.integers(1, 3), k=st.integers(2, 400), tied=st.booleans(), loo=st.booleans(),
    weighted=st.booleans(), product=st.booleans(),
)  # fmt: skip
def test_widths_are_those_of_the_definition(seed, d, k, tied, loo, weighted, product):
    h = np.array([1.0, 0.3, 5.0])[:d]
    kernel = "product tricube" if product else "tricube"
    pairs = drawn(seed, d, tied=tied, loo=loo, weighted=weighted)
    if weighted:
        pairs["key_weight"][seed % 60] = 10.0 ** (seed % 20)  # some hide those of the others in a sum
    problem = Recipe.of(kernel, h).problem(**pairs)
    for one_or_two in (k, [k, 2]):
        assert_allclose(nearest_widths(problem, one_or_two), widths_by_definition(problem, one_or_two), rtol=1e-13)


@pytest.mark.parametrize("loo", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_kd_tree_finds_the_same_widths(monkeypatch, loo, weighted):
    monkeypatch.setattr("kernpool.pooling.widths.MOST_DENSE", 0)
    monkeypatch.setattr("kernpool.pooling.widths.SHARE_DENSE", 2.0)
    for seed, tied in ((0, False), (1, True), (2, False)):
        pairs = drawn(seed, 2, tied=tied, loo=loo, weighted=weighted)
        if seed == 2:  # over many magnitudes
            pairs |= {name: np.exp(-20.0 * pairs[name][:, [0, 0]]) for name in ("key", "query")}
        problem = Recipe.of("tricube", [1.0, 0.5]).problem(**pairs)
        for numbers in ([3, 30], [1000]):
            assert_allclose(nearest_widths(problem, numbers), widths_by_definition(problem, numbers), rtol=1e-13)


def test_windows_hold_all_weight_of_keys_whose_sums_are_rounded():
    n = 1_000_000
    key, weight, mask = np.random.default_rng(0).normal(size=(n, 2)), np.full(n, 0.3), np.ones((1, n), dtype=bool)
    weight[:10], mask[:, 0] = 1.0, False
    pairs = {"query": key[1:2], "key": key, "value": key, "key_weight": weight, "attn_mask": mask}
    found = nearest_widths(Recipe.of("tricube", [1.0, 1.0]).problem(**pairs), float(weight[1:].sum()))
    assert_allclose(found, np.linalg.norm(key[1:] - key[1], axis=1).max(), rtol=1e-9)
    tiny = pairs | {"key": key[:80], "value": key[:80], "key_weight": np.full(80, 1e-20), "attn_mask": None}
    problem = Recipe.of("tricube", [1.0, 1.0]).problem(**tiny)
    assert_allclose(nearest_widths(problem, 3), widths_by_definition(problem, 3), rtol=1e-13)


def test_columns_of_infinite_bandwidth_tell_no_keys_apart():
    """As if the column were not there; without another one windows hold all keys alike."""
    pairs = drawn(0, 2)
    one = {"query": pairs["query"][:, 0], "key": pairs["key"][:, 0], "value": pairs["value"]}
    pairs |= {"kernel": "tricube", "window": Nearest(9)}
    found = kernpool.pool(**pairs, bandwidth=[0.5, np.inf])
    assert_allclose(found, kernpool.pool(**one, kernel="tricube", bandwidth=0.5, window=Nearest(9)), rtol=1e-12)
    every = np.broadcast_to(pairs["value"].mean(axis=0), (40, 2))
    assert_allclose(kernpool.pool(**pairs, bandwidth=np.inf), every, atol=1e-12)


def test_masks_groups_and_fractional_weights_are_counted(monkeypatch):
    pairs = drawn(3, 1, loo=True)
    rng, n = np.random.default_rng(0), len(pairs["key"])
    some = {"attn_mask": rng.random((n, n)) < 0.5}, {"key_weight": rng.uniform(0.1, 2.0, n)}
    for more in some:
        problem = Recipe.of("tricube").problem(**(pairs | more))
        assert_allclose(nearest_widths(problem, 9.5), widths_by_definition(problem, 9.5), rtol=1e-13)
    monkeypatch.setattr("kernpool.pooling.widths.MOST_DENSE", 0)
    monkeypatch.setattr("kernpool.pooling.widths.SHARE_DENSE", 2.0)
    assert_allclose(nearest_widths(problem, [9.5, 2.0]), widths_by_definition(problem, [9.5, 2.0]), rtol=1e-13)
    code = rng.integers(0, 5, n)
    problem = Recipe.of("tricube").problem(**(pairs | {"exclude_self": False})).excluding(code, Exclusion(code))
    assert_allclose(nearest_widths(problem, 7), widths_by_definition(problem, 7), rtol=1e-13)


def agree(problem: Problem, names: tuple[str, ...]) -> None:
    right = ALGORITHMS["reference"].reduce(problem)
    for name in names:
        if ALGORITHMS[name].refusal(problem) is not None:
            continue
        found = ALGORITHMS[name].reduce(problem, 2)
        again = ALGORITHMS[name].reduce(problem, 1)
        assert_array_equal(found.numerator, again.numerator)
        some = right.denominator > 1e-9
        assert_array_equal(found.denominator > 0, right.denominator > 0)
        assert_allclose(found.log_denominator[some], right.log_denominator[some], rtol=0, atol=1e-11)
        assert_allclose(means(found)[some], means(right)[some], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_in_windows_are_those_of_the_reference(kernel):
    for seed, d in ((0, 1), (1, 1), (2, 2)):
        for degree in (0, 1, 2):
            pairs = drawn(seed, d, tied=seed == 1, loo=seed != 0, weighted=seed == 1)
            recipe = Recipe.of(kernel, np.array([1.0, 0.5])[:d], degree=degree, window=Nearest(30 + 40 * (seed == 0)))
            agree(recipe.problem(**pairs), ("brute", "sweep"))


def test_many_keys_in_octaves_and_blocks_of_windows(monkeypatch):
    rng = np.random.default_rng(5)
    x, y = rng.exponential(size=3000), rng.normal(size=3000)
    x[:200] = 0.5
    weight = rng.integers(0, 3, 3000).astype(float)
    cases = ("tricube", 1), ("boxcar", 0), ("triangular", 2), ("triweight", 2), ("gaussian", 0), ("gaussian", 2)
    for kernel, degree in cases:
        for offset in (0.0, 1e6):
            recipe = Recipe.of(kernel, degree=degree, window=Nearest(700))
            agree(recipe.problem(x[::3] + offset, x + offset, y, key_weight=weight), ("sweep",))
            rows = {"exclude_self": True, "key_weight": weight}
            agree(recipe.problem(x + offset, x + offset, y, **rows).block(slice(0, 900)), ("sweep",))
    monkeypatch.setattr("kernpool.algorithms.brute.brute.FEW_PAIRS", 0)
    wide = make_kernel("wide", lambda u: np.maximum(2.0 - u, 0.0), support=2.0)
    for kernel in ("tricube", "product tricube", wide):
        recipe = Recipe.of(kernel, [1.0, 2.0], degree=1, window=Nearest(40))
        key = rng.exponential(size=(700, 2))
        agree(recipe.problem(key, key, y[:700], exclude_self=True), ("brute",))


@pytest.mark.parametrize("kernel", ["tricube", "epanechnikov", "boxcar", "gaussian"])
def test_queries_in_a_gap_above_whole_bins_of_keys(kernel):
    rng = np.random.default_rng(1)
    for below in (1600, 1601, 1615):  # a run of far keys began inside a cell, if these were a multiple of 16
        key = np.r_[rng.uniform(0.0, 10.0, below), rng.uniform(19.0, 22.0, 4000)]
        query = np.linspace(0.0, 22.0, 300)
        recipe = Recipe.of(kernel, degree=0, window=Nearest(1000))
        agree(recipe.problem(query, key, np.sin(3 * key)), ("brute", "sweep"))
        agree(recipe.problem(-query, -key, np.sin(3 * key)), ("brute", "sweep"))


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_gaussian_windows_beside_dense_keys_and_far_from_all(degree):
    rng = np.random.default_rng(6)
    key = np.r_[1e-5 * rng.normal(size=3000), rng.normal(5.0, 3.0, 300)]
    query = np.r_[np.linspace(-4.0, 12.0, 150), 0.0, 1e-5, 30.0]
    problem = Recipe.of("gaussian", degree=degree).problem(query, key, rng.normal(size=3300))
    for width in (0.2, 1.0, 4.0, 100.0):  # from hardly any key to all of them
        agree(with_widths(problem, width * rng.uniform(1.0, 7.0, len(query))), ("sweep",))


def test_gradients_are_those_of_the_reference():
    problem = Recipe.of("gaussian", [1.0, 0.5], degree=1, window=Nearest(20)).problem(**drawn(2, 2, loo=True))
    cotangent = np.random.default_rng(1).normal(size=(len(problem.query), 2))
    plans = [choose(problem, name) for name in ("reference", "brute")]
    states = [plan.reduce(problem) for plan in plans]
    wanted = ["query", "key", "value", "log_bandwidth"]
    right, found = (p.pullback(problem, s, cotangent, wanted) for p, s in zip(plans, states, strict=True))
    for name in wanted:
        assert_allclose(getattr(found, name), getattr(right, name), rtol=1e-9, atol=1e-11)


def means(state: PoolState) -> np.ndarray:
    return state.numerator / state.denominator[:, None]


def test_categories_and_groups_keep_the_windows():
    rng = np.random.default_rng(2)
    x, y = rng.exponential(size=300), rng.normal(size=300)
    kind, level = get_categorical_kernel("li_racine"), rng.integers(0, 3, (300, 1))
    factors = Factors(level, level, (kind.table(3, 0.3),), (kind.table_slope(3, 0.3),))
    problem = Recipe.of("tricube", window=Nearest(60)).problem(x, x, y, factors=factors)
    dense = ALGORITHMS["reference"].reduce(problem.with_dense_factors())
    for algorithm in ("auto", "brute"):
        state = choose(problem, algorithm).reduce(problem.without_center())
        assert_allclose(means(state), means(dense), atol=1e-12)
    code = rng.integers(0, 9, 300)
    grouped = replace(problem, factors=None).excluding(code, Exclusion(code))
    dense = ALGORITHMS["reference"].reduce(grouped)
    state = choose(grouped).reduce(grouped.without_center())
    assert_allclose(means(state), means(dense), atol=1e-12)


def test_weights_quantiles_and_states_have_the_same_windows():
    rng = np.random.default_rng(1)
    x, y = rng.exponential(size=200), rng.normal(size=200)
    options = {"kernel": "biweight", "window": Nearest(30)}
    weights = kernpool.pooling_weights(x, x, **options)
    assert_allclose(weights @ y, kernpool.pool(x, x, y, **options), atol=1e-13)
    assert_allclose(kernpool.pool_state(x, x, y, **options).finalize()[:, 0], weights @ y, atol=1e-13)
    order = np.argsort(y)
    median = y[order][np.argmax(np.cumsum(weights[:, order], axis=1) >= 0.5, axis=1)]
    assert_array_equal(kernpool.pool_quantile(x, x, y, **options), median)


def test_batches_have_windows_of_their_own():
    rng = np.random.default_rng(1)
    q, x, y = rng.normal(size=(3, 5, 1)), rng.normal(size=(3, 40, 1)), rng.normal(size=(3, 40, 1))
    options = {"kernel": "tricube", "window": Nearest(9)}
    found = kernpool.pool(q, x, y, **options)
    for i in range(3):
        assert_allclose(found[i], kernpool.pool(q[i], x[i], y[i], **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": "wide"}, "window must be"),
        ({"window": Nearest()}, "window must be"),
        ({"window": kernpool.Floor(3)}, "window must be"),
        ({"window": Nearest(3), "degree": 1, "kernel": "tricube"}, "give 4 or more"),
        ({"window": Nearest(5), "algorithm": "kd_tree"}, "use algorithm='auto' or one of"),
        ({"window": Nearest(5), "attn_mask": np.zeros((30, 30))}, "pass a boolean attn_mask"),
    ],
)
def test_what_cannot_be_done_says_what_can(options, message):
    x = np.random.default_rng(0).normal(size=30)
    with pytest.raises(ValueError, match=message):
        kernpool.pool(x, x, x, **options)


@pytest.mark.parametrize(
    ("make", "wrong"), [(kernpool.Nearest, (0, 1.5, True, "30")), (kernpool.Floor, (0, True, "9", np.inf))]
)
def test_windows_have_numbers_in_range(make, wrong):
    for number in wrong:
        with pytest.raises(ValueError, match="must be a"):
            make(number)


def test_chunks_are_refused():
    chunks = kernpool.open_chunks([(np.arange(9.0), np.arange(9.0))])
    with pytest.raises(ValueError, match="pass arrays"):
        kernpool.pool([0.0], chunks, window=Nearest(3))


def test_a_key_without_others_has_an_empty_window():
    options = {"key_weight": [1.0, 0.0], "exclude_self": True, "window": Nearest(2), "empty": "zero"}
    assert kernpool.pool([0.0, 1.0], [0.0, 1.0], [1.0, 2.0], **options).tolist() == [0.0, 1.0]
