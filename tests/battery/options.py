"""Options of estimators, each as a small study: a model with that option, its observations, and points to ask it at.

An option may name the plain model that it equals at a point: other columns, another bandwidth, other weights of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from kernpool import (
    Floor,
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLikelihoodRegressor,
    LocalLinearRegressor,
    LocalLogisticClassifier,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    PartiallyLinearRegressor,
    VaryingCoefficientRegressor,
    get_kernel,
)
from kernpool.smoother.windows import FACTORS

Array = NDArray[Any]
EARTH = 6371.0088  # km
LEVELS = ("c",)  # columns of text


@dataclass(frozen=True)
class Study:
    """An estimator, the observations that it is fitted to, and the points at which it is asked.

    `seen` are outputs observed at the points, `unit` is one unit of y, by which answers give bandwidths of y, and
    `plain` returns the study, without the option, that has the same answers at one of the points.
    """

    estimator: BaseEstimator
    x: pandas.DataFrame
    y: Array
    query: pandas.DataFrame
    seen: Array
    by_row: Mapping[str, Array] = field(default_factory=dict)  # sample_weight, groups, time
    unit: float = 1.0
    plain: Callable[[Study, int], Study] | None = None

    def fit(self) -> Any:
        """Return the estimator, fitted to the observations."""
        return clone(self.estimator).fit(self.x, self.y, **self.by_row)

    @property
    def classifies(self) -> bool:
        """Whether outputs are labels of classes."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def numeric(self) -> list[str]:
        """Columns whose origin and unit are the user's to choose: neither levels, nor circles, nor the globe."""
        options = self.estimator.get_params(deep=False)
        others = set().union(*(options.get(name) or () for name in ("unordered", "ordered", "periodic", "geographic")))
        return [name for name in self.x if name not in others | set(LEVELS)]

    def take(self, rows: Array) -> Study:
        """Return the study of these rows, in this order."""
        by_row = {name: values[rows] for name, values in self.by_row.items()}
        return replace(self, x=self.x.iloc[rows].reset_index(drop=True), y=self.y[rows], by_row=by_row)

    def ask_at(self, points: Any) -> Study:
        """Return the study with these of its points."""
        return replace(self, query=self.query.iloc[points], seen=self.seen[points])

    def with_options(self, **options: Any) -> Study:
        """Return the study with other parameters of the estimator."""
        return replace(self, estimator=clone(self.estimator).set_params(**options))

    def weighted(self, weight: Array) -> Study:
        """Return the study whose rows have these weights, times those that they had."""
        weight = weight * self.by_row.get("sample_weight", 1.0)
        return replace(self, by_row={**self.by_row, "sample_weight": weight})


