"""What every weighted mean has to be, for whatever data: properties checked on generated problems."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import empty_state, kernel_names, merge, pool, pool_state, pooling_weights
from kernpool.algorithms import ALGORITHMS

kernels = st.sampled_from(kernel_names())
algorithms = st.sampled_from([name for name, one in ALGORITHMS.items() if one.kernels is None and one.columns[1] > 9])
compositions = st.sampled_from(["radial", "product"])
bandwidths = st.sampled_from([0.05, 0.4, 1.0, 7.0])


@st.composite
def samples(draw):
    """Queries, keys and values, with ties and duplicates now and then."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    m, n, d = draw(st.integers(1, 12)), draw(st.integers(1, 40)), draw(st.integers(1, 3))
    query, key = generator.normal(size=(m, d)), generator.normal(size=(n, d))
    if draw(st.booleans()):
        query, key = np.round(query, 1), np.round(key, 1)
    return query, key, generator.normal(size=n) * 10


def close(found, expected, value):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(np.ptp(value), np.abs(value).max(), 1e-300))


@given(samples(), kernels, compositions, bandwidths)
def test_weights_are_probability_distributions(sample, kernel, composition, bandwidth):
    query, key, _ = sample
    weights = pooling_weights(query, key, kernel=kernel, composition=composition, bandwidth=bandwidth, empty="zero")
    assert np.all(weights >= 0)
    total = weights.sum(axis=1)
    np.testing.assert_allclose(total[total > 0], 1, rtol=1e-14)


@given(samples(), kernels, compositions, bandwidths, algorithms)
def test_predictions_lie_between_the_values(sample, kernel, composition, bandwidth, algorithm):
    query, key, value = sample
    found = pool(
        query,
        key,
        value,
        kernel=kernel,
        composition=composition,
        bandwidth=bandwidth,
        algorithm=algorithm,
        empty="mean",
    )
    slack = 8 * np.finfo(float).eps * np.abs(value).max()
    assert np.all(found >= value.min() - slack)
    assert np.all(found <= value.max() + slack)


@given(samples(), kernels, bandwidths, algorithms, st.floats(-100, 100), st.floats(-100, 100))
def test_affine_in_the_values(sample, kernel, bandwidth, algorithm, slope, intercept):
    query, key, value = sample
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm, "empty": "mean"}
    moved = slope * value + intercept
    close(pool(query, key, moved, **options), slope * pool(query, key, value, **options) + intercept, moved)


@given(samples(), kernels, bandwidths, algorithms, st.integers(0, 99))
def test_invariant_to_the_order_of_keys(sample, kernel, bandwidth, algorithm, seed):
    query, key, value = sample
    order = np.random.default_rng(seed).permutation(len(key))
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm, "empty": "nearest"}
    close(pool(query, key[order], value[order], **options), pool(query, key, value, **options), value)


@given(samples(), kernels, bandwidths, algorithms)
def test_invariant_to_shifts(sample, kernel, bandwidth, algorithm):
    """On a dyadic grid shifts are exact, so differences are the same to the last bit."""
    query, key, value = sample
    query, key = np.round(query * 64) / 64, np.round(key * 64) / 64
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm, "empty": "mean"}
    close(pool(query + 1024, key + 1024, value, **options), pool(query, key, value, **options), value)


@given(samples(), kernels, bandwidths, algorithms, st.integers(-20, 20))
def test_powers_of_two_scale_exactly(sample, kernel, bandwidth, algorithm, exponent):
    query, key, value = sample
    factor = 2.0**exponent
    options = {"kernel": kernel, "algorithm": algorithm, "empty": "mean"}
    found = pool(query * factor, key * factor, value, bandwidth=bandwidth * factor, **options)
    np.testing.assert_array_equal(found, pool(query, key, value, bandwidth=bandwidth, **options))


