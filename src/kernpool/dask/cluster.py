"""Where tasks run: on a cluster, or with the scheduler that Dask would use."""

from __future__ import annotations

import threading
from typing import Any

import dask
from dask.base import get_scheduler

# Arrays of the caller are part of the graph so that they outlive any worker, and what Dask recommends of large ones is
# nothing that a caller of ours can do. Settings belong to the process, so one thread changes them at a time.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": 1 << 62}
_SUBMISSION = threading.Lock()
SECONDS_TO_CONNECT = 5.0  # of the ten in which a user wants to hear that nobody is there


def compute(tasks: list[Any], client: Any, retries: int) -> Any:
    """Run tasks on a cluster, or with the scheduler that Dask would use.

    Parameters
    ----------
    tasks : list of Delayed
        What to run.
    client : distributed.Client or None
        The cluster; None for that of the latest client, or no cluster.
    retries : int
        How often a task that failed is tried again.

    Returns
    -------
    sequence
        Their results.
    """
    client = find_client(client)
    if client is None:
        return dask.compute(*tasks)
    with _SUBMISSION, dask.config.set(LARGE_GRAPHS):
        futures = client.compute(tasks, retries=retries)
    return client.gather(futures)


def find_client(client: Any = None) -> Any:
    """Return a client, or else the one that Dask would use, or None."""
    found = getattr(get_scheduler(), "__self__", None) if client is None else client
    return found if hasattr(found, "gather") else None


def connect(address: str, timeout: float = SECONDS_TO_CONNECT) -> Any:
    """Return a client of the cluster at an address, or say within ten seconds that there is none.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``"tcp://10.0.0.1:8786"``.
    timeout : float, default=5
        Seconds to wait for an answer.

    Returns
    -------
    distributed.Client
        To be closed by the caller.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    """
    from distributed import Client

    try:
        # A client that finds nobody may stay the default one of all later tasks, which would wait for it forever.
        Client(address, timeout=timeout, set_as_default=False).close()
        return Client(address, timeout=timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one with `dask scheduler`, and "
            "give the address that it prints, such as tcp://10.0.0.1:8786"
        ) from None