N = 60
RNG = np.random.default_rng(0)
TABLE = pandas.DataFrame({
    "a": RNG.uniform(size=N), "b": RNG.uniform(size=N), "c": RNG.choice(["u", "v", "w"], N),
    "o": RNG.integers(0, 4, N).astype(float), "h": RNG.uniform(0, 24, N), "lat": RNG.uniform(-40, 60, N),
    "lon": RNG.uniform(-180, 180, N),
})  # fmt: skip
Y = np.sin(4 * TABLE["a"]) + TABLE["b"] + 0.5 * (TABLE["c"] == "u") + np.cos(TABLE["h"] * np.pi / 12)
Y = (Y + 0.3 * RNG.normal(size=N)).to_numpy()
POINTS = TABLE.iloc[:4].assign(a=[0.21, 0.52, 0.67, 0.44], b=[0.35, 0.61, 0.48, 0.72], h=[5.0, 0.2, 13.7, 23.5])
SEEN = np.array([1.1, 0.4, 2.0, 1.3])
LABELS = np.array(["low", "middle", "high"], dtype=object)
CLASSES = LABELS[np.digitize(Y, [0.6, 1.4])]
WEIGHT = RNG.integers(1, 4, N).astype(float)
GROUPS = RNG.permutation(np.arange(N) // 5)
TIME = RNG.permutation(N).astype(float)
FOUND = np.array(["middle", "low", "high", "middle"], dtype=object)

OPTIONS: dict[str, Study] = {}


def register(name: str, estimator: BaseEstimator, columns: str = "a b", **more: Any) -> None:
    """Register an option: `columns` of the table, and what differs from a single numeric output without weights."""
    names = columns.split()
    usual = {"x": TABLE[names], "y": Y, "query": POINTS[names], "seen": SEEN}
    if hasattr(estimator, "predict_proba"):
        usual |= {"y": CLASSES, "seen": FOUND}
    OPTIONS[name] = Study(estimator, **(usual | more))


# ------------------------------------------------------------------------------------------------ the plain models

MEANS = NadarayaWatsonRegressor("epanechnikov", [0.5, 0.6])
PLANES = LocalLinearRegressor("epanechnikov", [0.7, 0.8], ridge=0.0)
register("means", MEANS)
register("planes", PLANES)
register("quadratics", LocalPolynomialRegressor("epanechnikov", 1.5, degree=2))
register("ridge", LocalLinearRegressor("epanechnikov", 0.5, ridge=0.1))
register("gaussian", LocalLinearRegressor("gaussian", 0.3))
register("curve", LocalLinearRegressor("gaussian", 0.2), "a")
register("product kernel", NadarayaWatsonRegressor("product epanechnikov", [0.5, 0.6]))
register("outputs", MEANS, y=np.column_stack([Y, Y**2]), seen=np.column_stack([SEEN, SEEN**2]))
register("outputs of planes", PLANES, y=np.column_stack([Y, Y**2]), seen=np.column_stack([SEEN, SEEN**2]))
register("n_jobs", clone(PLANES).set_params(n_jobs=2))

# ------------------------------------------------------------------------------------------------ rows: weights, order

register("weights", PLANES, by_row={"sample_weight": WEIGHT})
register("groups", PLANES, by_row={"groups": GROUPS})
register("groups of means", NadarayaWatsonRegressor("gaussian"), by_row={"groups": GROUPS})
register("weights in groups", MEANS, by_row={"groups": GROUPS, "sample_weight": WEIGHT})
register("quadratics in groups", LocalPolynomialRegressor("gaussian", 0.4, degree=2), by_row={"groups": GROUPS})
register("gap", clone(PLANES).set_params(gap=2), by_row={"time": TIME})


def robust_plain(study: Study, _: int) -> Study:
    """Robust fits are fits with the weights of rows that the passes ended with."""
    return study.weighted(study.fit().robust_weight_).with_options(robust=False)


register("robust", clone(PLANES).set_params(robust=True), plain=robust_plain)
register("robust means", clone(MEANS).set_params(robust="huber"), plain=robust_plain)

# ------------------------------------------------------------------------------------------------ kinds of columns


def levels_plain(study: Study, i: int) -> Study:
    """Categories multiply weights: Aitchison and Aitken's kernel is 1 - λ of the same level, λ / (c - 1) of others."""
    (name,) = study.estimator.unordered
    levels, smoothing = study.x[name].nunique(), study.estimator.smoothing[0]
    same = (study.x[name] == study.query[name].iloc[i]).to_numpy()
    weight = np.where(same, 1.0 - smoothing, smoothing / (levels - 1))
    kept = [column for column in study.x if column != name]
    return _with_columns(study.weighted(weight), study.x[kept], study.query[kept], unordered=None, smoothing=None)


def order_plain(study: Study, i: int) -> Study:
    """Li and Racine's kernel of ordered levels is λ to the power of their difference."""
    (name,) = study.estimator.ordered
    steps = np.abs(study.x[name] - study.query[name].iloc[i]).to_numpy()
    weight = study.estimator.smoothing[0] ** steps
    kept = [column for column in study.x if column != name]
    return _with_columns(study.weighted(weight), study.x[kept], study.query[kept], ordered=None, smoothing=None,
                         categorical_kernel="aitchison_aitken")  # fmt: skip


def circle_plain(study: Study, _: int) -> Study:
    """The kernel takes the chord of a circle whose circumference is the period."""
    ((name, period),) = study.estimator.periodic.items()
    h_a, h = study.estimator.bandwidth

    def on_circle(table: pandas.DataFrame) -> pandas.DataFrame:
        angle = 2 * np.pi * table[name] / period
        radius = period / (2 * np.pi)
        return table.drop(columns=name).assign(cos=radius * np.cos(angle), sin=radius * np.sin(angle))

    return _with_columns(study, on_circle(study.x), on_circle(study.query), periodic=None, bandwidth=[h_a, h, h])


def globe_plain(study: Study, _: int) -> Study:
    """The kernel takes the chord through the Earth, in km."""

    def in_space(table: pandas.DataFrame) -> pandas.DataFrame:
        latitude, longitude = np.radians(table["lat"]), np.radians(table["lon"])
        x, y = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)
        return pandas.DataFrame({"x": EARTH * x, "y": EARTH * y, "z": EARTH * np.sin(latitude)})

    return _with_columns(study, in_space(study.x), in_space(study.query), geographic=None)


