"""Smoothers and their dense references, and data without a random number generator."""

import numpy as np
from scipy.special import ndtri

from kernpool import get_kernel
from kernpool.core import Categories, Keys
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling import Recipe
from kernpool.smoother import EvaluationPoints, Smoother
from tests.support.dense_inference import Dense

GOLDEN, ROOT2 = 0.6180339887498949, 0.41421356237309515
NAMES = ("center", "lower", "upper", "standard_error", "df")
PLACES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])


def kronecker(n, step):
    """Equidistributed numbers, the same in any language."""
    return np.mod(0.5 + np.arange(1, n + 1) * step, 1.0)


def bend(n=200):
    """A bump on a sine, noise that grows; standards of other packages were computed from these bits."""
    x, e = kronecker(n, GOLDEN), ndtri(kronecker(n, ROOT2))
    return x, np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2) + (0.2 + 0.3 * x) * e


def smoother_of_bend(degree=1, h=0.06, **recipe):
    x, y = bend()
    return Smoother(Keys.read(x, y), Recipe.of(bandwidth=[h], degree=degree, **recipe))


def pair(kernel, situation, degree, n=70, m=9):
    """A smoother, its dense reference, and places: one column or two, frequencies, two outputs, a ridge, levels."""
    g = np.random.default_rng(3)
    d = 1 if situation in ("line", "weighted line") else 2
    x, q = g.uniform(size=(n, d)), g.uniform(size=(m, d))
    y = np.column_stack([np.sin(5 * x[:, 0]) + 0.3 * g.normal(size=n), 20 + x[:, -1] + 0.1 * g.normal(size=n)])
    w = g.integers(0, 4, n).astype(float) if "weighted" in situation or situation == "ridge" else None
    h = np.array([0.45, 0.8][:d]) * (1.0 if get_kernel(kernel).is_compact else 0.4)
    ridge = 0.7 if situation == "ridge" and degree else 0.0
    kernel = f"product {kernel}" if situation == "product" else kernel
    algorithm = "sweep" if d == 1 and situation == "weighted line" else "brute"
    recipe = Recipe.of(kernel, h, degree=degree, ridge=ridge, algorithm=algorithm)
    code = query_code = tables = None
    categories, smoothing = Categories(), np.zeros(0)
    if situation == "levels":
        code, query_code = g.integers(0, 3, (n, 2)), g.integers(-1, 3, (m, 2))
        kinds = (get_categorical_kernel("aitchison_aitken"), get_categorical_kernel("li_racine_ordered"))
        categories, smoothing = Categories(kinds, (3, np.arange(3.0))), np.array([0.2, 0.6])

        def tables(factor):
            lam = np.minimum(smoothing * factor, categories.largest)
            made = categories.factors(code, code, lam).tables
            return [
                np.vstack([table, np.full((1, 3), table[0, -1])]) for table in made
            ]  # a level of -1 is the last row

    smoother = Smoother(Keys.read(x, y, w), recipe, code, categories, smoothing)
    dense = Dense(x, y, h, np.ones(n) if w is None else w, kernel, degree, ridge, code, tables)
    return smoother, dense, EvaluationPoints(q, query_code)
