"""The names in the tables of `scikit-learn.md`."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_score
from sklearn.neighbors import KernelDensity, KNeighborsRegressor, RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, pool_state, pooling_weights
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
X, Q, label = x[:, None], query[:, None], y > 2
h, n = 0.4, len(x)


def gaussian(distance):
    return np.exp(-(distance**2) / (2 * h**2))


def density(state):
    """The log density of keys, from the sum of their weights."""
    return state.shift + np.log(state.denominator / (n * h * np.sqrt(2 * np.pi)))


def rows_to_one(weights):
    return weights / weights.sum(axis=1, keepdims=True)


leave_one_out = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error"}

frame = pd.DataFrame({"age": 20.0 + 8 * x, "region": np.where(np.arange(n) % 3, "north", "south")})
target = y + (frame["region"] == "south")
folder = Path(tempfile.mkdtemp(), "model")
