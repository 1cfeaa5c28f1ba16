"""Fused loops: numbers of columns, and of queries that share a key, and which of them are done again."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Problem, choose, merge, pool
from kernpool.algorithms import reference
from kernpool.algorithms.brute import fused
from kernpool.algorithms.brute.fused import FusedMoments, FusedPairs
from kernpool.algorithms.brute.loops.fused_means import AT_ONCE
from kernpool.execution.compilation import vector_registers
from kernpool.pooling import rounding_bound

KEYS, QUERIES = 1100, 203  # two tiles and a rest; no multiple of four
WIDTHS = (np.float64, np.float32)


def problem_of(columns, dtype, generator, spread=1.0, values=1, **options):
    arrays = [generator.normal(size=(n, columns)).astype(dtype) for n in (QUERIES, KEYS)]
    value = generator.normal(size=(KEYS, values)).astype(dtype)
    return Problem.from_arrays(*arrays, value, **{"bandwidth": np.sqrt(columns) / spread} | options)


def within_the_promise(problem):
    """Hold every answer of brute force against the reference implementation."""
    state, exact = (choose(problem, name).reduce(problem) for name in ("brute", "reference"))
    error = np.abs(state.finalize("zero") - exact.finalize("zero"))
    assert np.all(error <= rounding_bound(problem, exact)), (error / rounding_bound(problem, exact)).max()


# Four loops are compiled for each, half a minute, and each number of columns up to eight has its own. So numbers of
# columns take turns with situations, one is among the quick, and those whose neighbors are there wait for the night.
CASES = [
    (np.float64, "plain", 1), (np.float32, "both", 1), (np.float64, "own", 3), (np.float32, "weights", 3),
]  # fmt: skip
COLUMNS = (1, 2, 3, 4, 6, AT_ONCE, AT_ONCE + 1, 12, 2 * AT_ONCE, 25)
BETWEEN = (2, 6, 12, 2 * AT_ONCE)


@pytest.mark.parametrize(
    ("columns", "case"),
    [
        *(
            pytest.param(
                columns, CASES[place % 4], marks=[pytest.mark.slow, *[pytest.mark.exhaustive] * (columns in BETWEEN)]
            )
            for place, columns in enumerate(COLUMNS)
        ),
        (3, CASES[1]),
    ],
)
def test_every_number_of_columns_and_of_queries_that_share_a_key(columns, case, generator, monkeypatch):
    dtype, situation, values = case
    options = {}
    if situation in ("weights", "both"):
        options["key_weight"] = generator.integers(0, 4, KEYS).astype(dtype)
    if situation in ("own", "both"):
        options |= {"exclude_self": True, "self_index": generator.integers(-1, KEYS, QUERIES)}
    for registers in (16, 32):
        monkeypatch.setattr(fused, "vector_registers", lambda registers=registers: registers)
        problem = problem_of(columns, dtype, generator, values=values, **options)
        for even in (True, False):
            bandwidth = problem.similarity.bandwidth * (1.0 if even else np.linspace(0.9, 1.1, columns))
            problem = replace(problem, similarity=replace(problem.similarity, bandwidth=bandwidth))
            state, doubtful = FusedPairs(problem).sums(slice(0, QUERIES), slice(0, KEYS))
            exact = reference.reduce(problem)
            assert not doubtful.any()
            slack = 1e-12 if dtype == np.float64 else 2e-6
            weight = exact.denominator * np.exp(exact.shift)
            assert_allclose(state.denominator, weight, rtol=100 * slack)
            error = np.abs(state.finalize() - exact.finalize())
            assert np.all(error <= slack * np.ptp(problem.value, axis=0))


@pytest.mark.parametrize(("Sums", "degree", "dtype"), [(FusedPairs, 0, np.float32), (FusedMoments, 1, np.float64)])
def test_own_keys_are_left_out_wherever_a_block_of_keys_begins(Sums, degree, dtype, generator):
    options = {"key_weight": generator.integers(0, 4, KEYS).astype(dtype), "exclude_self": True, "degree": degree}
    problem = problem_of(3, dtype, generator, self_index=generator.integers(-1, KEYS, QUERIES), **options)
    sums, exact = Sums(problem), reference.reduce(problem)
    blocks = [sums.sums(slice(0, QUERIES), block)[0] for block in (slice(0, 512), slice(512, KEYS))]
    slack = 2e-6 if dtype == np.float32 else 1e-12
    assert_allclose(merge(*blocks).finalize(), exact.finalize(), rtol=slack, atol=slack)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("spread", [1, 3, 10, 30, 100, 1e3, 1e5, 1e7])
def test_the_promise_is_kept_however_widely_keys_are_spread(spread, dtype, generator):
    """Next to keys and far from all of them."""
    key = generator.normal(size=(KEYS, 6)) * spread
    key[: KEYS // 2] = key[KEYS // 2 :] + generator.normal(size=(KEYS // 2, 6))
    query = np.concatenate([key[:100] + generator.normal(size=(100, 6)), key[:103] * 1.001])
    arrays = [x.astype(dtype) for x in (query, key, generator.normal(size=KEYS))]
    within_the_promise(Problem.from_arrays(*arrays, bandwidth=2.0))


def test_answers_do_not_depend_on_the_block_that_a_query_is_in(generator):
    """Rows share keys by twos or fours, and the last ones with rows of zeros."""
    key, value = generator.normal(size=(700, 3)), generator.normal(size=700)
    query = generator.normal(size=(9, 3))
    together = pool(query, key, value, algorithm="brute")
    for m in range(1, 9):
        assert_allclose(pool(query[:m], key, value, algorithm="brute"), together[:m], rtol=1e-13)


@pytest.mark.slow
@pytest.mark.skipif(vector_registers() < 32, reason="this processor, or what Numba may use of it, has no AVX-512")
def test_vectors_are_as_wide_as_the_processor_has_them(tmp_path):
    """LLVM prefers half of them on Intel's processors: every multiply-add of vectors is of the widest.

    And the stack is aligned, so that none of those that are kept there crosses a line of the cache.
    """
    script = """
import json, re
import numpy as np
from kernpool import Problem
from kernpool.algorithms.brute.fused import FusedPairs

for columns, dtype in ((1, np.float64), (3, np.float32), (12, np.float64)):
    x = np.random.default_rng(0).normal(size=(40, columns)).astype(dtype)
    pairs = FusedPairs(Problem.from_arrays(x, x, x[:, 0]))
    pairs.sums(slice(0, 8), slice(0, 40))
    (assembly,) = pairs.loop.inspect_asm().values()
    counts = [len(re.findall(rf"vfn?m(?:add|sub)\\S*p[sd]\\s.*{width}mm", assembly)) for width in "yz"]
    print(json.dumps([*counts, bool(re.search(r"andq\\s+\\$-64, %rsp", assembly))]))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}  # assembly is not kept on disk
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    for narrow, wide, aligned in map(json.loads, done.stdout.splitlines()):
        assert wide >= 10
        assert narrow == 0
        assert aligned
