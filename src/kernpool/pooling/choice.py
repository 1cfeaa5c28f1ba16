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
        those that can do the problem (`Algorithm.seconds`). For large problems of several columns the estimate looks at
        64 queries and 2048 keys, which takes some milliseconds.

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
    All algorithms are within the same promise of accuracy, but not equal to the last bit. The plan depends on the
    problem alone, and not on what the process did before. Up to some ten or twenty thousand pairs it is a dense NumPy
    expression, which loads no compiler. Beyond, it is compiled loops, though the first call of a process waits half a
    second to a second for them to load, and several where they have never been compiled. Every later call gains: 1000 x
    1000 pairs take 2 ms in place of 30 to 60, and a search for a bandwidth, which makes hundreds of calls, has won the
    time back when it ends (300 rows of two columns: 0.3 s in place of 1.6). For a single call of moderate size,
    ``"reference"`` is done before loops have loaded.

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
