"""Small plain problems by the shortest way: the bits, refusals and warnings of all others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kernpool import kernel_names, pool
from kernpool.pooling import Recipe, in_memory
from kernpool.pooling.in_memory import sum_small
from tests.support.problems import with_products

SEEDS = st.integers(0, 2**32 - 1)


def by_the_long_way(query, key, value, **options):
    """Pool lists, which are read as everything else is."""
    return pool(query.tolist(), key.tolist(), value.tolist(), **options)


@pytest.mark.parametrize("kernel", with_products(kernel_names()))
def test_every_answer_has_the_bits_of_the_long_way(kernel):
    random = np.random.default_rng(0)
    for m, n, d, c in ((1, 1, 1, 0), (40, 30, 1, 0), (30, 40, 1, 2), (25, 50, 3, 0), (20, 30, 7, 3)):
        query, key = random.normal(size=(m, d)), random.normal(size=(n, d))
        value = random.normal(size=(n, c) if c else n)
        if d == 1:
            query, key = query[:, 0], key[:, 0]
        options = {"kernel": kernel, "bandwidth": 9.0, "empty": "zero"}
        expected = by_the_long_way(query, key, value, **options)
        found = pool(query, key, value, **options)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)
        if n > 1:
            assert sum_small(Recipe.of(kernel, 9.0), query, key, value) is not None


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    kernel=st.sampled_from(kernel_names()),
    scale=st.sampled_from([1e-200, 1e-30, 1e-3, 1.0, 1e5, 1e80, 1e150]),
    offset=st.sampled_from([0.0, 1.0, -1e9, 1e-25]),
    h=st.sampled_from([1e-3, 0.3, 20.0, [0.5, 2.0]]),
    order=st.sampled_from("CF"),
)
def test_whatever_the_sizes_of_values_and_windows(seed, kernel, scale, offset, h, order):
    random = np.random.default_rng(seed)
    query, key = (np.array(random.normal(size=(n, 2)), order=order) for n in (13, 11))
    value = np.array(np.clip(random.normal(size=(11, 2)) * scale + offset, -1e150, 1e150), order=order)
    options = {"kernel": kernel, "bandwidth": h, "empty": "nearest"}
    assert_array_equal(pool(query, key, value, **options), by_the_long_way(query, key, value, **options))


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda q, k, v: (q * np.nan, k, v), {}),
        (lambda q, k, v: (q, np.where(np.arange(6) == 0, -np.inf, k), v), {}),
        (lambda q, k, v: (q, k, v * 1e200), {}),
        (lambda q, k, v: (np.stack([q, q], axis=1), k, v), {}),
        (lambda q, k, v: (q, k, v), {"bandwidth": [1.0, 1.0]}),
        (lambda q, k, v: (q, k, v), {"bandwidth": 1e-160}),
        (lambda q, k, v: (q, k, v), {"n_jobs": 0}),
        (lambda q, k, v: (q, k, v), {"kernel": "boxcar", "bandwidth": 1e-9, "empty": "raise"}),
    ],
)
def test_what_is_wrong_is_refused_in_the_same_words(change, options):
    random = np.random.default_rng(0)
    query, key, value = change(random.normal(size=5), random.normal(size=6), random.normal(size=6))
    with pytest.raises((TypeError, ValueError)) as expected:
        by_the_long_way(query, key, value, **options)
    with pytest.raises(expected.type) as found:
        pool(query, key, value, **options)
    # Text and arrays differ in what they say of a shape alone.
    assert str(found.value).partition(", got")[0] == str(expected.value).partition(", got")[0]


def test_plain_arrays_do_go_the_short_way(monkeypatch):
    called = []
    monkeypatch.setattr(
        in_memory.reference, "reduce_in_blocks", lambda problem: called.append(problem) or REDUCE(problem)
    )
    x = np.linspace(0.0, 1.0, 30)
    pool(x, x, x)
    assert len(called) == 1
    pool(x.astype(np.float32), x, x)
    pool(x, x, x, degree=1)
    pool(x, x, x, tol=1e-3)
    pool(np.linspace(0.0, 1.0, 400), np.linspace(0.0, 1.0, 4000), np.linspace(0.0, 1.0, 4000))
    assert len(called) == 1


REDUCE = in_memory.reference.reduce_in_blocks