def _with_columns(study: Study, x: pandas.DataFrame, query: pandas.DataFrame, **options: Any) -> Study:
    return replace(study.with_options(**options), x=x, query=query)


register("unordered", NadarayaWatsonRegressor("epanechnikov", 0.6, unordered=["c"], smoothing=[0.2]), "a c",
         plain=levels_plain)  # fmt: skip
register("mixed", LocalLinearRegressor("gaussian", 0.5, ordered=["o"], smoothing=[0.2, 0.4]), "a c o",
         by_row={"sample_weight": WEIGHT})  # fmt: skip
register("ordered", LocalLinearRegressor("epanechnikov", 0.6, ordered=["o"], smoothing=[0.4], ridge=0.0,
         categorical_kernel="li_racine"), "a o", plain=order_plain)  # fmt: skip
register("unseen", NadarayaWatsonRegressor("epanechnikov", 0.6, smoothing=[0.2], unseen="unlike"), "a c",
         query=POINTS[["a", "c"]].assign(c=["u", "v", "new", "w"]))  # fmt: skip
register("periodic", NadarayaWatsonRegressor("epanechnikov", [0.6, 6.0], periodic={"h": 24}), "a h",
         plain=circle_plain)  # fmt: skip
register("periodic planes", LocalLinearRegressor("epanechnikov", [0.7, 8.0], periodic={"h": 24}), "a h")
register("geographic", NadarayaWatsonRegressor("epanechnikov", 6000.0, geographic=("lat", "lon")), "lat lon",
         plain=globe_plain)  # fmt: skip
register("geographic planes", LocalLinearRegressor("gaussian", 4000.0, geographic=("lat", "lon")), "lat lon")

# ------------------------------------------------------------------------------------------------ windows


def nearest_plain(study: Study, i: int) -> Study:
    """Windows reach to the k-th nearest row: another bandwidth at each point."""
    bandwidth = np.broadcast_to(study.estimator.bandwidth, study.x.shape[1])
    difference = (study.x - study.query.iloc[i]).to_numpy() / bandwidth
    radius = np.sort(np.sqrt(np.sum(difference**2, axis=1)))[study.estimator.window.k - 1]
    return study.with_options(window="fixed", bandwidth=bandwidth * radius)


def floor_plain(study: Study, i: int) -> Study:
    """Windows of few effective rows, (sum K)^2 / sum K^2, are widened step by step until they have enough."""
    bandwidth = np.broadcast_to(study.estimator.bandwidth, study.x.shape[1])
    difference = (study.x - study.query.iloc[i]).to_numpy() / bandwidth
    norm = np.sqrt(np.sum(difference**2, axis=1))

    def effective(factor: float) -> float:
        weight = get_kernel(study.estimator.kernel).profile(norm / factor)
        return float(weight.sum() ** 2 / np.sum(weight**2))

    factor = next((each for each in FACTORS if effective(each) >= study.estimator.window.rows), FACTORS[-1])
    return study.with_options(window="fixed", bandwidth=bandwidth * factor)


register("nearest", NadarayaWatsonRegressor("epanechnikov", [1.0, 1.5], window=Nearest(20)), plain=nearest_plain)
register("nearest planes", LocalLinearRegressor("tricube", 1.0, window=Nearest(30), ridge=0.0), plain=nearest_plain)
register("nearest classes", NadarayaWatsonClassifier("tricube", 1.0, window=Nearest(25), prior_share=0.0),
         plain=nearest_plain)  # fmt: skip
register("nearest in groups", LocalLinearRegressor("tricube", 1.0, window=Nearest(30)), by_row={"groups": GROUPS})
register("floor of classes", NadarayaWatsonClassifier("gaussian", 0.1, window=Floor(9), prior_share=0.0),
         plain=floor_plain)  # fmt: skip
register("floor in groups", LocalLinearRegressor("gaussian", 0.12, window=Floor(9)), by_row={"groups": GROUPS})
register("floor", NadarayaWatsonRegressor("gaussian", 0.1, window=Floor(9)), plain=floor_plain)
register("floor of planes", LocalLinearRegressor("gaussian", 0.12, window=Floor(9), ridge=0.0), plain=floor_plain)

# A window of the last point holds no row.
FAR = POINTS[["a", "b"]].assign(a=[0.21, 0.52, 0.67, 1.9])
for policy in ("nearest", "nan", "mean", "zero", "raise"):
    register(f"empty: {policy}", clone(MEANS).set_params(empty=policy), query=FAR)

# ------------------------------------------------------------------------------------------------ searches

