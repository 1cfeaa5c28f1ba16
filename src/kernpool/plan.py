"""The plan: which algorithm, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import ALGORITHMS, Algorithm, Gradients
from kernpool.algorithms.base import WANTED
from kernpool.algorithms.threads import resolve_n_jobs
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

# Dense NumPy takes about 10 ms for this many pairs, loading the compiler about 300 ms.
DENSE_PAIRS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """An algorithm chosen for a problem.

    Parameters
    ----------
    algorithm : str
        Its name.
    reason : str
        Why this one, in words.
    """

    algorithm: str
    reason: str
    _chosen: Algorithm = field(repr=False, compare=False)

    def reduce(self, problem: Problem, *, n_jobs: int | None = None, progress: Progress | None = None) -> PoolState:
        """Run the algorithm.

        Parameters
        ----------
        problem : Problem
            What to sum.
        n_jobs : int or None, default=None
            Threads; see `pool`.
        progress : callable or None, default=None
            Called as ``progress(done, total)``.

        Returns
        -------
        PoolState
            The sums over all keys, of values with their centre.
        """
        return problem.restored(self._chosen.reduce(problem, resolve_n_jobs(n_jobs), progress))

    def pullback(
        self,
        problem: Problem,
        state: PoolState,
        cotangent: NDArray[np.float64],
        wanted: Collection[str],
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Gradients:
        """Differentiate ``sum(cotangent * pooled)``.

        Parameters
        ----------
        problem : Problem
            What was summed.
        state : PoolState
            What `reduce` returned for it.
        cotangent : ndarray of shape (m, c)
            Derivative of a scalar with respect to the pooled values.
        wanted : collection of {"query", "key", "value", "log_bandwidth"}
            Which derivatives; ``log_bandwidth`` is one row per query, to be summed or used as it is.
        n_jobs, progress
            As in `reduce`.

        Returns
        -------
        Gradients
            The wanted ones. Queries with an empty window contribute nothing.

        Raises
        ------
        ValueError
            If something unknown is wanted, or the kernel has no slope.
        """
        wanted = frozenset([wanted] if isinstance(wanted, str) else wanted)
        if not wanted or wanted - WANTED:
            raise ValueError(f"wanted must be some of {sorted(WANTED)}, got {sorted(wanted)}")
        if self._chosen.pullback is None:
            raise ValueError(f"algorithm {self.algorithm!r} has no gradients; use algorithm='brute'")
        cotangent = np.ascontiguousarray(cotangent, dtype=np.float64)
        for name, shape in (("cotangent", cotangent.shape), ("state.numerator", state.numerator.shape)):
            if shape != (len(problem.query), problem.value.shape[1]):
                raise ValueError(
                    f"{name} must have shape (queries, value columns) = "
                    f"{(len(problem.query), problem.value.shape[1])}, got {shape}"
                )
        reduced = problem.reduced(state)
        return self._chosen.pullback(problem, reduced, cotangent, wanted, resolve_n_jobs(n_jobs), progress)


def check_algorithm(algorithm: str) -> None:
    """Refuse an unknown algorithm.

    Parameters
    ----------
    algorithm : str
        What the caller passed.

    Raises
    ------
    ValueError
        If it is neither ``"auto"`` nor registered.
    """
    if algorithm != "auto" and algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algorithm!r}; known algorithms: auto, {', '.join(ALGORITHMS)}")


def choose(problem: Problem, algorithm: str = "auto") -> Plan:
    """Choose an algorithm for a problem, and say why; nothing is computed.

    Parameters
    ----------
    problem : Problem
        From `Problem.from_arrays`.
    algorithm : str, default="auto"
        A name from ``kernpool.algorithms.ALGORITHMS``, or ``"auto"``. Up to a million pairs ``"auto"`` is the dense
        NumPy expression, which is done before a compiler has loaded; beyond that it is ``"brute"``.

    Returns
    -------
    Plan
        With ``algorithm`` and ``reason``.

    Raises
    ------
    ValueError
        If the algorithm is unknown or cannot do this problem; the message names one that can.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([0.5], [0.0, 1.0], [3.0, 4.0])
    >>> kernpool.choose(problem)
    Plan(algorithm='reference', reason='dense NumPy: 1 queries x 2 keys are few enough to hold at once')
    >>> kernpool.choose(problem, "brute").reason
    'every pair, in compiled tiles: as asked'
    """
    check_algorithm(algorithm)
    if algorithm == "auto":
        m, n = problem.shape
        small = m * n <= DENSE_PAIRS
        chosen = ALGORITHMS["reference" if small else "brute"]
        why = f"{m} queries x {n} keys are {'few enough' if small else 'too many'} to hold at once"
    else:
        chosen, why = ALGORITHMS[algorithm], "as asked"
        if refusal := chosen.refusal(problem):
            able = [name for name, other in ALGORITHMS.items() if other.refusal(problem) is None]
            raise ValueError(f"algorithm {algorithm!r} {refusal}; use algorithm='auto' or one of {able}")
    return Plan(chosen.name, f"{chosen.summary}: {why}", chosen)
