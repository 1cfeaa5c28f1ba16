"""The names in the tables of `statsmodels.md`."""

import numpy as np
from statsmodels.api import GLM, add_constant
from statsmodels.genmod.families import Poisson
from statsmodels.nonparametric.kernel_density import KDEMultivariateConditional
from statsmodels.nonparametric.kernel_regression import KernelReg
from statsmodels.nonparametric.smoothers_lowess import lowess

import kernpool
from kernpool import LocalLikelihoodRegressor, LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
X, Q = x[:, None], query[:, None]
count = np.floor(y - y.min())
rng = np.random.default_rng(0)
g = rng.integers(0, 3, size=len(x))  # a category of three levels
two, two_new = np.column_stack([x, rng.normal(size=len(x))]), np.column_stack([query, np.zeros(9)])
mixed, mixed_new = np.column_stack([x, g]), np.column_stack([query, np.arange(9) % 3])
