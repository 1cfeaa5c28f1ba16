"""Batches of small problems, summed in one compiled call: every answer beside those of items one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import kernel_names, pool
from kernpool.pooling import Recipe, in_memory
from tests.support.thinning import thinned

ITEMS, QUERIES, KEYS = 60, 13, 50
SITUATIONS = ("plain", "weights", "leave-one-out", "both", "product", "linear", "quadratic", "far", "values")


@pytest.fixture
def one_by_one(monkeypatch):
    """Make `pool` sum items one by one for a while, and count how often it summed them together."""
    together, sum_stack = [], in_memory.sum_stack

    def counting(*arguments):
        found = sum_stack(*arguments)
        together.append(found is not None)
        return found

    monkeypatch.setattr(in_memory, "sum_stack", counting)

    def both(*args, **options):
        found = pool(*args, **options)
        with monkeypatch.context() as patch:
            patch.setattr(in_memory, "sum_stack", lambda *_: None)
            expected = pool(*args, **options)
        return found, expected, together.pop()

    return both


@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning", "ignore::kernpool.RankDeficiencyWarning")
@pytest.mark.parametrize(("kernel", "situation"), thinned(kernel_names(), SITUATIONS, ("gaussian",)))
def test_every_answer_is_that_of_its_item(kernel, situation, generator, one_by_one):
    query, key = generator.normal(size=(ITEMS, QUERIES, 2)), generator.normal(size=(ITEMS, KEYS, 2))
    value, options = generator.normal(size=(ITEMS, KEYS, 1)), {"kernel": kernel, "bandwidth": [0.8, 1.1]}
    if situation in ("weights", "both"):
        options["key_weight"] = generator.integers(0, 4, (ITEMS, KEYS)) * 10.0 ** generator.integers(-9, 9, (ITEMS, 1))
        options["key_weight"][:, 3] += 1e-3
    if situation in ("leave-one-out", "both"):
        query = key[:, 20 : 20 + QUERIES]
        options |= {"exclude_self": True, "self_index": np.tile(np.arange(20, 20 + QUERIES), (ITEMS, 1))}
    if situation == "product":
        options["kernel"] = f"product {kernel}"
    if situation in ("linear", "quadratic"):
        options["degree"] = 1 + SITUATIONS.index(situation) - SITUATIONS.index("linear")
        options["bandwidth"] = [6.0, 7.0]  # windows that determine a fit
    if situation == "far":
        query = query * np.geomspace(1, 300, ITEMS)[:, None, None]
    if situation == "values":
        value = np.concatenate([value, 1e6 + value**2, 1e-30 * value], axis=2)
        value[7] = 0.0
        value[9] *= 1e-40
    found, expected, together = one_by_one(query, key, value, **options)
    assert together
    assert_array_equal(np.isnan(found), np.isnan(expected))
    spread = np.ptp(value, axis=1)[:, None]
    slack = 1e-9 if options.get("degree") else 1e-7 if situation == "far" else 1e-12
    assert np.all((np.abs(found - expected) <= slack * spread) | np.isnan(expected) | (found == expected))


def test_arrays_of_an_item_each_and_of_all(generator, one_by_one):
    """Leading dimensions broadcast, and results have them."""
    query, key, value = (generator.normal(size=shape) for shape in ((3, 20, 9, 2), (20, 30, 2), (30, 2)))
    weight = generator.random((3, 1, 30))
    found, expected, together = one_by_one(query, key, value, key_weight=weight, bandwidth=0.7)
    assert together
    assert found.shape == (3, 20, 9, 2)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_other_numbers(dtype, generator, one_by_one):
    query, key, value = ((4 * generator.normal(size=(90, n, 2))).astype(dtype) for n in (20, 30, 30))
    found, expected, together = one_by_one(query, key, value, bandwidth=2.0)
    assert together
    assert found.dtype == expected.dtype
    assert_allclose(found, expected, rtol=1e-3 if dtype == np.float16 else 1e-6)


def test_the_same_bits_for_any_number_of_threads(generator, monkeypatch):
    monkeypatch.setattr(in_memory, "NUMBERS", 2000)  # many blocks
    arrays_ = generator.normal(size=(90, 20, 2)), generator.normal(size=(90, 30, 2)), generator.normal(size=(90, 30, 1))
    reports = []
    first = pool(*arrays_, bandwidth=0.4, progress=lambda *report: reports.append(report))
    assert reports[-1] == (90 * 20, 90 * 20)
    for n_jobs in (2, 8):
        assert pool(*arrays_, bandwidth=0.4, n_jobs=n_jobs).tobytes() == first.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_weight": -1.0}, "key_weight must not be negative"),
        ({"key_weight": 0.0}, "key_weight is zero for every key"),
        ({"self_index": 30}, r"self_index must lie in \[-1, 29\]"),
        ({"query": 1e149}, "bandwidth is too small"),
    ],
)
def test_bad_input_of_one_item_is_named_as_ever(change, message, generator):
    query, key, value = (generator.normal(size=(70, n, 1)) for n in (20, 30, 30))
    options = {"key_weight": np.ones((70, 30)), "exclude_self": True, "self_index": np.zeros((70, 20), dtype=int)}
    (name, wrong) = next(iter(change.items()))
    target = query if name == "query" else options[name]
    target[65] = wrong
    with pytest.raises(ValueError, match=message):
        pool(query, key, value, bandwidth=0.01, **options)


def test_an_answer_that_cannot_be_is_computed_again(generator, monkeypatch):
    from kernpool.algorithms.brute import tiles as compiled

    def wrong(first, stack):
        state = summed(first, stack)
        state.numerator[5 * QUERIES + 3] = 1e9
        state.denominator[7 * QUERIES] = 0.0
        return state

    summed = compiled.sum_items
    query, key, value = (generator.normal(size=(ITEMS, n, 1)) for n in (QUERIES, KEYS, KEYS))
    expected = pool(query, key, value, bandwidth=0.5)
    monkeypatch.setattr(compiled, "sum_items", wrong)
    assert_allclose(pool(query, key, value, bandwidth=0.5), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("options", [{"algorithm": "reference"}, {"attn_mask": np.ones((13, 50), dtype=bool)}])
def test_what_is_left_to_plans(options, generator, one_by_one):
    query, key, value = (generator.normal(size=(ITEMS, n, 1)) for n in (QUERIES, KEYS, KEYS))
    assert not one_by_one(query, key, value, bandwidth=0.5, **options)[2]


def test_few_small_problems_load_no_compiler():
    items = np.zeros((2, 3, 1))
    batch = in_memory.ArrayPairs(items, items).batch(Recipe.of(), items)
    assert in_memory.sum_stack(batch, Recipe.of(), None) is None


def test_leave_one_out_without_an_index(generator, one_by_one):
    key, value = generator.normal(size=(80, 40, 1)), generator.normal(size=(80, 40, 1))
    found, expected, together = one_by_one(key, key, value, bandwidth=0.3, exclude_self=True)
    assert together
    assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
