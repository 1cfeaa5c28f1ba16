"""Adversarial data for every algorithm that does not refuse it, beside the reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import Problem, choose, kernel_names, pool, pooling_weights
from kernpool.algorithms import ALGORITHMS
from kernpool.algorithms.algorithm import MOST_PAIRS
from kernpool.pooling import rounding_bound
from tests.support.capabilities import able
from tests.support.problems import with_products

COLUMNS = {
    "uniform": lambda g, n: g.random(n),
    "clusters": lambda g, n: g.integers(0, 5, n) + 1e-12 * g.normal(size=n),
    "heavy tails": lambda g, n: g.standard_cauchy(n),
    "heavier tails": lambda g, n: np.exp(20 * g.normal(size=n)),
    "ties": lambda g, n: g.integers(0, 4, n).astype(float),
    "grid": lambda g, n: 0.1 * g.integers(0, 30, n),
    "equal": lambda _, n: np.full(n, 0.7),
    "offset": lambda g, n: 1e6 + g.random(n),
    "subnormal": lambda g, n: 5e-324 * g.integers(0, 1000, n),
    "tiny": lambda g, n: 1e-150 * g.normal(size=n),
    "huge": lambda g, n: 1e140 * g.normal(size=n),
}
WEIGHTS = {
    "none": lambda *_: None,
    "ten decades": lambda g, n: 10.0 ** g.uniform(-10, 0, n),
    "counts": lambda g, n: np.maximum(g.integers(-2, 5, n), np.arange(n) == 0).astype(float),
    "one heavy": lambda _, n: np.where(np.arange(n) == n // 2, 1.0, 1e-10),
}


@st.composite
def problems(draw):
    """A problem of up to three columns, each of another nature, with queries at, near and far from keys."""
    g = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    n, m = draw(st.sampled_from([1, 2, 40, 700])), draw(st.sampled_from([1, 3, 60, 200]))
    natures = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3))
    key = np.stack([COLUMNS[nature](g, n) for nature in natures], axis=1)
    spread = np.subtract(*np.quantile(key, [0.9, 0.1], axis=0))
    relative = draw(st.sampled_from([1e-3, 0.1, 0.3, 1.0, 100.0]))
    bandwidth = np.maximum(relative * np.where(spread > 1e-160, spread, 1.0), 1e-149)
    if draw(st.booleans()):  # on a lattice this is where keys lie exactly on the edge
        bandwidth = np.where(bandwidth > 0.1, np.rint(10 * bandwidth) / 10, bandwidth)
    own = g.integers(0, n, m)
    away = g.choice(draw(st.sampled_from([[0.0], [0.0, 1.0], [0.0, 1e-9, 30.0], [0.0, 1e3, 1e6]])), (m, 1))
    query = key[own] + away * bandwidth * g.choice([-1.0, 1.0], (m, len(natures)))
    extra = {"key_weight": WEIGHTS[draw(st.sampled_from(list(WEIGHTS)))](g, n)}
    if draw(st.booleans()):
        own = g.integers(0, n, m) if draw(st.booleans()) else own
        extra |= {"exclude_self": True, "self_index": np.where(g.random(m) < 0.1, -1, own)}
    if draw(st.sampled_from([False, False, True])):
        extra["attn_mask"] = g.random((m, n)) < 0.5
    value = g.normal((0.0, 1e4), size=(n, 2))
    return Problem.from_arrays(
        query,
        key,
        value,
        kernel=draw(st.sampled_from(with_products(kernel_names()))),
        bandwidth=bandwidth,
        **extra,
    )


@pytest.mark.slow  # compiles every loop of every algorithm
@given(problem=problems())
def test_every_algorithm_is_right_or_refuses(problem):
    expected = choose(problem, "reference").reduce(problem)
    target = expected.finalize("zero")
    allowed = rounding_bound(problem, expected)
    for algorithm in able(problem):
        state = choose(problem, algorithm).reduce(problem)
        np.testing.assert_array_equal(state.denominator == 0, expected.denominator == 0, err_msg=algorithm)
        error = np.abs(state.finalize("zero") - target)
        assert np.all(error <= allowed), f"{algorithm}: {np.max(error / allowed):.3g} times what is allowed"


@pytest.mark.parametrize("kernel", ["epanechnikov", "biweight"])
@pytest.mark.parametrize("d", [1, 2])
def test_keys_just_inside_the_edge_of_narrow_kernels_keep_their_digits(kernel, d, generator):
    """Weights are differences of nearly equal numbers there, and leaves of a tree may be a hundred bandwidths wide."""
    query = generator.integers(0, 750, (2000, d)) / 20
    step = 0.05 * np.eye(d)[0]
    key = np.concatenate([query + step, query - step])
    problem = Problem.from_arrays(query, key, generator.normal(size=4000), kernel=kernel, bandwidth=0.05 * (1 + 1e-8))
    expected = choose(problem, "reference").reduce(problem)
    target, allowed = expected.finalize("zero"), rounding_bound(problem, expected)
    occupied = expected.denominator > 0
    for algorithm in able(problem):
        state = choose(problem, algorithm).reduce(problem)
        assert np.all(np.abs(state.finalize("zero") - target) <= allowed), algorithm
        relative = np.abs(state.log_denominator[occupied] - expected.log_denominator[occupied])
        assert np.all(relative <= 4 * allowed[occupied, 0] / np.ptp(problem.value)), algorithm


def of_size(m, n):
    """A problem of any size that takes no memory: every row is the same one."""
    row, one = np.zeros((1, 1)), Problem.from_arrays([0.0], [0.0], [0.0])
    return Problem(
        query=np.broadcast_to(row, (m, 1)),
        key=np.broadcast_to(row, (n, 1)),
        value=np.broadcast_to(row, (n, 1)),
        value_center=one.value_center,
        similarity=one.similarity,
    )


@pytest.mark.parametrize(("m", "n"), [(1 << 16, 1 << 16), (1 << 31, 1 << 33), (1 << 32, 1 << 32), (1 << 40, 1 << 50)])
def test_the_number_of_pairs_does_not_overflow(m, n):
    """As 32 or 64 bits 2**32 and 2**64 pairs would be none at all, which is few enough for a dense table."""
    assert choose(of_size(m, n)).algorithm != "reference"
    for algorithm, able_to in ALGORITHMS.items():
        if able_to.refusal(of_size(m, n)) is None:
            assert choose(of_size(m, n), algorithm).algorithm == algorithm


def test_numpy_integers_do_not_overflow_either():
    problem = of_size(np.int32(1 << 16), np.int32(1 << 16))
    assert problem.shape[0] * problem.shape[1] == 1 << 32 > MOST_PAIRS


def test_a_table_of_weights_that_nobody_can_hold_is_refused_with_its_size():
    x = np.zeros(1 << 17)
    with pytest.raises(ValueError, match=r"131072 queries x 131072 keys need 137 GB, more than max_bytes="):
        pooling_weights(x, x)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("rows", ["weight", "mask"])
def test_nan_in_padding_is_a_clear_error(algorithm, where, rows):
    arrays = {name: np.arange(3.0) for name in ("query", "key", "value")}
    arrays[where][2] = np.nan
    padding = {"key_weight": [1, 1, 0]} if rows == "weight" else {"attn_mask": np.arange(3) < 2}
    with pytest.raises(ValueError, match=f"{where} holds nan at index .*drop or fill"):
        pool(**arrays, **padding, algorithm=algorithm)
