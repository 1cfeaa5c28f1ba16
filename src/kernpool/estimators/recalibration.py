"""Recalibration: what the leave-one-out probabilities of a class have meant, one class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.execution.messages import abbreviate

Array = NDArray[np.float64]

ISOTONIC = "isotonic"
DIGITS = 12  # of probabilities: those that differ by rounding are equal, or they would be steps


def check_recalibrate(recalibrate: Any) -> None:
    """Refuse a recalibration that is none.

    Examples
    --------
    >>> check_recalibrate("sigmoid")
    Traceback (most recent call last):
    ValueError: recalibrate must be None or 'isotonic', got 'sigmoid'
    """
    if recalibrate is not None and not (isinstance(recalibrate, str) and recalibrate == ISOTONIC):
        raise ValueError(f"recalibrate must be None or {ISOTONIC!r}, got {abbreviate(recalibrate)}")


def isotonic_maps(probability: Array, label: Array, weight: Array | None = None) -> Array:
    r"""Find for each class the increasing map of its probabilities that is nearest to its labels, by least squares.

    Parameters
    ----------
    probability : ndarray of shape (n, k)
        Of rows that had no voice in them.
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.

    Returns
    -------
    ndarray of shape (points, 3)
        The number of a class, a probability and what becomes of it, in this order; linear between points of a class,
        and constant beyond its first and last.

    Raises
    ------
    ValueError
        If there are fewer than two unit rows.

    Notes
    -----
    `sklearn.isotonic.IsotonicRegression`, between :math:`\pi_c / (W + 1)` and :math:`(W + \pi_c) / (W + 1)` by
    Laplace's rule of succession, as `kernpool.bandwidth.prior_share`: W rows prove no class to be impossible.
    """
    from sklearn.isotonic import IsotonicRegression

    weight = np.ones(len(label)) if weight is None else weight
    total = float(weight.sum())
    if not total > 1.0:
        raise ValueError(
            f"recalibrate={ISOTONIC!r} needs rows to leave out, got 1 sample; leave recalibrate=None for so few"
        )
    kept = weight > 0
    prior, points = weight @ label / total, []
    for c, (said, seen) in enumerate(zip(np.round(probability[kept], DIGITS).T, label[kept].T, strict=True)):
        least, most = prior[c] / (total + 1.0), 1.0 - (1.0 - prior[c]) / (total + 1.0)
        found = IsotonicRegression(y_min=least, y_max=most, out_of_bounds="clip")
        found.fit(said, seen, sample_weight=weight[kept])
        x, y = found.X_thresholds_, found.y_thresholds_
        points.append(np.column_stack([np.full(len(x), float(c)), x, y]))
    return np.concatenate(points)


def recalibrated(probability: NDArray[Any], maps: Array) -> NDArray[Any]:
    """Map the probabilities of each class, and divide by their sum.

    Parameters
    ----------
    probability : ndarray of shape (m, k)
        Rows of zeros or NaN, for empty windows, stay as they are.
    maps : ndarray of shape (points, 3)
        Of `isotonic_maps`.

    Returns
    -------
    ndarray of shape (m, k)
        Of the type of `probability`.

    Examples
    --------
    >>> maps = np.array([[0, 0.25, 0.5], [0, 0.75, 0.75], [1, 0.25, 0.25], [1, 0.75, 0.5]])
    >>> recalibrated(np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]]), maps)
    array([[0.625, 0.375],
           [0.5  , 0.5  ],
           [0.   , 0.   ]])
    """
    new = np.empty(probability.shape)
    for c in range(probability.shape[1]):
        points = maps[maps[:, 0] == c]
        new[:, c] = np.interp(probability[:, c], points[:, 1], points[:, 2])
    told = probability.sum(axis=1, keepdims=True) > 0
    total = new.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(told, new / np.where(told, total, 1.0), probability).astype(probability.dtype)


def check_maps(maps: NDArray[Any], classes: int) -> None:
    """Raise if maps from a file are none."""
    ok = maps.dtype == np.float64 and maps.ndim == 2 and maps.shape[1] == 3 and np.all(np.isfinite(maps))
    if ok:
        number, x, y = maps.T
        ok = np.array_equal(np.unique(number), np.arange(classes)) and np.all(np.diff(number) >= 0)
        ok = ok and np.all((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1))
        same = np.diff(number) == 0
        ok = ok and np.all(np.diff(x)[same] > 0) and np.all(np.diff(y)[same] >= 0)
    if not ok:
        raise ValueError("recalibration_ does not hold increasing maps of the probabilities of all classes")
