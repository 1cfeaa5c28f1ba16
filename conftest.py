"""What has to be said before anything is imported or collected."""

import gc
import os
from importlib.util import find_spec

# Threads of OpenMP that wait in a loop take the processor from the other process that runs tests: torch's took half of
# all its time. As many threads as before wait, asleep.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Doctests of a module whose extra is not installed cannot even be collected.
collect_ignore_glob = [] if find_spec("torch") else ["src/kernpool/torch/*"]
collect_ignore_glob += [] if find_spec("dask") else ["src/kernpool/dask/*", "tests/support/partitions.py"]

# Collecting makes millions of objects that stay, and the collector of garbage visits them again and again: without it
# collecting takes a third less time. Later on it is the compiler that makes objects by the million, and a fifth of its
# time went into visiting all that had been collected. `gc.freeze` would be shorter, but older versions of hypothesis
# look for who refers to their random numbers, and do not find what is frozen.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, and seldom among what is old."""
    gc.collect()
    gc.set_threshold(10_000, 20, 100)  # 700, 10, 10 by default
    gc.enable()
