"""Samples, models and kinds of prediction intervals, and how often the next value should be inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
from coverage_settings import SMALL, Bar, clusters, peak

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

LEVEL = 0.9
FRESH = 90  # rows that each fit is asked about; one in each of so many equal parts of x, so that thirds have as many
Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Draw = Callable[[np.random.Generator, int], Rows]

NOMINAL: Bar = (0.89, 0.915)
ADAPTIVE: Bar = (0.885, 0.91)
THIRD: Bar = (0.875, 1.0)


@dataclass(frozen=True)
class Kind:
    """How an interval is asked for, and the targets of its coverage.

    Parameters
    ----------
    method : str
    target, third : (float, float) or None
        Of all fresh rows, and of each third of them in the order of x.
    calibrated : bool
        Whether rows that were not fitted are passed for calibration.
    grouped : bool
        Whether the clusters of the rows are passed.
    words : str
        What to add to the method on the page.
    """

    method: str
    bar: Bar = None
    third: Bar = None
    calibrated: bool = False
    grouped: bool = False
    words: str = ""

    @property
    def title(self) -> str:
        parts = [self.method, "calibration rows" * self.calibrated]
        return ", ".join(part for part in [*parts, self.words] if part)


@dataclass(frozen=True)
class Setting:
    """How rows are drawn and fitted, what is asked, and how the fresh rows are drawn.

    Parameters
    ----------
    words : str
    n : int
        Rows, or clusters, to fit.
    draw, fresh : callable
        Of rows to fit and to calibrate with, and of rows to be covered.
    model : callable
        Returns an estimator.
    kinds : mapping of str to Kind
    calibration : int
        Rows, or clusters, to calibrate with.
    stream : int
        Of random numbers.
    """

    words: str
    n: int
    draw: Draw
    fresh: Draw
    model: Callable[[], object]
    kinds: dict[str, Kind]
    calibration: int = 0
    stream: int = 0


def exact(n: int) -> float:
    """Return the coverage of split intervals without ties: ceil(.9 (n + 1)) / (n + 1)."""
    return ceil(9 * (n + 1) / 10) / (n + 1)


def strata(g: np.random.Generator, n: int) -> np.ndarray:
    """One uniform place in each of n equal parts: the mean over them is that over uniform places, with less noise."""
    return (np.arange(n) + g.uniform(size=n)) / n


def outcomes(g: np.random.Generator, x: np.ndarray, noise: float = 0.3) -> Rows:
    """Noise of sd .2 + noise x around a wave with a peak."""
    X = x[:, None]
    return X, peak(X) + (0.2 + noise * x) * g.normal(size=len(x)), None


def uniform(g: np.random.Generator, n: int) -> Rows:
    return outcomes(g, g.uniform(size=n))


def fresh(g: np.random.Generator, n: int) -> Rows:
    return outcomes(g, strata(g, n))


TILT = 3.0


def shocked(g: np.random.Generator, count: int, size: int, spread: float = np.inf) -> Rows:
    """Clusters that share a shock twice as large as noise."""
    X, y, groups = clusters(g, count, size, shock=0.6, spread=spread)
    order = np.argsort(groups, kind="stable")
    return X[order], y[order], groups[order]


constant = partial(NadarayaWatsonRegressor, **SMALL)
linear = partial(LocalLinearRegressor, **SMALL)

ALL_ROWS = ("jackknife+", "cv+", "adaptive")
OTHER_ROWS = ("split", "adaptive", "cqr")
PLAIN = {method: Kind(method, calibrated=method in ("split", "cqr")) for method in (*ALL_ROWS, *OTHER_ROWS)}


def curve(words: str, n: int, model: Callable, bandwidth: object, kinds: dict[str, Kind], **more) -> Setting:
    """Rows of the curve with a peak, unless fresh rows are others."""
    given = {"fresh": fresh, "stream": n} | more
    return Setting(words, n, uniform, model=partial(model, bandwidth=bandwidth), kinds=kinds, **given)


def fixed(n: int, bandwidth: float, words: str = "", model=constant, kinds=ALL_ROWS) -> Setting:
    """All methods on the same fits, at a bandwidth that does not depend on the rows."""
    asked = {method: PLAIN[method] for method in kinds} | {"jackknife+": Kind("jackknife+", bar=NOMINAL)}
    return curve(f"n = {n}, h = {bandwidth:g}{words}", n, model, bandwidth, asked)


def searched(n: int, words: str, model, **bars: Bar) -> Setting:
    """Methods that people use, at a bandwidth found by leave-one-out on the same rows."""
    asked = {method: PLAIN[method] for method in ("adaptive", "jackknife+")}
    return curve(
        f"n = {n}, h by leave-one-out, {words}", n, model, "loo", asked | {"adaptive": Kind("adaptive", **bars)}
    )


def calibrated(n: int, bandwidth: float) -> Setting:
    """As many rows to calibrate with as to fit."""
    asked = {method: replace(PLAIN[method], calibrated=True) for method in OTHER_ROWS}
    words = f"n = {n} and {n} to calibrate with, h = {bandwidth:g}"
    return curve(words, n, constant, bandwidth, asked, calibration=n, stream=1000 + n)


def in_clusters(words: str, count: int, size: int, spread: float, stream: int) -> Setting:
    """Fresh rows in new clusters."""
    asked = {
        "adaptive": Kind("adaptive", grouped=True, bar=NOMINAL),
        "split": Kind("split", calibrated=True, grouped=True, bar=NOMINAL),
    }
    draw, new = (partial(shocked, size=of, spread=spread) for of in (size, 1))
    return Setting(words, count, draw, new, partial(constant, bandwidth=0.1), asked, calibration=count, stream=stream)


SETTINGS = {
    "fixed-20": fixed(20, 0.1),
    "fixed-50": fixed(50, 0.06),
    "fixed-200": fixed(200, 0.04),
    "fixed-linear": fixed(50, 0.1, ", local linear", linear, ("jackknife+", "adaptive")),
    "adaptive-500": searched(500, "local linear", linear, bar=ADAPTIVE, third=THIRD),
    "adaptive-constant": searched(500, "local constant", constant),
    "calibrated-100": calibrated(100, 0.05),
    "calibrated-500": calibrated(500, 0.03),
    "clusters-near": in_clusters("60 clusters of 4, close in x", 60, 4, 0.02, 10),
    "clusters": in_clusters("24 clusters of 10", 24, 10, np.inf, 9),
    "clusters-many": in_clusters("200 clusters of 4", 200, 4, np.inf, 12),
}