SEARCH = {"rows": 40, "random_state": 3}
register("regularised", LocalLinearRegressor("gaussian", search=SEARCH))
register("loo", NadarayaWatsonRegressor("gaussian", "loo"))
register("aicc", LocalLinearRegressor("gaussian", "aicc", ridge=0.0))
register("gcv", NadarayaWatsonRegressor("gaussian", "gcv"))
register("scott", NadarayaWatsonRegressor("gaussian", "scott"))

# ------------------------------------------------------------------------------------------------ coefficients

PART = PartiallyLinearRegressor("gaussian", 0.3, linear=["b", "c"])
register("partially linear", PART, "a b c")
register("partially linear in groups", PART, "a b c", by_row={"groups": GROUPS, "sample_weight": WEIGHT})
register("partially linear with a gap", PartiallyLinearRegressor("epanechnikov", 0.7, linear=["b"], gap=2), "a b",
         by_row={"time": TIME})  # fmt: skip

VARYING = VaryingCoefficientRegressor("gaussian", 0.4, by=["a"])
register("varying coefficients", VARYING, "a b c")
register("varying in groups", VARYING, "a b", by_row={"groups": GROUPS, "sample_weight": WEIGHT})
register("varying with a gap", clone(VARYING).set_params(gap=2), "a b", by_row={"time": TIME})
register("varying to the nearest", VaryingCoefficientRegressor("epanechnikov", 1.0, by=["a", "b"],
         window=Nearest(25)), "a b o")  # fmt: skip
register("varying by places", VaryingCoefficientRegressor("gaussian", 4000.0, by=["lat", "lon"],
         geographic=("lat", "lon")), "a lat lon")  # fmt: skip
register("varying at scales of their own", VaryingCoefficientRegressor("gaussian", "multiscale", by=["a"]), "a b")
register("varying by levels", VaryingCoefficientRegressor("gaussian", 0.5, by=["a", "c"], smoothing=[0.3]), "a b c")

# ------------------------------------------------------------------------------------------------ local likelihood

COUNTS = {"y": np.floor(2.0 * np.exp(Y)), "seen": np.floor(2.0 * np.exp(SEEN))}
LIKELIHOOD = LocalLikelihoodRegressor("gaussian", 0.4)
register("counts", LIKELIHOOD, "a b", **COUNTS)
register("counts in groups", LIKELIHOOD, "a b", by_row={"groups": GROUPS, "sample_weight": WEIGHT}, **COUNTS)
register("counts with a gap", clone(LIKELIHOOD).set_params(gap=2), "a b", by_row={"time": TIME}, **COUNTS)
register("counts to the nearest", LocalLikelihoodRegressor("epanechnikov", 1.0, window=Nearest(30)), "a b", **COUNTS)
register("amounts by circles", LocalLikelihoodRegressor("gaussian", [3.0], family="gamma", periodic={"h": 24.0}), "h",
         y=np.exp(Y), seen=np.exp(SEEN))  # fmt: skip
register("yes or no", LocalLikelihoodRegressor("gaussian", 0.4, family="binomial", degree=0, smoothing=[0.3]), "a c",
         y=1.0 * (Y > 1.0), seen=1.0 * (SEEN > 1.0))  # fmt: skip
register("counts by exposure", LIKELIHOOD, "a b", by_row={"exposure": WEIGHT}, **COUNTS)
register("successes of trials", LocalLikelihoodRegressor("gaussian", 0.4, family="binomial"), "a b",
         by_row={"trials": WEIGHT + 3.0}, y=np.minimum(COUNTS["y"], 4.0), seen=1.0 * (SEEN > 1.0))  # fmt: skip
register("logistic classes", LocalLogisticClassifier("gaussian", 0.5))

# ------------------------------------------------------------------------------------------------ classes and stacks

register("classes", NadarayaWatsonClassifier("epanechnikov", 0.5, prior_share=0.0))
register("priors", NadarayaWatsonClassifier("gaussian", 0.2), by_row={"sample_weight": WEIGHT})
register("classes of levels", NadarayaWatsonClassifier("gaussian", 0.3, smoothing=[0.3]), "a c")
register("log loss", NadarayaWatsonClassifier(), by_row={"groups": GROUPS})
register("stack", KernelStackingRegressor(LocalLinearRegressor("gaussian", 0.3)))
register("stack in groups", KernelStackingRegressor(NadarayaWatsonRegressor("gaussian", 0.3), random_state=1),
         by_row={"groups": GROUPS})  # fmt: skip
register("stack of classes", KernelStackingClassifier(NadarayaWatsonClassifier("gaussian", 0.3)))
