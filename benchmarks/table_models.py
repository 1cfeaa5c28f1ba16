"""Who competes on tables: peers as one would use them, and kernpool's estimators with their defaults.

Peers get what they need: trees the factors as categories or as columns of 0 and 1, the others those columns and all of
it standardised; ordered factors go in as ranks. Kernel machines and neighbours are tuned by cross-validation on the
training rows, xRFM on a fifth of them; forests, boosting and the linear models run with their defaults.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from kernpool import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    LocalLogisticClassifier,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)

TREES = 200
FOLDS = 3  # of the searches of peers
TUNING_ROWS = 700  # kernel machines choose on so many of the training rows, and fit on all
FEW = 10  # distinct values below which a spline says no more than a line
GAMMAS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # over the number of columns
XRFM = [(bandwidth, reg) for bandwidth in (3.0, 10.0, 30.0) for reg in (0.001, 0.01, 0.1, 1.0)]
NEIGHBOURS = {"n_neighbors": [3, 5, 10, 15, 25, 40], "weights": ["uniform", "distance"]}


def categories(X: pd.DataFrame) -> pd.DataFrame:
    """Ordered factors as ranks, the others as they are; plain names, which LightGBM wants."""
    ranks = {name: X[name].cat.codes.astype(float) for name in X if _is_factor(X[name]) and X[name].cat.ordered}
    return X.assign(**ranks).set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)


def dummies(X: pd.DataFrame) -> np.ndarray:
    """Return ranks for ordered factors, columns of 0 and 1 for the others, one for those of two levels."""
    X = categories(X)
    parts = []
    for name in X:
        if not _is_factor(X[name]):
            parts.append(X[[name]].to_numpy(dtype=float))
            continue
        levels = X[name].cat.categories
        parts.append((X[name].to_numpy()[:, None] == levels.to_numpy()[None, int(len(levels) == 2) :]).astype(float))
    return np.hstack(parts)


def _is_factor(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype)


@dataclass(frozen=True)
class Model:
    """How a model is made for training rows, what it is fed, and the rows (of tables) and columns it stops at.

    `says_error` is whether its `expected_error` is compared with the error held out; `needs` is what has to be
    installed besides the packages of the benchmarks.
    """

    make: Callable[[Any, np.ndarray], Any]
    encode: Callable[[pd.DataFrame], Any]
    rows: int = 10**9
    columns: int = 10**9
    ours: bool = False
    says_error: bool = False
    needs: str = ""

    def takes(self, rows: int, columns: int) -> bool:
        return rows <= self.rows and columns <= self.columns

    def installed(self) -> bool:
        return not self.needs or importlib.util.find_spec(self.needs) is not None


class Tuned:
    """A search on some of the training rows, then a fit on all of them."""

    def __init__(self, estimator: Any, grid: Any, scoring: str | None = None) -> None:
        self.search = GridSearchCV(estimator, grid, cv=FOLDS, scoring=scoring, refit=False)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        some = np.random.default_rng(0).permutation(len(X))[:TUNING_ROWS]
        self.search.fit(X[some], y[some])
        self.fitted = self.search.estimator.set_params(**self.search.best_params_).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.fitted.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.fitted.predict_proba(X)

    @property
    def classes_(self) -> np.ndarray:
        return self.fitted.classes_


def _scaled(estimator: Any) -> Any:
    return make_pipeline(StandardScaler(), estimator)


def _around_zero(estimator: Any) -> Any:
    return TransformedTargetRegressor(estimator, transformer=StandardScaler())


def _kernel_ridge(X: np.ndarray, _y: np.ndarray) -> Any:
    grid = {
        "regressor__kernelridge__gamma": GAMMAS / X.shape[1],
        "regressor__kernelridge__alpha": [0.001, 0.01, 0.1, 1.0],
    }
    return Tuned(_around_zero(_scaled(KernelRidge(kernel="rbf"))), grid)


def _support_vectors(X: np.ndarray, _y: np.ndarray) -> Any:
    grid = {"regressor__svr__gamma": GAMMAS[:4] / X.shape[1], "regressor__svr__C": [0.3, 1.0, 3.0, 10.0, 30.0]}
    return Tuned(_around_zero(_scaled(SVR())), grid)


def _gaussian_process(X: np.ndarray, _y: np.ndarray) -> Any:
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    return _scaled(GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))


def _additive(X: np.ndarray, _y: np.ndarray) -> Any:
    from pygam import LinearGAM, l, s

    terms = [s(i) if len(np.unique(column)) >= FEW else l(i) for i, column in enumerate(X.T)]
    return _GridSearched(LinearGAM(sum(terms[1:], terms[0])))


class _GridSearched:
    """pyGAM's own search for one penalty, by generalised cross-validation."""

    def __init__(self, model: Any) -> None:
        self.model, self.scaler = model, StandardScaler()

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        self.model.gridsearch(self.scaler.fit_transform(X), y, progress=False)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(self.scaler.transform(X))


