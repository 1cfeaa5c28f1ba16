"""Brute force in float64 and float32, few columns and many: no digit is lost, whatever loop runs."""

from itertools import product

import numpy as np
import pytest

from kernpool import Problem, choose, pool
from kernpool.algorithms import reference
from kernpool.algorithms.brute import brute
from kernpool.algorithms.brute.fused import FusedPairs
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.algorithms.loops import kernel_weights
from kernpool.algorithms.loops.kernel_weights import exp2, exp2_minus_32, exp2_minus_64
from kernpool.execution.threads import blas_threads
from kernpool.pooling import rounding_bound
from tests.support.thinning import slow

SITUATIONS = ("plain", "wide", "offset", "far", "weights", "leave-one-out", "uneven")


def errors_and_bounds(arrays, dtype, **options):
    """Errors of brute force against float64, and the promise for each query."""
    arrays = [np.asarray(array, dtype=dtype) for array in arrays]
    weight = options.get("key_weight")
    if weight is not None:
        options["key_weight"] = weight.astype(dtype)
    problem = Problem.from_arrays(*arrays, **options)
    assert problem.dtype == dtype
    state, exact = (choose(problem, name).reduce(problem) for name in ("brute", "reference"))
    error = np.abs(state.finalize("zero") - exact.finalize("zero"))
    return error, rounding_bound(problem, exact)


# One or two loops are compiled for most of these, some seconds each: every width and kernel meets once, and all meet
# among the slow tests.
AT_ONCE = {
    (np.float64, "gaussian"): {("weights", 3)},
    (np.float32, "gaussian"): {("plain", 3)},
    (np.float64, "epanechnikov"): {("plain", 1)},
    (np.float32, "laplace"): {("leave-one-out", 4)},
}


def fused_cases():
    widths, kernels = (np.float64, np.float32), ("gaussian", "epanechnikov", "laplace")
    dimensions = (1, 3, 4, 8, 10, 64)  # in registers, eight of them, and with columns that go before
    for dtype, kernel, columns, situation in product(widths, kernels, dimensions, SITUATIONS):
        quick = (situation, columns) in AT_ONCE.get((dtype, kernel), ())
        yield pytest.param(dtype, kernel, columns, situation, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("dtype", "kernel", "columns", "situation"), list(fused_cases()))
def test_the_promise_is_kept(dtype, kernel, columns, situation, generator):
    query, key = generator.normal(size=(203, columns)), generator.normal(size=(1300, columns))
    value = generator.normal(size=1300)
    options = {"kernel": kernel, "bandwidth": 0.3 * np.sqrt(columns) * (4 if kernel == "epanechnikov" else 1)}
    if situation == "wide":  # no exponent out of range
        options["bandwidth"] *= 5
    if situation == "offset":
        query, key = query + 1000 * options["bandwidth"], key + 1000 * options["bandwidth"]
    if situation == "far":
        query = query * np.geomspace(1, 300, 203)[:, None]
    if situation == "weights":
        options["key_weight"] = 10 ** generator.uniform(-10, 0, 1300)
    if situation == "leave-one-out":
        query = key[100:303]
        options |= {"exclude_self": True, "self_index": np.arange(100, 303)}
        options["key_weight"] = generator.integers(0, 4, 1300).astype(float)
    if situation == "uneven":
        options["bandwidth"] = options["bandwidth"] * np.linspace(0.8, 1.2, columns)
    error, bound = errors_and_bounds((query, key, value), dtype, **options)
    assert np.all(error <= bound), (error / bound).max()


@pytest.mark.parametrize("columns", [1, 3, 10])
def test_float32_has_the_same_bits_for_any_number_of_threads(columns, generator):
    arrays = [generator.normal(size=shape).astype(np.float32) for shape in ((9000, columns), (5000, columns), (5000,))]
    problem = Problem.from_arrays(*arrays)
    plan = choose(problem, "brute")
    first = plan.reduce(problem, n_jobs=1)
    for n_jobs in (2, 5):
        again = plan.reduce(problem, n_jobs=n_jobs)
        assert first.numerator.tobytes() == again.numerator.tobytes()
        assert first.denominator.tobytes() == again.denominator.tobytes()


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e12, 1e25])
def test_float32_does_not_run_out_of_range(scale, generator):
    query, key, value = (generator.normal(size=n) for n in (50, 700, 700))
    exact = pool(query, key, value, bandwidth=0.3)
    narrow = [np.float32(scale * query), np.float32(scale * key), np.float32(value * scale)]
    found = pool(*narrow, bandwidth=0.3 * scale, algorithm="brute")
    np.testing.assert_allclose(found.astype(float) / scale, exact, rtol=0, atol=4e-6 * np.ptp(value))


def test_which_loops_run(generator):
    """The tests above would pass if everything ran in the staged tiles."""
    for columns in (1, 3, 10, 40):
        key = generator.normal(size=(30, columns))
        assert isinstance(CompiledBlocks(Problem.from_arrays(key, key, key[:, 0])).faster, FusedPairs)


