"""Dense NumPy some rows at a time: the reference implementation's sums, whatever pairs are left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem
from kernpool.algorithms import REFERENCE, reference
from kernpool.core import Exclusion

KEYS, QUERIES = 1300, 50  # eleven rows a block


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("pairs", ["all", "own", "mask", "bias", "groups"])
def test_blocks_of_rows_have_the_sums_of_all_at_once(pairs, kernel, degree, generator):
    options = {}
    if pairs == "own":
        options = {"exclude_self": True, "self_index": generator.integers(-1, KEYS, QUERIES)}
    elif pairs in ("mask", "bias"):
        mask = generator.random((QUERIES, KEYS)) < 0.9
        options = {"attn_mask": mask if pairs == "mask" else np.where(mask, generator.normal(size=mask.shape), -np.inf)}
    problem = Problem.from_arrays(
        generator.normal(size=(QUERIES, 2)), generator.normal(size=(KEYS, 2)), generator.normal(size=(KEYS, 2)),
        kernel=kernel, key_weight=generator.integers(1, 4, KEYS), degree=degree, **options,
    )  # fmt: skip
    if pairs == "groups":
        problem = problem.excluding(generator.integers(0, 9, QUERIES), Exclusion(generator.integers(0, 9, KEYS)))
    done = []
    found = REFERENCE.reduce(problem, 1, lambda *rows: done.append(rows))
    expected = reference.reduce(problem)
    assert len(done) == -(-QUERIES // (reference.PAIRS_AT_ONCE // KEYS))
    assert done[-1] == (QUERIES, QUERIES)
    assert_array_equal(found.shift, expected.shift)
    assert_allclose(found.denominator, expected.denominator, rtol=1e-14)
    size = np.abs(expected.numerator).max(axis=0)
    assert_allclose(found.numerator / size, expected.numerator / size, rtol=0, atol=1e-14)
