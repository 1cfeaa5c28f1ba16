"""Pairs of every kind sum to the same; those in memory say by which algorithm, and why."""

import numpy as np
import pytest

from kernpool import open_chunks, pool
from kernpool.pooling import ArrayPairs, ChunkPairs, Recipe, finalize
from kernpool.pooling.out_of_core import pairs_of_maps


def rows():
    generator = np.random.default_rng(0)
    return generator.normal(size=(30, 2)), generator.normal(size=(400, 2)), generator.normal(size=(400, 3))


def memory_maps(folder):
    _, key, value = rows()
    for name, array in (("key", key), ("value", value)):
        np.save(folder / f"{name}.npy", array)
    return pairs_of_maps(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("key", "value")))


def partitions(_):
    array = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
    from kernpool.dask import open_partitions

    _, key, value = rows()
    return open_partitions(array.from_array(key, chunks=(150, 2)), array.from_array(value, chunks=(150, 3)))


PAIRS = {
    "arrays": lambda _: ArrayPairs(*rows()[1:]),
    "chunks": lambda _: ChunkPairs(open_chunks(*rows()[1:], rows=90)),
    "memory maps": memory_maps,
    "partitions": partitions,
}


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kind", PAIRS)
def test_every_kind_sums_to_the_same(kind, degree, tmp_path):
    query, key, value = rows()
    recipe, pairs = Recipe.of(bandwidth=0.7, degree=degree, empty="zero"), PAIRS[kind](tmp_path)
    expected = pool(query, key, value, bandwidth=0.7, degree=degree)
    np.testing.assert_allclose(finalize(pairs.reduce(recipe, query), recipe), expected, rtol=1e-9, atol=1e-12)


def test_arrays_say_why():
    query, key, value = rows()
    pairs = ArrayPairs(key, value)
    assert Recipe.of().bandwidth == 1.0  # as `pool` has it
    plan = pairs.plan(Recipe.of(bandwidth=0.7), query)
    assert plan.algorithm
    assert len(plan.reason.split()) >= 5
    assert "as asked" in pairs.plan(Recipe.of(bandwidth=0.7, algorithm="brute"), query).reason
