"""Dask computes in the thread of the test, unless a test asks for something else."""

import pytest


@pytest.fixture(autouse=True)
def without_threads():
    dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
    with dask.config.set(scheduler="synchronous"):
        yield
