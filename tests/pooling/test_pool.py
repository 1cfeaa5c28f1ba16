"""`pool` and its sisters: shapes, dtypes, batches, masks, and what they do not touch."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import EmptyWindowWarning, Problem, choose, kernel_names, pool, pool_state, pooling_weights
from kernpool.datasets import make_sine_linear, make_sine_power
from tests.support.capabilities import algorithms, fitting_columns


def test_one_dimension_counts_as_one_column(generator):
    query, key, value = generator.normal(size=5), generator.normal(size=9), generator.normal(size=9)
    flat = pool(query, key, value)
    assert flat.shape == (5,)
    assert_array_equal(pool(query[:, None], key[:, None], value), flat)
    assert_array_equal(pool(query, key, value[:, None]), flat[:, None])


@algorithms(mask=[None, "bool"])
def test_batches_broadcast_as_in_torch(algorithm, mask, generator):
    d = fitting_columns(algorithm)
    query, key = generator.normal(size=(3, 1, 4, d)), generator.normal(size=(5, 6, d))
    value, weight = generator.normal(size=(3, 5, 6, 3)), generator.integers(1, 4, (5, 6))
    table = generator.random((3, 1, 1, 6)) < 0.8
    table[..., 0] = True
    options = {"algorithm": algorithm} | ({} if mask is None else {"attn_mask": table})
    found = pool(query, key, value, key_weight=weight, **options)
    assert found.shape == (3, 5, 4, 3)
    for i, j in np.ndindex(3, 5):
        own = {} if mask is None else {"attn_mask": table[i, 0]}
        one = pool(query[i, 0], key[j], value[i, j], key_weight=weight[j], **options | own)
        assert_allclose(found[i, j], one, rtol=1e-13, atol=1e-15)  # by another loop
    state = pool_state(query, key, value, key_weight=weight, **options)
    assert state.numerator.shape == (3, 5, 4, 3)
    assert_allclose(state.finalize(), found, rtol=1e-14, atol=1e-15)  # of values about one


def test_leave_one_out_in_the_shape_it_is_taught():
    """Keys and values of shape (n, n-1), one row per left-out pair, equal exclude_self (mission M10)."""
    x, y, _, _ = make_sine_power(random_state=3)
    others = (1 - np.eye(len(x))).astype(bool)
    keys, values = (
        np.tile(x, (len(x), 1))[others].reshape(50, 49, 1),
        np.tile(y, (len(x), 1))[others].reshape(50, 49, 1),
    )
    taught = pool(x[:, None, None], keys, values)[:, 0, 0]
    assert_allclose(pool(x, x, y, exclude_self=True), taught, rtol=1e-13)


def test_empty_windows_of_a_batch_warn_once_and_fill_each_from_its_own_keys():
    query, key, value = np.full((2, 3, 1), 50.0), np.array([[[0.0]], [[1.0]]]), np.array([[[5.0]], [[7.0]]])
    with pytest.warns(EmptyWindowWarning, match="6 of 6") as caught:
        pool(query, key, value, kernel="boxcar")
    assert len(caught) == 1
    for empty in ("nearest", "mean"):
        found = pool(query, key, value, kernel="boxcar", empty=empty)
        assert_array_equal(found[:, 0, 0], [5.0, 7.0])
    assert_array_equal(pool(query, key, value, kernel="boxcar", empty="zero"), np.zeros((2, 3, 1)))
    with pytest.raises(ValueError, match="larger bandwidth"):
        pool(query, key, value, kernel="boxcar", empty="raise")


@algorithms(mask="float", columns=1)
def test_float_masks_are_added_to_the_logits(algorithm, generator):
    query, key, value = generator.normal(size=4), generator.normal(size=7), generator.normal(size=7)
    bias = generator.normal(size=(4, 7)) * 500
    bias[0, :3] = -np.inf
    logits = -0.5 * (query[:, None] - key) ** 2 + bias
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = weights @ value / weights.sum(axis=1)
    assert_allclose(pool(query, key, value, attn_mask=bias, algorithm=algorithm), expected, rtol=1e-10)


@algorithms(mask="bool", columns=1, kernel=["gaussian", "epanechnikov"])
def test_masked_keys_nearer_than_all_others_do_not_leak(algorithm, kernel):
    """The masked key alone is near; with a shift relative to it all other weights would vanish."""
    mask = np.array([[False, True, True]])
    found = pool([0.0], [0.0, 80.0, 80.5], [9.0, 1.0, 2.0], attn_mask=mask, kernel=kernel, bandwidth=1.0,
                 empty="nearest", algorithm=algorithm)  # fmt: skip
    assert 1.0 <= found[0] <= 1.0001
    weights = np.array([0.0, 1.0, 1.0])
    again = pool([0.0], [0.0, 80.0, 80.5], [9.0, 1.0, 2.0], key_weight=weights, kernel=kernel, empty="nearest",
                 algorithm=algorithm)  # fmt: skip
    assert_allclose(again, found, rtol=1e-15)


@algorithms(kernel=kernel_names())
def test_dtypes_and_memory_orders(kernel, algorithm, generator):
    d = fitting_columns(algorithm)
    query, key = generator.normal(size=(6, d)), generator.normal(size=(20, d))
    value = generator.integers(0, 5, size=20)
    options = {"kernel": kernel, "bandwidth": 1.5, "empty": "mean", "algorithm": algorithm}
    expected = pool(query, key, value.astype(float), **options)
    readonly = np.asfortranarray(key)
    readonly.setflags(write=False)
    wide = np.zeros((40, 4))
    wide = wide[::-2, ::2][:, :d]
    wide[:] = key
    for same in (readonly, wide, key.astype(">f8"), key.tolist()):
        assert_array_equal(pool(query, same, value, **options), expected)
    for kind in (np.int8, np.uint16, bool, ">i4"):
        found = pool(query, key, value.astype(kind), **options)
        assert found.dtype == np.float64
        assert_allclose(found, pool(query, key, value.astype(kind).astype(float), **options))
    single = pool(query.astype("f4"), key.astype("f4"), value.astype("f4"), **options)
    assert single.dtype == np.float32
    exact = pool(query.astype("f4").astype("f8"), key.astype("f4").astype("f8"), value.astype("f8"), **options)
    assert_allclose(single, exact, rtol=0, atol=2e-6 * np.ptp(value))


def test_inputs_are_left_alone(generator):
    arrays = [generator.normal(size=(8, 2)) for _ in range(3)]
    copies = [array.copy() for array in arrays]
    pool(*arrays, exclude_self=True, kernel="boxcar", bandwidth=0.01, empty="nearest")
    for array, copy in zip(arrays, copies, strict=True):
        assert_array_equal(array, copy)


def test_weights_ask_before_they_take_memory():
    with pytest.raises(ValueError, match=r"need 80 GB, more than max_bytes=1000000; ask for fewer queries"):
        pooling_weights(np.zeros(100_000), np.zeros(100_000), max_bytes=10**6)


@algorithms()
def test_progress_reaches_the_end(algorithm, generator):
    seen, d = [], fitting_columns(algorithm, 1)
    pool(
        generator.normal(size=(2, 3000, d)), generator.normal(size=(2000, d)), generator.normal(size=(2000, 1)),
        algorithm=algorithm, n_jobs=2, progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen[-1] == (6000, 6000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_plan_answers_why():
    small = Problem.from_arrays(np.zeros(10), np.zeros(10), np.zeros(10))
    large = Problem.from_arrays(np.zeros(20000), np.zeros(20000), np.zeros(20000))
    assert choose(small).algorithm == "reference"
    assert choose(large).algorithm == "sweep"
    assert "20000 queries x 20000 keys" in choose(large).reason
    with pytest.raises(ValueError, match="known algorithms: auto, reference, brute, sweep"):
        choose(small, "magic")
    with pytest.raises(ValueError, match="wanted must be some of"):
        choose(small).pullback(small, choose(small).reduce(small), np.zeros((10, 1)), frozenset({"weather"}))


def test_more_data_bring_the_estimate_to_the_truth():
    """Consistency (mission M7): with h of the optimal order the error falls, about tenfold in n at n^(-4/5)."""
    errors = []
    for n in (100, 1000, 10_000):
        sample = make_sine_power(n, random_state=0)
        inner = slice(5, 45)
        found = pool(sample.x_test[inner], sample.x_train, sample.y_train, bandwidth=0.8 * n**-0.2)
        errors.append(np.mean((found - sample.y_truth[inner]) ** 2))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_where_no_key_takes_part_there_is_no_nearest_and_no_mean():
    mask = [[True, True], [False, False]]
    for empty in ("nearest", "mean"):
        with pytest.warns(
            EmptyWindowWarning, match=r"1 of 2 queries \(the first is query 1\) have no key that takes part"
        ):
            found = pool([0.0, 5.0], [0.0, 1.0], [1.0, 2.0], attn_mask=mask, empty=empty)
        assert np.isnan(found).tolist() == [False, True]


def test_a_batch_is_made_one_item_at_a_time():
    import tracemalloc

    key, value = np.zeros((5000, 1)), np.zeros((5000, 1))
    pool(np.zeros((100, 1, 1)), key, value)  # what is loaded for it stays
    tracemalloc.start()
    pool(np.zeros((100, 1, 1)), key, value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # 100 centered copies would be 4 MB


def test_data_sets_as_taught():
    a, b = make_sine_linear(random_state=0), make_sine_power(random_state=0)
    assert a.x_train.shape == (40,)
    assert b.x_train.shape == (50,)
    for sample, power in ((a, 1.0), (b, 0.8)):
        assert np.all(np.diff(sample.x_train) >= 0)
        assert sample.x_train.min() > 0
        assert sample.x_train.max() < 5
        assert_allclose(sample.x_test, np.arange(0, 5, 0.1), atol=1e-12)
        assert_allclose(sample.y_truth, 2 * np.sin(sample.x_test) + sample.x_test**power)
    assert_array_equal(make_sine_power(random_state=0).y_train, b.y_train)
    noise = make_sine_power(100_000, random_state=1)
    residual = noise.y_train - 2 * np.sin(noise.x_train) - noise.x_train**0.8
    assert residual.std() == pytest.approx(0.5, rel=0.02)
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        make_sine_power(0)


def test_a_float_mask_of_one_row_stays_one_row():
    """A bias per key is n numbers, not n x m of them."""
    import tracemalloc

    bias = np.zeros(2000, dtype=np.float32)
    tracemalloc.start()
    problem = Problem.from_arrays(np.zeros(2000), np.zeros(2000), np.zeros(2000), attn_mask=bias)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem.logit_bias.shape == (2000, 2000)
    assert peak < 1_000_000