@given(samples(), kernels, bandwidths, algorithms, st.integers(0, 99))
def test_duplicates_equal_weights(sample, kernel, bandwidth, algorithm, seed):
    query, key, value = sample
    times = np.random.default_rng(seed).integers(0, 4, len(key))
    times[0] = max(times[0], 1)
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm, "empty": "mean"}
    repeated = pool(query, np.repeat(key, times, axis=0), np.repeat(value, times), **options)
    close(pool(query, key, value, key_weight=times, **options), repeated, value)


@given(samples(), kernels, bandwidths, algorithms, st.integers(0, 99))
def test_leave_one_out_equals_deletion(sample, kernel, bandwidth, algorithm, seed):
    """Row by row, with frequencies: one unit of the own row is taken away."""
    _, key, value = sample
    if len(key) < 2:
        return
    weight = np.random.default_rng(seed).integers(1, 4, len(key)).astype(float)
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm, "empty": "mean"}
    found = pool(key, key, value, key_weight=weight, exclude_self=True, **options)
    for i in range(len(key)):
        left = weight.copy()
        left[i] -= 1
        close(found[i], pool(key[i : i + 1], key, value, key_weight=left, **options)[0], value)


@given(samples(), kernels, bandwidths, algorithms, st.lists(st.integers(0, 40), max_size=4))
def test_any_chunking_equals_the_whole(sample, kernel, bandwidth, algorithm, cuts):
    query, key, value = sample
    edges = [0, *sorted(min(cut, len(key)) for cut in cuts), len(key)]
    options = {"kernel": kernel, "bandwidth": bandwidth, "algorithm": algorithm}
    state = empty_state(len(query), 1)
    for start, stop in pairwise(edges):
        if stop > start:
            state = merge(state, pool_state(query, key[start:stop], value[start:stop], **options))
    whole = pool_state(query, key, value, **options)
    close(state.finalize("zero"), whole.finalize("zero"), value)


@given(samples(), kernels, algorithms)
def test_a_large_bandwidth_gives_the_mean(sample, kernel, algorithm):
    query, key, value = sample
    found = pool(query, key, value, kernel=kernel, bandwidth=1e9, algorithm=algorithm)
    np.testing.assert_allclose(found, value.mean(), rtol=0, atol=1e-7 * np.abs(value).max())


@given(samples(), st.sampled_from(["gaussian", "laplace", "logistic"]), algorithms)
def test_a_small_bandwidth_gives_the_nearest_key(sample, kernel, algorithm):
    query, key, value = sample
    key = key + np.linspace(0, 1e-3, len(key))[:, None]  # no ties
    distance = np.linalg.norm(query[:, None] - key[None], axis=2)
    ordered = np.sort(distance, axis=1)
    clear = np.ones(len(query), bool) if len(key) == 1 else ordered[:, 1] - ordered[:, 0] > 1e-6
    found = pool(query, key, value, kernel=kernel, bandwidth=1e-9, algorithm=algorithm)
    np.testing.assert_allclose(found[clear], value[distance.argmin(axis=1)][clear], rtol=1e-12)


@given(samples(), algorithms)
def test_empty_windows_take_the_nearest_key_or_the_mean(sample, algorithm):
    query, key, value = sample
    options = {"kernel": "triweight", "bandwidth": 0.01, "algorithm": algorithm}
    far = query + 50.0
    np.testing.assert_allclose(pool(far, key, value, empty="mean", **options), value.mean(), rtol=0, atol=1e-12 * 40)
    nearest = pool(far, key, value, empty="nearest", **options)
    distance = np.linalg.norm(far[:, None] - key[None], axis=2)
    for row, found in zip(distance, nearest, strict=True):
        near = value[row <= row.min() * (1 + 1e-9)]
        assert near.min() - 1e-9 <= found <= near.max() + 1e-9


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_leave_one_out_by_index_and_not_by_distance(algorithm):
    """Two rows at one place: each is the other's neighbour, at distance zero."""
    found = pool(
        [1.0, 1.0, 9.0], [1.0, 1.0, 9.0], [10.0, 20.0, 0.0], exclude_self=True, bandwidth=0.1, algorithm=algorithm
    )
    np.testing.assert_allclose(found[:2], [20.0, 10.0])
