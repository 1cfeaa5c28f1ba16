"""Compilation of numerical loops before their first use, e.g. when a container image is built.

Small problems of every kind are run, so that the loops they use are compiled. Compiled loops are cached on disk.
With a filled cache the first call takes a second; without it, it takes several.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernpool.execution.error_messages import as_count
from kernpool.execution.progress import Progress
from kernpool.kernels import get_kernel, is_compiled, kernel_names

COLUMNS = (1, 2, 3, 4, 5, 8, 11, 16)
ROWS, FEW = 3000, 100
MANY = range(1, 1001)
# Of unit cubes: cells of few rows, of some hundred, and windows that hold all; the three ways that sums are organised.
BANDWIDTHS = (0.002, 0.05, 0.5)


Task = tuple[str, str, int]  # calls to run (an algorithm, or estimators), kernel, and number of columns
ESTIMATORS = "estimators"


class CompiledLoops(NamedTuple):
    """Result of `compile_ahead`: number of compiled loop versions on disk, total bytes, folder, number of new ones."""

    versions: int
    size: int
    folder: Path
    new: int


def compile_ahead(
    kernels: Iterable[str] | None = None,
    columns: Iterable[int] = COLUMNS,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> CompiledLoops:
    """Compile numerical loops ahead of their first use, e.g. in a Docker image, so that first calls are fast.

    Parameters
    ----------
    kernels : iterable of str, optional
        Kernels to compile; by default all that have compiled loops.
    columns : iterable of int, default=(1, 2, 3, 4, 5, 8, 11, 16)
        Numbers of columns to compile for. Other numbers share most of their loops with the next larger one.
    processes : int, optional
        How many compile at a time; by default one per processor that this process may use. One compiles in this
        process.
    progress : callable, optional
        Called as ``progress(done, total)`` in tasks.

    Returns
    -------
    CompiledLoops
        What is on disk now, and how much of it is new.

    Raises
    ------
    ValueError
        If a kernel is unknown or has no compiled loops, or a number is out of its range.

    Notes
    -----
    Some minutes for everything. The folder is that of Numba: next to the modules, or below ``NUMBA_CACHE_DIR``, or the
    user's cache where the package may not be written to. Loops are compiled for this kind of processor, and for these
    versions of kernpool and Numba.

    Examples
    --------
    >>> compile_ahead(["gaussian"], columns=[0])
    Traceback (most recent call last):
    ValueError: columns must be numbers from 1 to 1000, got [0]
    """
    tasks = _tasks(kernels, columns)
    if processes is None:
        processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    as_count("processes", processes)
    before = len(_files()[1])
    if progress is not None:
        progress(0, len(tasks))
    for done, _ in enumerate(_run_all(tasks, processes), 1):
        if progress is not None:
            progress(done, len(tasks))
    folder, files = _files()
    return CompiledLoops(len(files), sum(file.stat().st_size for file in files), folder, len(files) - before)


def _run_all(tasks: list[Task], processes: int) -> Iterator[None]:
    """Run all tasks, in this process if it is one, and yield as each is done."""
    if processes == 1:
        for task in tasks:
            run(*task)
            yield
        return
    executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        for future in as_completed([executor.submit(run, *task) for task in tasks]):
            yield future.result()
    finally:
        executor.shutdown(cancel_futures=True)


def _tasks(kernels: Iterable[str] | None, columns: Iterable[int]) -> list[Task]:
    names = [name for name in kernel_names() if is_compiled(get_kernel(name))] if kernels is None else list(kernels)
    for name in names:
        if not is_compiled(get_kernel(name)):
            raise ValueError(f"kernel {name!r} is one of your own, which has no compiled loops; leave it out")
    numbers = sorted(set(columns))
    if not numbers or not all(d in MANY for d in numbers):
        raise ValueError(f"columns must be numbers from {MANY.start} to {MANY.stop - 1}, got {numbers}")
    canonical = sorted({get_kernel(name).name for name in names})
    return [
        (name, kernel, d)
        for name, only, those in TASKS
        for kernel in canonical
        if only is None or kernel in only
        for d in numbers
        if d in those
    ]


def _files() -> tuple[Path, list[Path]]:
    """Return the cache folder of compiled loops, and the files in it."""
    from kernpool.algorithms.brute.loops import tiles
    from kernpool.execution.compilation import PACKAGE

    place = Path(tiles.reduce_block._cache.cache_path)  # type: ignore[attr-defined]  # made by Numba
    folder = PACKAGE if place.is_relative_to(PACKAGE) else place.parent
    return folder, sorted(folder.rglob("*.nbc"))


def run(name: str, kernel: str, columns: int) -> None:
    """Run the calls of a compilation task, so that their loops are compiled; ignore results and warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == ESTIMATORS:
            _fit(kernel, columns)
        else:
            _pool(name, kernel, columns)


def _arrays(d: int, rows: int = ROWS, dtype: Any = np.float64) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.random((rows, d)).astype(dtype)
    return X, (np.sin(6.0 * X[:, 0]) + 0.1 * random.normal(size=rows)).astype(dtype)


def _pool(algorithm: str, kernel: str, d: int) -> None:
    """Compile the loops of `pool` by typical calls with one algorithm, of means and of planes if it has them.

    The calls have many and few queries, float32, weights, leave-one-out and several outputs.
    """
    from kernpool.algorithms import ALGORITHMS
    from kernpool.core import Problem
    from kernpool.pooling.pool import pool

    for degree, dtype in product((0, 1), (np.float64, np.float32)):
        X, y = _arrays(d, dtype=dtype)
        if ALGORITHMS[algorithm].refusal(Problem.from_arrays(X[:9], X[:9], y[:9], kernel=kernel, degree=degree)):
            continue
        common: dict[str, Any] = {"kernel": kernel, "algorithm": algorithm, "empty": "zero", "degree": degree}
        for h in BANDWIDTHS:
            for query in (X, X[:FEW]):
                pool(query, X, y, bandwidth=h * d**0.5, **common)
        common["bandwidth"] = BANDWIDTHS[-1] * d**0.5
        pool(X, X, y, exclude_self=True, **common)
        pool(X, X, y, key_weight=1.0 + X[:, 0], **common)
        pool(X, X, np.stack([y, y * y], axis=1), **common)


def _fit(kernel: str, d: int) -> None:
    """Compile the loops of estimators: fit them, predict, explain, and compute slopes, quantiles and intervals."""
    from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

    X, y = _arrays(d, 600)
    for model in (NadarayaWatsonRegressor(kernel=kernel), LocalLinearRegressor(kernel=kernel)):
        model.fit(X, y)
        model.predict(X[:FEW])
        model.get_prediction(X).explain()
        if get_kernel(kernel).log_slope is not None:
            _ = model.get_prediction(X[:FEW]).slope
        if d <= 3:
            model.confidence_interval(X[:FEW], simultaneous=d == 1)
            model.quantile(X[:FEW], [0.1, 0.5])
            model.prediction_interval(X[:FEW], level=0.9)
    classifier = NadarayaWatsonClassifier(kernel=kernel).fit(X, y > np.median(y))
    classifier.predict_proba(X[:FEW])


# By name: of which kernels, if not of all, and of which numbers of columns.
TASKS: tuple[tuple[str, tuple[str, ...] | None, range], ...] = (
    (ESTIMATORS, ("gaussian", "epanechnikov"), range(1, 4)),
    ("sweep", None, range(1, 2)),
    ("brute", None, MANY),
    ("kd_tree", None, range(2, 4)),
    ("nufft", ("gaussian",), range(2, 4)),
)
