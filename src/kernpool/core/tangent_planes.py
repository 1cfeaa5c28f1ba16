"""Local planes of columns on circles and spheres: offsets along the tangent at each query.

A column on a circle, or a pair of columns on the globe, is pooled as a point in two or three columns
(`kernpool.data.column_options`). A plane in these would have a slope across the circle, along which nothing moves, and
which keys near the query hardly determine. So a local plane takes the offsets of keys along the tangent at the query:
of a circle of radius R and an angle delta ``R sin(delta)``, of a sphere the two that span its tangent plane (Di Marzio,
Panzera and Taylor, "Local polynomial regression for circular predictors", Statistics and Probability Letters 79 (2009),
2066-2075).

With the normal n at the query, a unit vector, these are ``P t`` of the offsets t, with ``P = I - n n'``. Moments of
``P t`` are linear in those of t. So every algorithm sums as ever, and `on_tangents` maps the sums. Along n it puts a
spread without any relation to the values, as large as that along the tangent: no slope or linear weight has a part
along n, and the design is regular, so that `solve` needs to know nothing of it. Rejected: offsets of their own in each
algorithm, which the sums would have to be written for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.core.state import PoolState

Array = NDArray[np.float64]


def on_tangents(problem: Problem, state: PoolState) -> PoolState:
    """Return the kernel sums of a problem with offsets along tangents, where columns are points on circles or spheres.

    Examples
    --------
    Keys at angles of -.3 and .2 radians from the query, at which the values are linear in the sine.

    >>> import kernpool
    >>> angle, slope = np.array([-0.3, 0.2]), 5.0
    >>> key = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> problem = Problem.from_arrays([[1.0, 0.0]], key, slope * np.sin(angle), degree=1, tied=np.array([0, 0]))
    >>> state = kernpool.choose(problem).reduce(problem)
    >>> fit = kernpool.core.solve(on_tangents(problem, state), problem.layout)
    >>> bool(abs(fit.intercept[0, 0]) < 1e-14), fit.slope.round(9).ravel().tolist()
    (True, [0.0, 5.0])
    """
    if not _has_tangents(problem):
        return state
    layout, numerator = problem.layout, state.numerator.copy()
    m, d, c = len(numerator), layout.columns, layout.values
    upper, lower = np.triu_indices(d)
    second = np.empty((m, d, d))
    second[:, upper, lower] = second[:, lower, upper] = numerator[:, layout.second]
    first = along_tangents(problem, numerator[:, layout.first, None])
    cross = along_tangents(problem, numerator[:, layout.cross].reshape(m, d, c))
    second = along_tangents(problem, along_tangents(problem, second).transpose(0, 2, 1))
    for columns, normal in _normals(problem):
        spread = np.trace(second[:, columns, columns], axis1=1, axis2=2) / (normal.shape[1] - 1)
        second[:, columns, columns] += spread[:, None, None] * normal[:, :, None] * normal[:, None, :]
    numerator[:, layout.first], numerator[:, layout.cross] = first[:, :, 0], cross.reshape(m, d * c)
    numerator[:, layout.second] = second[:, upper, lower]
    return PoolState(state.shift, state.denominator, numerator)


def along_tangents(problem: Problem, vectors: Array) -> Array:
    """Return the parts of vectors, of shape (m, d, ...), that are along the tangents at the queries of a problem.

    All of them if there are no circles or spheres, or the problem is not local linear.
    """
    if not _has_tangents(problem):
        return vectors
    vectors = vectors.copy()
    for columns, normal in _normals(problem):
        across = np.einsum("ma,ma...->m...", normal, vectors[:, columns])
        vectors[:, columns] -= np.einsum("ma,m...->ma...", normal, across)
    return vectors


def _has_tangents(problem: Problem) -> bool:
    return problem.tied is not None and problem.degree == 1


def _normals(problem: Problem) -> Iterator[tuple[slice, Array]]:
    """Yield the columns of each circle and sphere, and their normals at the queries, of shape (m, columns)."""
    assert problem.tied is not None
    for number in np.unique(problem.tied):
        start, stop = np.searchsorted(problem.tied, [number, number + 1])
        if stop - start > 1:
            point = problem.query[:, start:stop]
            yield slice(start, stop), point / np.linalg.norm(point, axis=1, keepdims=True)
