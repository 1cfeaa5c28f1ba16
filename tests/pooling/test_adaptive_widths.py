"""Windows whose widths are of the keys: a dense reference, fits without a row, laws, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernpool
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Factors
from kernpool.kernels import get_categorical_kernel, get_kernel
from kernpool.pooling.recipe import Recipe, choose


def drawn(seed: int, d: int, n: int = 40, *, tied: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(n, d))
    return np.round(x, 1) if tied else x, rng.normal(size=n)


def by_definition(query, key, k, kernel, h, composition, weight=None):
    """The weights of all pairs: widths are distances to the k-th other unit, or the least positive ones."""
    repeated = np.arange(len(key)) if weight is None else np.repeat(np.arange(len(key)), weight)
    norm = (lambda u: np.abs(u).max(-1)) if composition == "product" else (lambda u: np.sqrt((u**2).sum(-1)))
    width = np.empty(len(key))
    for j in range(len(key)):
        distance = np.sort(norm((key[repeated] - key[j]) / h))[1:]  # without one unit of itself
        width[j] = distance[k - 1] if distance[k - 1] > 0 else distance[distance > 0].min()
    u = (query[:, None] - key) / h / width[:, None]
    profile = get_kernel(kernel).profile
    found = np.prod(profile(np.abs(u)), axis=-1) if composition == "product" else profile(norm(u))
    return found / width ** key.shape[1] * (1.0 if weight is None else weight)


@given(
    seed=st.integers(0, 10_000), d=st.integers(1, 3), k=st.integers(1, 30), tied=st.booleans(), product=st.booleans(),
    kernel=st.sampled_from(["gaussian", "laplace", "logistic"]), weighted=st.booleans(),
)  # fmt: skip
def test_weights_are_those_of_the_definition(seed, d, k, tied, product, kernel, weighted):
    (key, _), h, composition = (
        drawn(seed, d, tied=tied),
        np.array([1.0, 0.3, 5.0])[:d],
        "product" if product else "radial",
    )
    weight = np.random.default_rng(seed).integers(1, 4, len(key)) if weighted else None
    query = np.concatenate([key[:5], drawn(seed + 1, d, 5)[0]])
    options = {"kernel": kernel, "bandwidth": h, "composition": composition, "key_weight": weight}
    found = kernpool.pooling_weights(query, key, widths="adaptive", n_neighbors=k, **options)
    with np.errstate(under="ignore"):
        right = by_definition(query, key, k, kernel, h, composition, weight)
    total = np.maximum(right.sum(axis=1, keepdims=True), 1e-300)
    some = total[:, 0] > 1e-200
    np.testing.assert_allclose(found[some], (right / total)[some], rtol=1e-9, atol=1e-100)


@given(
    seed=st.integers(0, 10_000), d=st.integers(1, 2), k=st.integers(3, 38), tied=st.booleans(), product=st.booleans(),
    weighted=st.booleans(),
)  # fmt: skip
def test_leave_one_out_is_a_fit_without_the_row(seed, d, k, tied, product, weighted):
    (x, y), rest = drawn(seed, d, tied=tied), np.arange(40)
    weight = np.random.default_rng(seed).integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    options = {"bandwidth": [1.0, 2.5][:d], "widths": "adaptive", "n_neighbors": k}
    options |= {"composition": "product" if product else "radial", "kernel": "laplace"}
    found = kernpool.pool(x, x, y, key_weight=weight, exclude_self=True, **options)
    for i in range(0, 40, 8):
        less = weight - (rest == i)
        kept = less > 0
        one = kernpool.pool(x[[i]], x[kept], y[kept], key_weight=less[kept], **options)
        np.testing.assert_allclose(found[i], one[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["tricube", "gaussian"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_brute_force_sums_as_the_reference_does(kernel, degree):
    (x, y), recipe = drawn(0, 2, 300), Recipe.of(kernel, degree=degree, n_neighbors=60, widths="adaptive")
    problem = recipe.problem(x, x, y, exclude_self=True)
    states = [ALGORITHMS[name].reduce(problem) for name in ("reference", "brute")]
    one, other = (state.numerator / state.denominator[:, None] for state in states)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(*(state.log_denominator for state in states), atol=1e-12)
    assert choose(problem).algorithm in ("reference", "brute")


def test_categories_keep_the_widths_and_what_is_left_out():
    (x, y), rng = drawn(2, 1, 200), np.random.default_rng(2)
    kind, level = get_categorical_kernel("li_racine"), rng.integers(0, 3, (200, 1))
    factors = Factors(level, level, (kind.table(3, 0.3),), (kind.table_slope(3, 0.3),))
    problem = Recipe.of("tricube", n_neighbors=60, widths="adaptive").problem(
        x, x, y, exclude_self=True, factors=factors
    )
    dense = ALGORITHMS["reference"].reduce(problem.with_dense_factors()).finalize()
    np.testing.assert_allclose(choose(problem).reduce(problem.without_center()).finalize(), dense, atol=1e-12)


def test_scale_order_and_frequencies_do_not_matter():
    (x, y), rng = drawn(0, 2, 60), np.random.default_rng(1)
    weight, order = rng.integers(1, 4, 60), rng.permutation(60)
    options = {"kernel": "tricube", "widths": "adaptive", "n_neighbors": 30, "degree": 1}
    one = kernpool.pool(x, x, y, bandwidth=[1.0, 3.0], key_weight=weight, **options)
    np.testing.assert_allclose(kernpool.pool(x, x, y, bandwidth=[8.0, 24.0], key_weight=weight, **options), one)
    options["bandwidth"] = [1.0, 3.0]
    np.testing.assert_allclose(kernpool.pool(x, x[order], y[order], key_weight=weight[order], **options), one)
    copies = np.repeat(np.arange(60), weight)
    np.testing.assert_allclose(kernpool.pool(x, x[copies], y[copies], **options), one)


def test_equal_spacing_inside_is_a_fixed_width():
    x = np.arange(100.0)
    found = kernpool.pool(x[30:70], x, np.sin(x), kernel="tricube", widths="adaptive", n_neighbors=20, degree=1)
    np.testing.assert_allclose(found, kernpool.pool(x[30:70], x, np.sin(x), kernel="tricube", bandwidth=10.0, degree=1))


def test_weights_quantiles_and_states_have_the_same_windows():
    x, y = drawn(1, 1, 200)
    options = {"kernel": "biweight", "widths": "adaptive", "n_neighbors": 30}
    weights = kernpool.pooling_weights(x, x, **options)
    np.testing.assert_allclose(weights @ y, kernpool.pool(x, x, y, **options), atol=1e-13)
    np.testing.assert_allclose(kernpool.pool_state(x, x, y, **options).finalize()[:, 0], weights @ y, atol=1e-13)
    order = np.argsort(y)
    median = y[order][np.argmax(np.cumsum(weights[:, order], axis=1) >= 0.5, axis=1)]
    np.testing.assert_array_equal(kernpool.pool_quantile(x, x, y, **options), median)


def test_empty_windows_are_those_of_all_keys():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 6.0])
    options = {"kernel": "tricube", "widths": "adaptive", "n_neighbors": 2}
    assert kernpool.pool([50.0], x, y, empty="nearest", **options) == [6.0]
    assert kernpool.pool([50.0], x, y, empty="mean", **options) == [3.0]


def test_windows_of_at_least_the_bandwidth():
    x, y = drawn(3, 1, 80)
    query = np.linspace(-1.0, 6.0, 30)
    width = np.maximum(np.sort(np.abs(query[:, None] - x.T), axis=1)[:, 11] * (1 + 2.0**-48), 0.4)
    found = kernpool.pool(query, x, y, kernel="tricube", bandwidth=0.4, widths="widened", n_neighbors=12)
    one = [kernpool.pool([q], x, y, kernel="tricube", bandwidth=s)[0] for q, s in zip(query, width, strict=True)]
    np.testing.assert_allclose(found, one, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 30}, "too many for widths='adaptive'.*: 29; give at most so many"),
        ({"n_neighbors": 29, "exclude_self": True}, "too many for widths='adaptive'.*: 28; give at most so many"),
        ({"algorithm": "kd_tree"}, "does not support widths='adaptive'"),
        ({"attn_mask": np.ones((30, 30), dtype=bool)}, "leave attn_mask and groups out"),
        ({"exclude_self": True, "key_weight": np.full(30, 0.5)}, "give weights of at least one"),
        ({"exclude_self": True, "self_index": np.arange(30)[::-1]}, "in self_index the own key"),
    ],
)
def test_what_cannot_be_done_says_what_can(options, message):
    x = np.random.default_rng(0).normal(size=30)
    with pytest.raises(ValueError, match=message):
        kernpool.pool(x, x, x, **{"widths": "adaptive", "n_neighbors": 5} | options)


def test_groups_gradients_and_chunks_are_refused():
    x, y = drawn(0, 1, 30)
    problem = Recipe.of(n_neighbors=9, widths="adaptive").problem(x, x, y)
    with pytest.raises(ValueError, match="leaves rows out one by one"):
        problem.with_groups(np.arange(30), np.arange(30))
    plan = choose(problem)
    with pytest.raises(ValueError, match="no gradients, nor slopes of weighted means, with widths='adaptive'"):
        plan.pullback(problem, plan.reduce(problem), np.ones((30, 1)), ["query"])
    with pytest.raises(ValueError, match="widths='adaptive' counts the keys"):
        kernpool.pool([0.0], kernpool.open_chunks([(x[:, 0], y)]), widths="adaptive", n_neighbors=3)
