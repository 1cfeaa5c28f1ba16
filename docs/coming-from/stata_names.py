"""The names in the tables of `stata.md`."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, convert_bandwidth, pool
from kernpool.datasets import make_sine_power

sample = make_sine_power(random_state=0)
x, y, query = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
X, Q = x[:, None], query[:, None]
g, g_new = np.random.default_rng(0).integers(0, 3, size=len(x)), np.arange(9) % 3
mixed, mixed_new = np.column_stack([x, g]), np.column_stack([query, g_new])
same = g_new[:, None] == g
female = np.where(np.arange(len(x)) % 3, "no", "yes")
wage = pd.DataFrame({"educ": 8 + x, "exper": np.arange(len(x)) % 20.0, "female": female, "lwage": y, "n": 1})
wage["union"] = (y > 3) ^ (wage["exper"] < 5)
new, folder = wage[["educ", "exper", "female"]].head(3), Path(tempfile.mkdtemp(), "model")


def epanechnikov(z):
    """[R] kdensity: 3/4 (1 - z^2 / 5) / sqrt(5) if |z| < sqrt(5)."""
    return np.where(z < np.sqrt(5), 3 / 4 * (1 - z**2 / 5) / np.sqrt(5), 0.0)


def epan2(z):
    return np.where(z < 1, 3 / 4 * (1 - z**2), 0.0)


def gaussian(z):
    return np.exp(-(z**2) / 2)


def local(kernel, h, degree, times=1.0):
    found = []
    for i, q in enumerate(query):
        root = np.sqrt(kernel(np.abs(x - q) / h) * (times[i] if np.ndim(times) else times))
        design = np.vander(x - q, degree + 1, increasing=True)
        found.append(np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0][0])
    return np.array(found)
