"""Who competes for whole distributions: peers that answer quantiles, as one would use them, and kernpool's regressors.

All are asked for the same levels by `quantile`. Peers run with their defaults, and with what they need: see
`table_models.py`. Boosting fits one model per level; its quantiles are put in order, which never has a larger loss
(Chernozhukov, Fernandez-Val and Galichon 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from distribution_scores import LEVELS
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from table_models import TREES, Model, categories, dummies

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor


class PerLevel:
    """One model for each level."""

    def __init__(self, make: Callable[[float], Any]) -> None:
        self.make = make

    def fit(self, X: Any, y: np.ndarray) -> PerLevel:
        self.fitted = [self.make(float(level)).fit(X, y) for level in LEVELS]
        return self

    def quantile(self, X: Any, levels: np.ndarray) -> np.ndarray:
        assert levels is LEVELS
        return np.sort(np.stack([model.predict(X) for model in self.fitted], axis=1), axis=1)


class Forest:
    """Outcomes of the training rows that share leaves with a row (Meinshausen 2006)."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Forest:
        from quantile_forest import RandomForestQuantileRegressor

        self.fitted = RandomForestQuantileRegressor(TREES, random_state=0).fit(X, y)
        return self

    def quantile(self, X: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return np.reshape(self.fitted.predict(X, quantiles=[*levels]), (len(X), len(levels)))


class Natural:
    """A normal distribution for each row, whose mean and log deviation are boosted (Duan et al. 2020)."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Natural:
        from ngboost import NGBRegressor

        self.fitted = NGBRegressor(random_state=0, verbose=False).fit(X, y)
        return self

    def quantile(self, X: np.ndarray, levels: np.ndarray) -> np.ndarray:
        known = self.fitted.pred_dist(X).params
        return normal(known["loc"], known["scale"], levels)


class Normal:
    """A normal distribution around a prediction that comes with a standard deviation."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: np.ndarray) -> Normal:
        self.estimator.fit(X, y)
        return self

    def quantile(self, X: Any, levels: np.ndarray) -> np.ndarray:
        return normal(*self.estimator.predict(X, return_std=True), levels)


class Smoothed:
    """Quantiles of a regressor of ours whose distribution is smoothed in y, by its rule of thumb."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: np.ndarray) -> Smoothed:
        self.estimator.fit(X, y)
        return self

    def quantile(self, X: Any, levels: np.ndarray) -> np.ndarray:
        return self.estimator.quantile(X, levels, y_bandwidth="rule")


def normal(mean: np.ndarray, deviation: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return mean[:, None] + deviation[:, None] * norm.ppf(levels)


def _boosting(_X: Any, _y: np.ndarray) -> PerLevel:
    return PerLevel(
        lambda level: HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0),
    )


def _lightgbm(_X: Any, _y: np.ndarray) -> PerLevel:
    import lightgbm

    return PerLevel(lambda level: lightgbm.LGBMRegressor(objective="quantile", alpha=level, n_jobs=1, verbose=-1))


def _gaussian_process(X: np.ndarray, _y: np.ndarray) -> Normal:
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    return Normal(
        make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)),
    )


def _ours(make: Callable[[], Any]) -> Model:
    return Model(lambda *_: make(), lambda X: X, ours=True)


DISTRIBUTIONS = {
    "quantile forest": Model(lambda *_: Forest(), dummies, needs="quantile_forest"),
    "boosting": Model(_boosting, categories),
    "LightGBM": Model(_lightgbm, categories, needs="lightgbm"),
    "NGBoost": Model(lambda *_: Natural(), dummies, needs="ngboost"),
    "Gaussian process": Model(_gaussian_process, dummies, rows=600, columns=64),
    "local linear, smoothed": _ours(lambda: Smoothed(LocalLinearRegressor())),
    "local linear": _ours(LocalLinearRegressor),
    "Nadaraya-Watson, smoothed": _ours(lambda: Smoothed(NadarayaWatsonRegressor())),
    "local linear, normal": _ours(lambda: Normal(LocalLinearRegressor())),
}
