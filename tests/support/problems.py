"""Problems that exercise every part: kernels, masks, weights, own keys, far queries."""

from dataclasses import replace

import numpy as np

from kernpool import Problem
from kernpool.bandwidth import TrainingRows
from kernpool.core import Exclusion

EVERYTHING = frozenset({"query", "key", "value", "log_bandwidth"})  # that can be differentiated by
VARIANTS = ("plain", "weighted", "masked", "leave-one-out", "weighted leave-one-out", "float mask", "offset", "far")


def rows_of(columns, value, weight=None, group=None):
    """Training rows, of units where there are groups."""
    return TrainingRows.from_arrays(columns, value, weight, exclusion=None if group is None else Exclusion(group))


def with_algorithm(model, algorithm):
    """Let a fitted model pool by an algorithm of this name, in place of the one that it would choose."""
    recipe = replace(model.smoother_.recipe, algorithm=algorithm)
    model.smoother_ = replace(model.smoother_, recipe=recipe)
    return model


def with_products(kernels):
    """Return names of kernels, and those of the product kernels that differ from them."""
    return [*kernels, *(f"product {name}" for name in kernels if name not in ("gaussian", "constant"))]


def make_problem(kernel, columns, variant, *, m=90, n=1300, seed=0, bandwidth=0.8, degree=0):
    """A problem that spans several tiles of 512 keys, with two value columns."""
    generator = np.random.default_rng(seed)
    query, key = generator.normal(size=(m, columns)), generator.normal(size=(n, columns))
    value = generator.normal((0.0, 5.0), size=(n, 2))
    extra = {}
    if "weighted" in variant:
        extra["key_weight"] = generator.integers(0, 4, n).astype(float)
    if variant == "masked":
        extra["attn_mask"] = generator.random((m, n)) < 0.3
        extra["attn_mask"][7] = False
    if "leave-one-out" in variant:
        query = key[:m].copy()
        extra |= {"exclude_self": True, "self_index": np.where(np.arange(m) % 5 == 4, -1, np.arange(m))}
    if variant == "float mask":
        extra["attn_mask"] = np.where(generator.random((m, n)) < 0.3, -np.inf, generator.normal(size=(m, n)))
    if variant == "offset":
        query, key = query + 1000.0, key + 1000.0
    if variant == "far":
        query = query + 60.0 * generator.integers(0, 2, (m, 1))
    return Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=bandwidth, degree=degree, **extra)
