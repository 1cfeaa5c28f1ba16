"""Where it is decided how to pool, whatever the container: one function, whose plans can say why."""

from __future__ import annotations

from kernpool.core.problem import Problem
from kernpool.pooling.cells import CellPlan, choose_for_levels
from kernpool.pooling.plan import Plan, choose_algorithm


def choose(problem: Problem, algorithm: str = "auto") -> Plan | CellPlan:
    """Choose an algorithm for a problem, and say why; nothing is computed.

    Parameters
    ----------
    problem : Problem
        From `Problem.from_arrays`.
    algorithm : str, default="auto"
        A name from ``kernpool.algorithms.ALGORITHMS``, or ``"auto"``: the one with the smallest estimate of time among
        those that can do the problem (see `kernpool.pooling.costs`). For large problems of several columns the estimate
        looks at 64 queries and 2048 keys, which takes some milliseconds.

    Returns
    -------
    Plan
        With ``algorithm`` and ``reason``.

    Raises
    ------
    ValueError
        If the algorithm is unknown or cannot do this problem; the message names one that can.

    Notes
    -----
    All algorithms are within the same promise of accuracy, but not equal to the last bit. Between some ten thousand and
    a million pairs ``"auto"`` depends on whether the process has loaded the compiler (Numba) already: a young process
    sums densely in NumPy, which is done before compiled loops have loaded (one second), and the reason says so; later
    calls take the loops, up to twenty times as fast. Where the last bits have to be the same whatever the process did
    before, name an algorithm, or ``import numba`` before the first call: then the plan depends on the problem alone.

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([0.5], [0.0, 1.0], [3.0, 4.0])
    >>> kernpool.choose(problem).algorithm
    'reference'
    >>> kernpool.choose(problem, "brute").reason
    'every pair, in compiled tiles: as asked'
    """
    if problem.factors is not None:
        return choose_for_levels(problem, algorithm)
    return choose_algorithm(problem, algorithm)
