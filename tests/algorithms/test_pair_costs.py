"""Tables of what a pair costs: one for each class of processor, complete and plausible."""

import json
from importlib import resources

import pytest

from kernpool import kernel_names
from kernpool.algorithms import algorithm
from kernpool.algorithms.algorithm import FILE, pair_cost
from kernpool.execution import threads

STORED = json.loads((resources.files("kernpool.algorithms") / FILE).read_text(encoding="utf-8"))
BUILT_IN = [name for name in kernel_names() if name in STORED["256"]["nanoseconds"]["radial"]["kernels"]]


@pytest.fixture(params=[256, 512])
def bits(request, monkeypatch):
    monkeypatch.setattr(algorithm, "vector_bits", lambda: request.param)
    algorithm.pair_cost.cache_clear()
    yield request.param
    algorithm.pair_cost.cache_clear()


def test_every_kernel_has_its_costs(bits):
    assert len(BUILT_IN) == 11
    for name, table in STORED[str(bits)]["nanoseconds"].items():
        assert list(table["kernels"]) == BUILT_IN, name
        assert table["columns"] == sorted(set(table["columns"]))
        for kernel, times in table["kernels"].items():
            assert len(times) == len(table["columns"])
            assert all(0.05 < time < 200.0 for time in times), (name, kernel, times)


def test_more_columns_cost_more(bits):
    for kernel in BUILT_IN:
        assert pair_cost("radial", kernel, 1) < pair_cost("radial", kernel, 64) < pair_cost("radial", kernel, 200)
        few, many = pair_cost("radial", kernel, 5), pair_cost("radial", kernel, 8)
        assert min(few, many) <= pair_cost("radial", kernel, 6) <= max(few, many)


def test_a_kernel_that_was_not_measured_costs_what_the_slowest_does(bits):
    slowest = max(pair_cost("staged", kernel, 3) for kernel in BUILT_IN)
    assert pair_cost("staged", "somebody's", 3) == pytest.approx(slowest)


@pytest.mark.parametrize(
    ("features", "bits"), [("+avx2,+avx512f", 512), ("+avx2,-avx512f", 256), ("", 256), ("+avx2", 256)]
)
def test_what_is_compiled_for_counts(features, bits, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_FEATURES", features)
    threads.vector_bits.cache_clear()
    assert threads.vector_bits() == bits
    monkeypatch.delenv("NUMBA_CPU_FEATURES")
    threads.vector_bits.cache_clear()
    assert threads.vector_bits() == (512 if has_avx512() else 256)


def has_avx512():
    from kernpool.execution.compilation import vector_registers

    return vector_registers() == 32
