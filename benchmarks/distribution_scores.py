"""What is measured of quantiles at rows that a model has not seen: pinball loss, CRPS, and how often a range covers.

Every model is asked for the same levels. Twice the integral of the pinball loss over levels is the continuous ranked
probability score (Gneiting and Ranjan 2011, section 2); here by the trapezoidal rule, the same for all models.
"""

from __future__ import annotations

import numpy as np

LEVELS = np.arange(1, 10) / 10.0
RANGE = (0, -1)  # levels whose quantiles are the ends of a range of 80 percent
NOMINAL = float(LEVELS[RANGE[1]] - LEVELS[RANGE[0]])


def pinball(truth: np.ndarray, quantile: np.ndarray, levels: np.ndarray = LEVELS) -> np.ndarray:
    """Return the mean loss at each level, from outcomes of shape (m,) and quantiles of shape (m, l)."""
    beyond = truth[:, None] - quantile
    return np.mean(np.where(beyond >= 0.0, levels * beyond, (levels - 1.0) * beyond), axis=0)


def crps(truth: np.ndarray, quantile: np.ndarray) -> float:
    """Return the score by the trapezoidal rule between levels; at 0 and 1 the loss is zero."""
    return 2.0 * float(np.sum(pinball(truth, quantile))) / (len(LEVELS) + 1)


def quantile_scores(truth: np.ndarray, quantile: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Scores of quantiles; `relative` is the CRPS over that of the outcomes trained on, whatever the columns say.

    Parameters
    ----------
    truth : ndarray of shape (m,)
        Outcomes of the rows tested.
    quantile : ndarray of shape (m, 9)
        At `LEVELS`, in their order.
    known : ndarray of shape (n,)
        Outcomes of the rows trained on.
    """
    if quantile.shape != (len(truth), len(LEVELS)) or not np.all(np.isfinite(quantile)):
        raise ValueError(f"quantiles of shape {quantile.shape}, {np.sum(~np.isfinite(quantile))} of them not finite")
    same = np.broadcast_to(np.quantile(known, LEVELS, method="inverted_cdf"), quantile.shape)
    lower, upper = quantile[:, RANGE[0]], quantile[:, RANGE[1]]
    found = crps(truth, quantile)
    return {
        "crps": found,
        "relative": found / crps(truth, same),
        "covered": float(np.mean((lower <= truth) & (truth <= upper))),
        "crossed": float(np.mean(np.any(np.diff(quantile, axis=1) < 0.0, axis=1))),
    }
