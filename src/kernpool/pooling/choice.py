"""Where it is decided how to pool, whatever the container: one function, whose plans can say why."""

from __future__ import annotations

from functools import partial

from kernpool.algorithms import ALGORITHMS
from kernpool.core.problem import Problem
from kernpool.execution.messages import explain_calls
from kernpool.pooling.cells import CellPlan, choose_for_levels
from kernpool.pooling.groups import GroupPlan, plan_of_groups
from kernpool.pooling.plan import Plan, check_algorithm, choose_algorithm, name_of_each


@explain_calls
def choose(problem: Problem, algorithm: str = "auto", *, often: bool = False) -> Plan | CellPlan | GroupPlan:
    """Choose an algorithm for a problem, and say why; nothing is computed.

    Parameters
    ----------
    problem : Problem
        From `Problem.from_arrays`.
    algorithm : str, default="auto"
        A name from ``kernpool.algorithms.ALGORITHMS``, or ``"auto"``: the one with the smallest estimate of time among
        those that can do the problem (`Algorithm.seconds`). For large problems of several columns the estimate looks at
        64 queries and 2048 keys, which takes some milliseconds.

    often : bool, default=False
        Whether such problems will be summed many times, as by a fitted model or a search for bandwidths. Then compiled
        loops, which take half a second to load, are wanted for small problems too; `pool` asks with False.

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
    A named algorithm that cannot do what is pooled is refused, with the same message by `fit` and every method of an
    estimator. Sums that an answer needs besides, such as of squared kernels, of a fit of another degree or under a
    mask, take ``"auto"`` where the named one cannot.

    All algorithms are within the same promise of accuracy, but not equal to the last bit. The plan depends on the
    problem and the kind of processor, and not on what the process did before. For a single call of up to about a
    hundred thousand pairs it is a dense NumPy expression, which takes half a millisecond and loads no compiler. Beyond,
    it is compiled loops, though the first call of a process waits half a second to a second for them to load, and
    several where they have never been compiled: 1000 x 1000 pairs then take 1 ms in place of 5. With `often` the
    limit is some ten thousand pairs: a search for a bandwidth makes hundreds of passes and has won the time back when
    it ends (300 rows of two columns: 0.3 s in place of 1.6).

    Examples
    --------
    >>> import kernpool
    >>> problem = kernpool.Problem.from_arrays([0.5], [0.0, 1.0], [3.0, 4.0])
    >>> kernpool.choose(problem).algorithm
    'reference'
    >>> kernpool.choose(problem, "brute").reason
    'every pair, in compiled tiles: as asked'
    """
    if problem.groups is not None:
        check_algorithm(algorithm)
        part = partial(_choose_part, algorithm=algorithm, often=often)
        return plan_of_groups(problem, part, name_of_each(algorithm))
    return _choose_without_groups(problem, algorithm, often=often)


def _choose_without_groups(problem: Problem, algorithm: str, *, often: bool) -> Plan | CellPlan:
    if problem.factors is not None:
        return choose_for_levels(problem, algorithm)
    return choose_algorithm(problem, algorithm, often=often)


def _choose_part(problem: Problem, algorithm: str, *, often: bool) -> Plan | CellPlan:
    """Choose for a part of a problem with groups: few pairs of some groups come under a mask, which not all can do."""
    if problem.attn_mask is not None and algorithm != "auto" and not ALGORITHMS[algorithm].attn_mask:
        algorithm = "auto"
    return _choose_without_groups(problem, algorithm, often=often)
