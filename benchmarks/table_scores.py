"""What is measured of an answer on rows that a model has not seen."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import log_loss

BINS = 10  # of confidence, of equal width


def number_scores(truth: np.ndarray, answer: np.ndarray) -> dict:
    """R^2 on the rows tested, and the mean squared error."""
    error = float(np.mean((truth - answer) ** 2))
    return {"r2": 1.0 - error / float(np.var(truth)), "mse": error, "variance": float(np.var(truth))}


def class_scores(truth: np.ndarray, answer: np.ndarray, classes: np.ndarray) -> dict:
    """Log loss, Brier score, accuracy; and per bin of confidence its rows, its sum of confidence, and its hits."""
    answer = answer / answer.sum(axis=1, keepdims=True)
    hot = truth[:, None] == np.asarray(classes)[None, :]
    confidence, hit = answer.max(axis=1), np.asarray(classes)[answer.argmax(axis=1)] == truth
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = [np.bincount(number, weights, BINS).tolist() for weights in (np.ones(len(hit)), confidence, hit)]
    return {
        "log_loss": float(log_loss(truth, answer, labels=classes)),
        "brier": float(np.mean(np.sum((answer - hot) ** 2, axis=1))),
        "accuracy": float(np.mean(hit)),
        "bins": bins,
    }


def calibration_error(bins: list[list[list[float]]]) -> float:
    """Expected calibration error (Guo et al. 2017) of the class answered, over the rows of all splits together."""
    rows, confidence, hits = np.sum(bins, axis=0)
    return float(np.sum(np.abs(confidence - hits)) / np.sum(rows))
