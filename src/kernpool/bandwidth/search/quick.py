"""What quicker ways of a criterion share: rows, box, and the engine, which has the last word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.evaluation import Tried, best_of
from kernpool.bandwidth.search.objective import Objective

Array = NDArray[np.float64]

LN_2 = float(np.log(2.0))
PER_BANDWIDTH = float(np.sqrt(0.5 / LN_2))  # units in which a Gaussian weight is a power of two


class QuickObjective(ABC):
    """A criterion of few rows, evaluated without the engine.

    Parameters
    ----------
    engine : Objective
        The same by the engine.
    """

    def __init__(self, engine: Objective) -> None:
        self.engine, self.rows, self.box = engine, engine.rows, engine.box
        self.tried: list[Tried] = []

    @abstractmethod
    def evaluate(self, theta: Array) -> Any:
        """Return the criterion at these log bandwidths and smoothings, and remember it in `tried`."""

    @abstractmethod
    def jacobian(self, at: Any) -> Array:
        """Return the derivatives of the residuals at a place that was evaluated, of shape (n c, p)."""

    @property
    def best(self) -> Tried:
        """The smallest of all that was tried; of equal ones that with the largest bandwidths."""
        return best_of(self.tried)

    def hand_over(self, theta: Array) -> None:
        """Pass on what was tried, and have the best evaluated by the engine."""
        self.engine.tried_quickly += self.tried
        self.engine.evaluate(theta)
