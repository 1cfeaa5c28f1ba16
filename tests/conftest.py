"""What all tests share: how examples are drawn, in which order tests run, and that no answer had to be corrected."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from kernpool.algorithms.verification import FAULTS
from tests.support.covering import mark_what_is_covered
from tests.support.later import mark_later_slow

# The same examples every time, so that a test that passes keeps passing; `pytest --hypothesis-profile explore` draws
# 200 new ones as by night, and prints how to see again what fails (`-m hypothesis` selects all tests that draw).
settings.register_profile("kernpool", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=200)
settings.load_profile("kernpool")

TESTS = Path(__file__).parent
# Files whose loops are mostly of the sweep, and of the others. Specialised loops of the tree are compiled anew in every
# process, so what calls them stays together as well.
SWEEP = ("algorithms/sweep/",)
OTHERS = ("algorithms/", "core/", "laws/", "pooling/", "fuzz/")
# Files whose slow tests interrupt processes or watch clocks, and run one after the other.
ALONE = ("cli/test_chunked", "cli/test_cli", "cli/test_explore", "dask/test_dask", "data/test_temporaries",
         "execution/test_compiling", "execution/test_progress", "execution/test_threads")  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Mark what is slow before it is decided which items will run, and put those in order afterwards."""
    mark_what_is_covered(items)
    _mark_alone(items)
    mark_later_slow(items)
    _mark_browsers_slow(items)
    if "night" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("night")])
        items[:] = [item for item in items if not item.get_closest_marker("night")]
    yield
    _divide(config, items)


def _mark_alone(items):
    for item in items:
        if item.get_closest_marker("slow") and _is_among(item, ALONE):
            item.add_marker(pytest.mark.alone)


def _mark_browsers_slow(items):
    """Leave tests in a browser to the gate: Chromium alone takes as long as a hundred other tests."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def _divide(config, items):
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
        if algorithm == "sweep" or _is_among(item, SWEEP):
            sweep.append(item)
        elif algorithm is not None or _is_among(item, OTHERS):
            others.append(item)
        else:
            rest.append(item)
    cut = max(0, len(items) // 2 - len(sweep))
    items[:] = [*sweep, *rest[:cut], *others, *rest[cut:]]


def _is_among(item, places):
    return item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).as_posix().startswith(places)


@pytest.fixture(autouse=True)
def no_faults():
    """No answer has had to be corrected at run time: it would be a defect, however well it was mended."""
    FAULTS.clear()
    yield
    assert FAULTS.counts() == {}


@pytest.fixture
def generator():
    return np.random.default_rng(0)