def _lightgbm(which: str) -> Callable[[Any, np.ndarray], Any]:
    def make(_X: Any, _y: np.ndarray) -> Any:
        import lightgbm

        return getattr(lightgbm, which)(n_jobs=1, verbose=-1)

    return make


def _catboost(which: str) -> Callable[[Any, np.ndarray], Any]:
    def make(X: pd.DataFrame, _y: np.ndarray) -> Any:
        import catboost

        factors = [name for name in X if _is_factor(X[name])]
        quiet = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
        return getattr(catboost, which)(cat_features=factors, random_seed=0, **quiet)

    return make


class _Xrfm:
    """xRFM with length and ridge from a grid by its validation rows; columns of 0 and 1 are not standardised."""

    def __init__(self, classes: bool) -> None:
        self.classes, self.scaler = classes, StandardScaler()

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        self.numbers = ~np.all((X == 0.0) | (X == 1.0), axis=0)
        if self.numbers.any():
            self.scaler.fit(X[:, self.numbers])
        if self.classes:
            self.classes_, target = np.unique(y, return_inverse=True)
        else:
            self.center, self.spread = y.mean(), y.std()
            target = ((y - self.center) / self.spread).astype(np.float32)
        strata = target if self.classes else None
        X_fit, X_val, y_fit, y_val = train_test_split(
            self._read(X), target, test_size=0.2, random_state=0, stratify=strata
        )
        tried = [self._one(setting, X_fit, y_fit, X_val, y_val) for setting in XRFM]
        self.fitted = min(tried, key=lambda found: found[0])[1]
        return self

    def _one(self, setting: tuple[float, float], X_fit: Any, y_fit: Any, X_val: Any, y_val: Any) -> tuple[float, Any]:
        from xrfm import xRFM

        bandwidth, reg = setting
        parameters = {
            "model": {"kernel": "l2", "exponent": 1.0, "bandwidth": bandwidth, "diag": False},
            "fit": {"reg": reg, "iters": 5, "early_stop_rfm": False, "return_best_params": True, "verbose": False},
        }
        metric = "logloss" if self.classes else "mse"
        model = xRFM(parameters, device="cpu", tuning_metric=metric, n_threads=1, random_state=0, verbose=False)
        model.fit(X_fit, y_fit, X_val, y_val)
        if self.classes:
            return log_loss(y_val, model.predict_proba(X_val), labels=np.arange(len(self.classes_))), model
        return mean_squared_error(y_val, model.predict(X_val)[:, 0]), model

    def _read(self, X: np.ndarray) -> np.ndarray:
        read = X.astype(np.float32)
        if self.numbers.any():
            read[:, self.numbers] = self.scaler.transform(X[:, self.numbers])
        return read

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.center + self.spread * self.fitted.predict(self._read(X))[:, 0].astype(np.float64)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.fitted.predict_proba(self._read(X)).astype(np.float64)