def test_powers_of_two_over_the_whole_range(generator):
    s = np.concatenate([generator.uniform(0, 1021, 4000), generator.uniform(0, 1, 4000), np.arange(0, 1021, 0.5)])
    assert max(abs(exp2_minus_64(x) / np.exp2(-x) - 1) for x in s) < 6e-16
    assert max(abs(exp2(-x) / np.exp2(-x) - 1) for x in s) < 6e-16
    assert exp2(-1e300) == exp2(-1500.0) == 0.0
    assert exp2_minus_64(1e300) == exp2_minus_64(np.inf) <= 2.0**-1020
    narrow = (s * 125 / 1021).astype(np.float32)
    assert max(abs(float(exp2_minus_32(x)) / np.exp2(-float(x)) - 1) for x in narrow) < 3e-7
    assert exp2_minus_32(np.float32(np.inf)) <= 2.0**-124
    for t in s[s < 1000]:
        assert kernel_weights.exp2_minus_64_unclamped(t) == exp2_minus_64(t)
    for t in narrow[narrow < 120]:
        assert kernel_weights.exp2_minus_32_unclamped(t) == exp2_minus_32(t)


def test_overlapping_callers_give_blas_its_threads_back():
    import scipy.linalg  # noqa: F401  # loaded before the call
    from threadpoolctl import threadpool_info

    def threads():
        # What another test has loaded since, such as torch's own, is left alone: no compiled loop calls it.
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas" and "scipy" in pool["filepath"]]
        assert pools
        return [pool["num_threads"] for pool in pools]

    before, first, second = threads(), blas_threads(), blas_threads()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


@pytest.mark.parametrize("columns", [*slow(1), 3, *slow(10)])
def test_gradients_of_float32_are_as_precise_as_its_values(columns, generator):
    """The second pass is float64; it divides by a state that a float32 pass has made."""
    shapes = ((203, columns), (1300, columns), (1300,))
    arrays = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    problem = Problem.from_arrays(*arrays, bandwidth=0.3 * np.sqrt(columns))
    cotangent, wanted = generator.normal(size=(203, 1)), frozenset({"query", "key", "value", "log_bandwidth"})
    found, exact = (
        plan.pullback(problem, plan.reduce(problem), cotangent, wanted)
        for plan in (choose(problem, "brute"), choose(problem, "reference"))
    )
    for name in wanted:
        target = getattr(exact, name)
        assert np.abs(getattr(found, name) - target).max() < 2e-6 * np.abs(target).max(), name


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 16])
def test_gradients_of_many_keys_are_summed_in_one_pass_with_the_same_bits(columns, generator, monkeypatch):
    """Blocks of keys add to the sums of the same queries: in order, for any number of threads and queries at a time."""
    m, n = 300, 9000
    arrays = [generator.random(shape).astype(np.float32) for shape in ((m, columns), (n, columns), (n, 2))]
    problem = Problem.from_arrays(*arrays, bandwidth=0.5).without_center()
    state, cotangent = brute.reduce(problem), generator.normal(size=(m, 2))
    wanted = frozenset({"query", "key", "value"})
    found = [brute.pullback(problem, state, cotangent, wanted, n_jobs=jobs) for jobs in (1, 2, 5)]
    apart = brute.pullback(problem, state, cotangent, frozenset({"query"}))
    monkeypatch.setattr(brute, "_NUMBERS_PER_PASS", 128 * columns)
    reports = []
    found.append(
        brute.pullback(problem, state, cotangent, wanted, n_jobs=2, progress=lambda *report: reports.append(report))
    )
    for name in sorted(wanted):
        first, *others = (getattr(one, name) for one in found)
        for other in others[:2]:
            assert other.tobytes() == first.tobytes()
        assert np.allclose(others[2], first, rtol=1e-5, atol=1e-6 * np.abs(first).max())
    assert np.allclose(apart.query, found[0].query, rtol=1e-5, atol=1e-6 * np.abs(apart.query).max())
    assert reports[-1] == (3 * n, 3 * n)


@pytest.mark.parametrize(("value_scale", "slope_scale"), [(1e20, 1e20), (1e30, 1e10), (1e-25, 1e-25), (1.0, 1e-40)])
def test_products_of_gradients_stay_in_the_range_of_float32(value_scale, slope_scale, generator):
    arrays = [generator.random(shape).astype(np.float32) for shape in ((60, 16), (900, 16))]
    value = (value_scale * generator.normal(size=(900, 2)) * [1.0, 1e-3]).astype(np.float32)
    problem = Problem.from_arrays(*arrays, value, bandwidth=1.0).without_center()
    state, cotangent = brute.reduce(problem), slope_scale * generator.normal(size=(60, 2))
    wanted = frozenset({"query", "key", "value"})
    found, exact = (way.pullback(problem, state, cotangent, wanted) for way in (brute, reference))
    for name in wanted:
        target = getattr(exact, name)
        assert np.abs(getattr(found, name) - target).max() < 2e-6 * np.abs(target).max(), name


def test_a_key_that_hardly_weighs_alone_with_a_query(generator):
    arrays = [generator.random((n, 16)).astype(np.float32) for n in (40, 40, 40)]
    weight = np.full(40, 1e-42)
    weight[0] = 1.0
    options = {"key_weight": weight, "exclude_self": True, "self_index": np.zeros(40, dtype=int)}
    problem = Problem.from_arrays(*arrays, bandwidth=1.0, **options).without_center()
    state, wanted = brute.reduce(problem), frozenset({"query", "key", "value"})
    found = brute.pullback(problem, state, np.ones((40, 16)), wanted)
    exact = reference.pullback(problem, reference.reduce(problem), np.ones((40, 16)), wanted)
    for name in wanted:
        target = getattr(exact, name)
        assert np.abs(getattr(found, name) - target).max() < 2e-6 * np.abs(target).max(), name
