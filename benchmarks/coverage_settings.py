"""Samples whose curve is known, and the models whose intervals are to cover it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kernpool import KernelStackingRegressor, LocalLinearRegressor, NadarayaWatsonRegressor

Bar = tuple[float, float] | None
Draw = Callable[[np.random.Generator], tuple]

PLACES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
CURVE = np.linspace(0.0, 1.0, 101)[:, None]
# Each of these is counted on the same fits, for comparison.
RIVALS = {
    "robust": {"method": "robust"},
    "sandwich": {"method": "robust", "variance": "sandwich"},
    "quadratic": {"method": "quadratic"},
    "naive": {"method": "naive"},
}
EDGES = (0.94, 0.985)  # for each place of the curve with a peak


def around(goal: float) -> Bar:
    """Return a target of a percent on either side of 95 %, and of what a prototype had in 2000 runs."""
    return min(goal, 0.95) - 0.01, max(goal, 0.95) + 0.01


@dataclass(frozen=True)
class Setting:
    """How samples are drawn and fitted, where intervals are held against the truth, and what they should reach."""

    words: str
    draw: Draw
    model: Callable[[], object]
    truth: Callable[[np.ndarray], np.ndarray]
    places: np.ndarray = field(default_factory=lambda: PLACES[:, None])
    curve: np.ndarray | None = None
    kinds: dict[str, dict] = field(default_factory=lambda: {kind: RIVALS[kind] for kind in ("robust", "naive")})
    options: dict = field(default_factory=dict)
    clustered: bool = False
    pointwise: Bar = None
    each: Bar = None
    band: Bar = None
    stream: int = 0


def peak(X: np.ndarray) -> np.ndarray:
    """A wave with a peak."""
    return np.sin(2 * np.pi * X[:, 0]) + 2 * np.exp(-16 * (X[:, 0] - 0.5) ** 2)


def slope_of_peak(X: np.ndarray) -> np.ndarray:
    x = X[:, 0]
    return 2 * np.pi * np.cos(2 * np.pi * x) - 64 * (x - 0.5) * np.exp(-16 * (x - 0.5) ** 2)


def ccf(X: np.ndarray) -> np.ndarray:
    """The curve of Calonico, Cattaneo and Farrell, JASA 113 (2018), section 6, on [-1, 1]."""
    x = X[:, 0]
    return np.sin(1.5 * np.pi * x) / (1.0 + 18.0 * x**2 * (np.sign(x) + 1.0))


def hill(X: np.ndarray) -> np.ndarray:
    """A wave in the first column, and a hill in both."""
    return np.sin(2 * np.pi * X[:, 0]) + 2 * np.exp(-16 * np.sum((X - 0.5) ** 2, axis=1))


def three(X: np.ndarray) -> np.ndarray:
    """A wave, a peak and a half wave."""
    return np.sin(2 * np.pi * X[:, 0]) + 2 * np.exp(-16 * (X[:, 1] - 0.5) ** 2) + np.cos(np.pi * X[:, 2])


def friedman(X: np.ndarray) -> np.ndarray:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def additive(X: np.ndarray) -> np.ndarray:
    """A wave, a parabola, an exponential and a kink."""
    a, b, c, d = X.T[:4]
    return np.sin(2 * np.pi * a) + 8 * (b - 0.5) ** 2 + np.exp(2 * c) / 2 + np.abs(4 * d - 2)


def product(X: np.ndarray) -> np.ndarray:
    a, b, c, d = X.T[:4] - 0.5
    return 12 * a * b + 8 * c * d


def linear(X: np.ndarray) -> np.ndarray:
    return X[:, :4] @ np.array([3.0, 2.0, 1.0, -2.0])


def nothing(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X))


def levels(X: np.ndarray) -> np.ndarray:
    return peak(X) + 0.6 * X[:, 1]


def gentle(X: np.ndarray) -> np.ndarray:
    return np.cos(3.0 * X[:, 0])


def normal(g: np.random.Generator, n: int) -> np.ndarray:
    return g.normal(size=n)


def heavy(g: np.random.Generator, n: int) -> np.ndarray:
    return g.standard_t(5, size=n) / np.sqrt(5 / 3)


def skew(g: np.random.Generator, n: int) -> np.ndarray:
    return g.exponential(size=n) - 1.0


def growing(g, n: int, d: int = 1, truth=peak, noise=normal) -> tuple:
    """Uniform columns, noise of sd .2 + .3 x."""
    X = g.uniform(size=(n, d))
    return X, truth(X) + (0.2 + 0.3 * X[:, 0]) * noise(g, n), None


def two_sided(g) -> tuple:
    X = g.uniform(-1.0, 1.0, size=(500, 1))
    return X, ccf(X) + g.normal(size=500), None


def steady(g, n: int = 500, d: int = 3, truth=three, noise: float = 0.4) -> tuple:
    X = g.uniform(size=(n, d))
    return X, truth(X) + noise * g.normal(size=n), None


def with_levels(g) -> tuple:
    X, _, _ = growing(g, 200)
    X = np.column_stack([X, g.integers(0, 2, 200)])
    return X, levels(X) + (0.2 + 0.3 * X[:, 0]) * g.normal(size=200), None


def clusters(g, count: int, size: int, shock: float, spread: float) -> tuple:
    """Clusters of rows that share a shock; their columns lie within `spread`, or anywhere if it is infinite."""
    groups = np.repeat(np.arange(count), size)
    n = len(groups)
    center, offset = g.uniform(size=count)[groups], g.uniform(-1.0, 1.0, size=n)
    X = np.clip(center + spread * offset, 0.0, 1.0) if np.isfinite(spread) else 0.5 + 0.5 * offset
    X = X[:, None]
    return X, gentle(X) + 0.3 * g.normal(size=n) + shock * g.normal(size=count)[groups], groups


SMALL = {"n_jobs": 1}  # one thread is the fastest for samples of some hundred rows
searched = partial(LocalLinearRegressor, bandwidth="loo", **SMALL)
constant = partial(NadarayaWatsonRegressor, bandwidth="loo", **SMALL)
fixed = partial(LocalLinearRegressor, **SMALL)
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.25, 0.5], [0.5, 0.75]])
INSIDE = np.array([[0.1, 0.5, 0.5], [0.25, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.25, 0.25], [0.75, 0.75, 0.5]])
BOTH = np.column_stack([np.tile(PLACES, 2), np.repeat([0.0, 1.0], len(PLACES))])
CLUSTERED = {"robust": {"method": "robust"}, "unclustered": {"method": "robust"}}


@dataclass(frozen=True)
class Widened:
    """A model at a multiple of the bandwidth found, as one that is given by eye may be."""

    factor: float

    def fit(self, X, y) -> LocalLinearRegressor:
        return fixed(bandwidth=self.factor * searched().fit(X, y).bandwidth_).fit(X, y)


def plain(words: str, goal: float | None, stream: int, **changes) -> Setting:
    """200 rows of the curve with a peak, unless something else is said."""
    given = {"draw": partial(growing, n=200), "model": searched, "truth": peak}
    pointwise = None if goal is None else around(goal)
    return Setting(words, **(given | changes), pointwise=pointwise, stream=stream)


def peaked(words: str, n: int, goals: tuple[float, float], **changes) -> Setting:
    given = {"draw": partial(growing, n=n), "curve": CURVE, "band": around(goals[1])}
    return plain(words, goals[0], n, **(given | changes))


def widened(words: str, factor: float) -> Setting:
    kinds = {kind: RIVALS[kind] for kind in ("robust", "quadratic", "naive")}
    words = f"peak, n = 200, {words} the bandwidth found"
    return plain(words, None, 200, model=partial(Widened, factor), curve=CURVE, kinds=kinds)


def clustered(words: str, goal: float, stream: int, **drawn) -> Setting:
    given = {"draw": partial(clusters, **drawn), "model": partial(fixed, bandwidth=0.1), "truth": gentle}
    return plain(f"{words}, h = .1", goal, stream, kinds=CLUSTERED, clustered=True, **given)


def stacked(words: str, d: int, truth, noise: float) -> Setting:
    """200 rows for a stack, and 60 points."""
    given = {"draw": partial(steady, n=200, d=d, truth=truth, noise=noise), "model": KernelStackingRegressor}
    places = np.random.default_rng(0).uniform(size=(60, d))
    return Setting(f"stacking, {words}", truth=truth, places=places, pointwise=(0.93, 1.0), stream=11 + d, **given)


LEVELS = partial(fixed, bandwidth=0.06, smoothing=[0.1], unordered=[1])
SETTINGS = {
    "peak-50": peaked("peak, n = 50", 50, (0.962, 0.976), each=EDGES),
    "peak-200": peaked("peak, n = 200", 200, (0.954, 0.964), each=EDGES, kinds=RIVALS),
    "default-200": plain("peak, n = 200, parameters as they come", None, 200, model=fixed, curve=CURVE),
    "twice-200": widened("twice", 2.0),
    "thrice-200": widened("2.8 times", 2.8),
    "peak-1000": peaked("peak, n = 1000", 1000, (0.947, 0.95), each=EDGES),
    "heavy": peaked("Student noise, 5 df, n = 200", 200, (0.956, 0.968), draw=partial(growing, n=200, noise=heavy)),
    "skew": peaked("exponential noise, n = 200", 200, (0.956, 0.95), draw=partial(growing, n=200, noise=skew)),
    "ccf": plain(
        "curve of CCF, n = 500", 0.944, 2, draw=two_sided, truth=ccf, places=2.0 * PLACES[:, None] - 1.0,
        curve=2.0 * CURVE - 1.0, each=(0.92, 1.0), band=around(0.949),
    ),
    "constant-50": peaked("model of degree 0, n = 50", 50, (0.974, 0.989), model=constant),
    "constant-200": peaked("model of degree 0, n = 200", 200, (0.961, 0.976), model=constant),
    "epanechnikov": plain("Epanechnikov, h = .1, n = 200", 0.961, 3, model=partial(fixed, "epanechnikov", 0.1)),
    "biweight": plain("biweight, h = .1, n = 200", 0.964, 4, model=partial(fixed, "biweight", 0.1)),
    "slope": plain(
        "slope, h = .05, n = 200", 0.96, 5, model=partial(fixed, bandwidth=0.05), truth=slope_of_peak,
        options={"quantity": "derivative"},
    ),
    "levels": plain(
        "two levels, lambda = .1, h = .06, n = 200", 0.956, 6, draw=with_levels, model=LEVELS, truth=levels, places=BOTH
    ),
    "two-columns": plain(
        "two columns, n = 400", 0.961, 7, draw=partial(growing, n=400, d=2, truth=hill), truth=hill, places=CORNERS
    ),
    "three-columns": plain(
        "three columns, n = 500 (known limit)", None, 8, draw=steady, truth=three, places=INSIDE
    ),
    "clusters-shock": clustered(
        "24 clusters of 10 with a shock", 0.951, 9, count=24, size=10, shock=0.3, spread=np.inf
    ),
    "clusters-near": clustered(
        "60 clusters of 4, close in x, with a shock", 0.965, 10, count=60, size=4, shock=0.3, spread=0.02
    ),
    "clusters-quiet": clustered(
        "24 clusters of 10 without a shock", 0.95, 11, count=24, size=10, shock=0.0, spread=np.inf
    ),
    "stack-3": stacked("three columns", 3, three, 0.4),
    "stack-10": stacked("Friedman in 10", 10, friedman, 1.0),
    "stack-10-noisy": stacked("Friedman in 10, noise 3", 10, friedman, 3.0),
    "stack-15": stacked("Friedman in 15", 15, friedman, 1.0),
    "stack-additive": stacked("additive in 12", 12, additive, 0.5),
    "stack-linear": stacked("linear in 12", 12, linear, 1.0),
    "stack-product": stacked("products in 15", 15, product, 0.5),
    "stack-nothing": stacked("noise in 10", 10, nothing, 1.0),
}  # fmt: skip
