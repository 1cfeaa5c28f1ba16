"""Random problems, each determined by a seed and a number."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool import Problem
from kernpool.core import MOST_COLUMNS
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel
from tests.fuzz.natures import NATURES, far_from_zero, lattice
from tests.fuzz.regimes import kernel_of, plan_of

TOLERANCES = (0.0, 1e-300, 1e-12, 1e-6, 1e-2)


@dataclass(frozen=True)
class Case:
    """What `Problem.from_arrays` takes, and what else the kind of a case needs."""

    seed: int
    index: int
    regime: str
    kind: str
    nature: str
    query: Any
    key: Any
    value: Any
    options: dict[str, Any]
    codes: tuple[Any, Any] | None = None
    tables: tuple[Any, ...] = ()

    def problem(self, **changes):
        return Problem.from_arrays(self.query, self.key, self.value, **{**self.options, **changes})

    def generator(self):
        """Numbers that a check draws, apart from those of the case."""
        return np.random.default_rng([self.seed, self.index, 1])

    def __str__(self):
        options = {name: self.options[name] for name in ("kernel", "tol", "degree")}
        h = np.array2string(np.asarray(self.options["bandwidth"]), precision=4)
        extra = [name for name in ("key_weight", "self_index", "attn_mask") if self.options.get(name) is not None]
        m, n, (d, c) = len(self.query), len(self.key), (self.key.shape[1], self.value.shape[1])
        return (
            f"{self.kind}, {self.nature}, {m} x {n}, {d} columns, {c} values, {self.key.dtype}, "
            f"bandwidth {h}, {options}, {extra}"
        )


def recipe(case):
    """Return the line that runs a case again."""
    regime = "" if case.regime == "all" else f" --regime {case.regime}"
    return f"python -m tests.fuzz --seed {case.seed}{regime} --case {case.index}"


def draw(seed, index, regime="all"):
    """Make case number `index` of a seed."""
    g = np.random.default_rng([seed, index])
    plan = plan_of(g, regime)
    kind, m, n, d = plan.kind, plan.queries, plan.keys, plan.columns
    nature = NATURES[g.integers(0, len(NATURES))] if plan.natures is None else g.choice(plan.natures)
    key, query = nature(g, n, d), nature(g, m, d)
    low, high = np.log10(plan.bandwidths)
    bandwidth = _spread(key) * 10 ** g.uniform(low, high) * (10 ** g.uniform(-1, 1, d) if g.random() < 0.25 else 1.0)
    if nature is lattice and g.random() < 0.5:  # keys exactly at the edge, or next to it
        bandwidth = np.maximum(np.rint(bandwidth * 20), 1.0) / 20 * (1.0 + g.choice([0.0, 0.0, 1e-13, 1e-11, 1e-8]))
    own = np.arange(n) if plan.own == "all" else g.integers(0, n, m)
    query = np.where((g.random(m) < 0.3)[:, None], key[own], query)
    if plan.own == "all":
        query = key
    elif g.random() < 0.4:  # some near keys, some far from all
        farthest = 9.0 if g.random() < (0.7 if kind == "gradients" else 0.2) else 4.0
        away = bandwidth * g.normal(size=(m, d)) * 10 ** g.uniform(-3, farthest, (m, 1))
        query = np.where((g.random(m) < 0.3)[:, None], query + away, query)
    kernel = kernel_of(g, plan)
    options = {
        "kernel": str(g.choice(["", "product "], p=[0.7, 0.3])) + kernel,
        "bandwidth": bandwidth,
        "tol": float(g.choice(TOLERANCES)) if g.random() < 0.15 and kind in ("pool", "chunks") else None,
        "degree": int(kind == "linear" or (kind in ("chunks", "levels", *plan.may_be_linear) and g.random() < 0.3)),
    }
    if options["degree"] and kind in ("linear", "chunks", "levels") and d <= MOST_COLUMNS:
        options["degree"] += int(np.random.default_rng([seed, index, 2]).random() < 0.5)
    c = int(g.integers(1, 4)) if g.random() < 0.95 else 9
    value = g.normal((0.0, 1e4, -3.0) * 3, (1.0, 1.0, 1e-3) * 3, size=(n, 9))[:, :c]
    if g.random() < 0.2:
        value = value * np.exp(3 * g.normal(size=(n, 1)))
    if g.random() < 0.35:
        options["key_weight"] = _weights(g, n)
    if plan.own == "all":
        options |= {"exclude_self": True, "self_index": own}
    elif plan.own == "some" and g.random() < 0.25:
        options |= {"exclude_self": True, "self_index": np.where(g.random(m) < 0.1, -1, own)}
    if plan.mask == "bool":
        options["attn_mask"] = g.random((m, n)) < g.choice([0.01, 0.5, 0.99])
    if plan.mask == "float":
        options["attn_mask"] = np.where(g.random((m, n)) < 0.3, -np.inf, g.normal(size=(m, n)))
    if nature is not far_from_zero and g.random() < plan.single:
        query, key, value = (np.clip(array, -1e30, 1e30).astype(np.float32) for array in (query, key, value))
        if options.get("key_weight") is not None:
            options["key_weight"] = options["key_weight"].astype(np.float32)
    case = Case(seed, index, regime, kind, nature.__name__, query, key, value, options)
    return _with_levels(g, case) if kind == "levels" else case


def _spread(key):
    """Return the interquartile range of each column, 1 where it is next to nothing."""
    low, high = np.quantile(key, [0.25, 0.75], axis=0)
    return np.where(high - low > 1e-9 * (1 + np.abs(low)), high - low, 1.0)


def _weights(g, n):
    if g.random() < 0.5:
        weight = np.maximum(g.integers(-2, 5, n), 0).astype(float)
    else:
        weight = np.where(g.random(n) < 0.1, 0.0, 10.0 ** g.uniform(-10, 0, n))
    weight[g.integers(0, n)] = 1.0
    return weight


def _with_levels(g, case):
    codes, tables = [], []
    for _ in range(g.integers(1, 3)):
        kernel = get_categorical_kernel(str(g.choice(categorical_kernel_names())))
        count = int(g.integers(2, 6))
        levels = np.sort(g.normal(size=count)) if kernel.ordered else count
        smoothing = float(g.choice([0.0, 1.0, g.random()])) * kernel.largest(count)
        tables.append(kernel.table(levels, smoothing))
        codes.append((g.integers(0, count, len(case.query)), g.integers(0, count, len(case.key))))
    both = tuple(np.stack(columns, axis=1) for columns in zip(*codes, strict=True))
    return replace(case, codes=both, tables=tuple(tables))
