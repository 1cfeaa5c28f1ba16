"""What all tests share: inputs that exercise every part of a problem, and how close is close enough."""

import numpy as np
import pytest
from hypothesis import settings

from kernpool import Problem
from kernpool.algorithms.verification import FAULTS

# The same examples every time, so that a test that passes keeps passing; `pytest --hypothesis-profile explore` draws
# new ones, and prints how to see again what fails (`-m hypothesis` selects all tests that draw).
settings.register_profile("kernpool", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=400)
settings.load_profile("kernpool")

VARIANTS = ("plain", "weighted", "masked", "leave-one-out", "weighted leave-one-out", "float mask", "offset", "far")


def make_problem(kernel, composition, columns, variant, *, m=90, n=1300, seed=0, bandwidth=0.8, moments=0):
    """A problem that spans several tiles of 512 keys, with two value columns."""
    generator = np.random.default_rng(seed)
    query, key = generator.normal(size=(m, columns)), generator.normal(size=(n, columns))
    value = generator.normal((0.0, 5.0), size=(n, 2))
    extra = {}
    if "weighted" in variant:
        extra["key_weight"] = generator.integers(0, 4, n).astype(float)
    if variant == "masked":
        extra["attn_mask"] = generator.random((m, n)) < 0.3
        extra["attn_mask"][7] = False
    if "leave-one-out" in variant:
        query = key[:m].copy()
        extra |= {"exclude_self": True, "self_index": np.where(np.arange(m) % 5 == 4, -1, np.arange(m))}
    if variant == "float mask":
        extra["attn_mask"] = np.where(generator.random((m, n)) < 0.3, -np.inf, generator.normal(size=(m, n)))
    if variant == "offset":
        query, key = query + 1000.0, key + 1000.0
    if variant == "far":
        query = query + 60.0 * generator.integers(0, 2, (m, 1))
    return Problem.from_arrays(
        query, key, value, kernel=kernel, composition=composition, bandwidth=bandwidth, moments=moments, **extra
    )


SWEEP = ("test_sweep", "test_cells", "test_tol", "test_far_gradients")  # files whose loops are mostly of the sweep


@pytest.hookimpl(trylast=True)  # once it is known which items will run
def pytest_collection_modifyitems(config, items):
    """Have two processes compile different loops: the first half of the items begins with those of the sweep.

    Otherwise both compile what both meet, because Numba's cache on disk knows nothing of work in progress. What is of
    no algorithm comes at the end of either half: by then the loops are in the cache. It is also what the process that
    has nothing left takes over from the other, which is always the end.
    """
    if not hasattr(config, "workerinput"):
        return
    sweep, others, rest = [], [], []
    for item in items:
        algorithm = getattr(item, "callspec", None) and item.callspec.params.get("algorithm")
        if algorithm == "sweep" or (algorithm is None and item.path.stem.startswith(SWEEP)):
            sweep.append(item)
        elif algorithm is not None or item.path.stem in ("test_brute", "test_tree", "test_tree_narrow"):
            others.append(item)
        else:
            rest.append(item)
    cut = max(0, len(items) // 2 - len(sweep))
    items[:] = [*sweep, *rest[:cut], *others, *rest[cut:]]


@pytest.fixture(autouse=True)
def no_faults():
    """No answer has had to be corrected at run time: it would be a defect, however well it was mended."""
    FAULTS.clear()
    yield
    assert FAULTS.counts() == {}


@pytest.fixture
def generator():
    return np.random.default_rng(0)