def _support_classes(X: np.ndarray, _y: np.ndarray) -> Any:
    grid = {"svc__gamma": GAMMAS[:4] / X.shape[1], "svc__C": [0.3, 1.0, 3.0, 10.0, 30.0]}
    return _Platt(Tuned(_scaled(SVC()), grid))


class _Platt:
    """Tuned support vectors, with probabilities by Platt's sigmoid over a cross-validation."""

    def __init__(self, tuned: Tuned) -> None:
        self.tuned = tuned

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        chosen = self.tuned.fit(X, y).search.best_params_
        estimator = _scaled(SVC()).set_params(**chosen)
        self.fitted = CalibratedClassifierCV(estimator, cv=FOLDS, ensemble=False).fit(X, y)
        self.classes_ = self.fitted.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.fitted.predict_proba(X)


def _neighbours(estimator: Any, scoring: str | None = None) -> Callable[[Any, np.ndarray], Any]:
    grid = {f"{type(estimator).__name__.lower()}__{name}": values for name, values in NEIGHBOURS.items()}
    return lambda *_: Tuned(_scaled(estimator), grid, scoring)


def _always(make: Callable[[], Any]) -> Callable[[Any, np.ndarray], Any]:
    return lambda *_: make()


def _ours(make: Callable[[], Any], *, says_error: bool = False) -> Model:
    return Model(_always(make), lambda X: X, ours=True, says_error=says_error)


REGRESSORS = {
    "forest": Model(_always(lambda: RandomForestRegressor(TREES, random_state=0)), dummies),
    "boosting": Model(_always(lambda: HistGradientBoostingRegressor(random_state=0)), categories),
    "LightGBM": Model(_lightgbm("LGBMRegressor"), categories),
    "CatBoost": Model(_catboost("CatBoostRegressor"), categories),
    "linear": Model(_always(lambda: _scaled(RidgeCV(np.geomspace(0.01, 1000.0, 16)))), dummies),
    "neighbours": Model(_neighbours(KNeighborsRegressor()), dummies),
    "support vectors": Model(_support_vectors, dummies, rows=9000),
    "kernel ridge": Model(_kernel_ridge, dummies, rows=9000),
    "xRFM": Model(_always(lambda: _Xrfm(classes=False)), dummies, rows=9000),
    "additive": Model(_additive, dummies, rows=9000, columns=64, needs="pygam"),
    "Gaussian process": Model(_gaussian_process, dummies, rows=600, columns=64),
    "stacking": _ours(KernelStackingRegressor),
    "local linear": _ours(LocalLinearRegressor, says_error=True),
    "Nadaraya-Watson": _ours(NadarayaWatsonRegressor),
}

CLASSIFIERS = {
    "forest": Model(_always(lambda: RandomForestClassifier(TREES, random_state=0)), dummies),
    "boosting": Model(_always(lambda: HistGradientBoostingClassifier(random_state=0)), categories),
    "LightGBM": Model(_lightgbm("LGBMClassifier"), categories),
    "CatBoost": Model(_catboost("CatBoostClassifier"), categories),
    "logistic": Model(_always(lambda: _scaled(LogisticRegression(max_iter=1000))), dummies),
    "neighbours": Model(_neighbours(KNeighborsClassifier(), "neg_log_loss"), dummies),
    "support vectors": Model(_support_classes, dummies),
    "xRFM": Model(_always(lambda: _Xrfm(classes=True)), dummies, rows=9000),
    "Gaussian process": Model(
        _always(lambda: _scaled(GaussianProcessClassifier(ConstantKernel() * RBF(), random_state=0))), dummies, rows=400
    ),
    "stacking": _ours(KernelStackingClassifier),
    "Nadaraya-Watson": _ours(NadarayaWatsonClassifier, says_error=True),
    "local logistic": _ours(LocalLogisticClassifier),
}
