"""The names in the tables of `r-np.md`."""

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    Nearest,
    PartiallyLinearRegressor,
    VaryingCoefficientRegressor,
    convert_bandwidth,
    pool,
    specification_test,
)
from kernpool.datasets import make_sine_power

draw = np.random.RandomState(123456)  # the data of statsmodels' test_continuousdata_ll_cvls
draw.binomial(2, 0.7, size=60), draw.binomial(3, 0.7, size=60)
x1, x2 = draw.normal(size=60), draw.normal(10, 1, size=60)
draw.normal(10, 2, size=60)
y12 = 0.3 + 1.2 * x1 + 3.7 * x2 + draw.normal(size=60)
X12 = np.column_stack([x1, x2])

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
X, Q = x[:, None], query[:, None]
g, g_new = np.random.default_rng(0).integers(0, 3, size=len(x)), np.arange(9) % 3
mixed, mixed_new = np.column_stack([x, g]), np.column_stack([query, g_new])
distance = query[:, None] - x
apart = np.abs(g_new[:, None] - g)


def mean(weight):
    return weight @ y / weight.sum(axis=1)


def gaussian(h):
    return np.exp(-((distance / h) ** 2) / 2)


def aicc(h):
    """Hurvich, Simonoff and Tsai (1998), formula 1.4."""
    hat = np.exp(-(((x[:, None] - x) / h) ** 2) / 2)
    hat /= hat.sum(axis=1, keepdims=True)
    n, trace = len(x), np.trace(hat)
    return np.log(np.mean((y - hat @ y) ** 2)) + (1 + trace / n) / (1 - (trace + 2) / n)


def loo(h):
    weight = np.exp(-(((x[:, None] - x) / h) ** 2) / 2)
    np.fill_diagonal(weight, 0.0)
    return np.mean((y - weight @ y / weight.sum(axis=1)) ** 2)


def least(criterion):
    return minimize_scalar(criterion, bounds=(0.1, 0.4), method="bounded", options={"xatol": 1e-9}).x


def r2_of_np(fitted):
    fitted, total = fitted - y12.mean(), y12 - y12.mean()
    return (total @ fitted) ** 2 / ((total @ total) * (fitted @ fitted))


years, female = np.arange(60) % 20, np.where(np.arange(60) % 3, "no", "yes")
wage = pd.DataFrame({"educ": 8.0 + np.arange(60) % 11, "exper": years * 1.0, "female": female})
wage["lwage"] = 0.1 * wage["educ"] + np.sqrt(wage["exper"]) / 4 - 0.3 * (female == "yes") + 0.2 * x1
new = wage[["educ", "exper", "female"]].head(3)

np12 = LocalLinearRegressor(bandwidth=[1.717891, 2.449415], ridge=0.0).fit(X12, y12)
