r"""Designs of local fits: their inverses, and the one decision about their rank.

A design is the weighted covariance of the offsets of keys, each column in units of its root mean square. How small its
eigenvalues are says how close together the keys are beside their distance, and how many digits of them are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RANK_TOLERANCE = float(np.finfo(np.float64).eps ** 0.5)
UNSURE = 1e-6  # an eigenvalue below has lost more than six digits
FAR = 100.0  # squared distance over squared spread: in a direction of less, a slope hardly moves the fit
COLUMNS_FOR_LAPACK = 8  # fewer are eliminated in step, for all rows at once


def invert(design: Array) -> tuple[Array, NDArray[np.intp]]:
    """Invert designs of shape (m, d, d), and say of which rank they are.

    Elimination is five times as fast as eigenvalues, and exact enough where it shows that none of them is small.
    """
    m, d, _ = design.shape
    inverse, rank = _eliminated(design), np.full(m, d)
    with np.errstate(all="ignore"):
        # The norm is at least 1 / lambda of the smallest eigenvalue; NaN, of a zero pivot, is not sure.
        sure = np.einsum("mde,mde->m", inverse, inverse) < (0.5 / RANK_TOLERANCE) ** 2
    if not sure.all():
        eigenvalues, directions = np.linalg.eigh(design[~sure])
        bounded, rank[~sure] = bounded_inverse(eigenvalues)
        inverse[~sure] = (directions * bounded[:, None, :]) @ directions.transpose(0, 2, 1)
    return inverse, rank


def invert_numbers(design: Array) -> tuple[Array, NDArray[np.intp]]:
    """Invert designs of one column, of shape (m,), as `invert` does those of shape (m, 1, 1), to the same bits."""
    with np.errstate(all="ignore"):
        inverse = 1.0 / design
        sure = inverse * inverse < (0.5 / RANK_TOLERANCE) ** 2
    rank = np.ones(len(design), dtype=np.intp)
    if not sure.all():
        inverse[~sure], rank[~sure] = bounded_inverse(design[~sure, None])[0][:, 0], design[~sure] > RANK_TOLERANCE
    return inverse, rank


def _eliminated(design: Array) -> Array:
    """Return inverses, of all matrices in step or, with many columns, one by one; anything where there are none."""
    if design.shape[1] >= COLUMNS_FOR_LAPACK:
        try:
            return np.asarray(np.linalg.inv(design), dtype=np.float64)
        except np.linalg.LinAlgError:  # one is as good as singular
            pass
    inverse = design.copy()
    with np.errstate(all="ignore"):
        for k in range(design.shape[1]):
            pivot = inverse[:, k, k].copy()
            row, column = inverse[:, k, :] / pivot[:, None], inverse[:, :, k].copy()
            inverse -= column[:, :, None] * row[:, None, :]
            inverse[:, k, :], inverse[:, :, k] = row, -column / pivot[:, None]
            inverse[:, k, k] = 1.0 / pivot
    return inverse


def solve_safely(design: Array, right: Array) -> Array | None:
    """Solve systems of many columns all of whose eigenvalues are sure, else return None.

    A Cholesky factor of the designs less a multiple of the identity is the proof. With the solution it takes half as
    long as inverses, which say how small the eigenvalues are.
    """
    if design.shape[1] < COLUMNS_FOR_LAPACK:
        return None
    try:
        np.linalg.cholesky(design - 2.0 * UNSURE * np.eye(design.shape[1]))
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.linalg.solve(design, right), dtype=np.float64)


def find_lost(covariance: Array, inverse: Array, offset: Array, rank: NDArray[np.intp]) -> NDArray[np.int8]:
    """Tell where spread is small beside distance; an eigenvalue that is small by itself is collinearity."""
    lost = np.zeros(len(covariance), dtype=np.int8)
    sure = (rank == offset.shape[1]) & (np.einsum("mde,mde->m", inverse, inverse) < (0.5 / UNSURE) ** 2)
    (few,) = np.nonzero(~sure)
    if few.size:
        eigenvalues, directions = np.linalg.eigh(covariance[few])
        squared = np.einsum("mda,md->ma", directions, offset[few]) ** 2
        far = squared > FAR * np.maximum(eigenvalues, RANK_TOLERANCE)
        missing = far & (eigenvalues <= RANK_TOLERANCE)
        lost[few] = np.where((far & ~missing & (eigenvalues < UNSURE)).any(axis=1), 2, missing.any(axis=1))
    return lost


def bounded_inverse(eigenvalues: Any, tolerance: float = RANK_TOLERANCE) -> tuple[Any, Any]:
    r"""Invert the eigenvalues of a local design, and decide its rank: the one place that does, for NumPy and torch.

    The design is the weighted covariance of the offsets, each column in units of its root mean square. So an eigenvalue
    is, about, the squared spread of the keys in some direction beside their squared distance from the query. Up to the
    `tolerance` it is taken for zero, and the fit becomes local constant in that direction. It does so continuously:

    .. math:: \lambda^{-1} \text{ for } \lambda > \tau, \qquad \lambda / \tau^2 \text{ for } 0 \le \lambda \le \tau

    which is a ridge of :math:`\tau^2 / \lambda - \lambda` in the deficient directions and none in the others.

    Parameters
    ----------
    eigenvalues : array or tensor of shape (..., d)
        Of the design; slightly negative ones are rounding.
    tolerance : float
        The square root of the machine epsilon, by default that of float64: a spread of 1e-4 distances. Below, less than
        half of the digits of the covariance are left.

    Returns
    -------
    inverse : array or tensor of shape (..., d)
        What to multiply by.
    rank : array or tensor of int, shape (...)
        Number of eigenvalues above the tolerance.

    Notes
    -----
    A constant ridge would shrink all slopes of such a window, and its noise would be divided by the ridge. Dropping the
    directions instead would let the fit jump, as a function of the query and of the bandwidth.

    Examples
    --------
    >>> inverse, rank = bounded_inverse(np.array([[0.5, 0.0], [0.25, -1e-17]]))
    >>> inverse, rank
    (array([[2., 0.], [4., 0.]]), array([1, 1]))
    """
    shrunk = eigenvalues.clip(0.0, tolerance) / tolerance  # exactly one where there is no ridge
    return shrunk / eigenvalues.clip(tolerance), (eigenvalues > tolerance).sum(-1)
