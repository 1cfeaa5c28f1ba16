"""Random problems, each determined by a seed and a number."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool import Problem, get_kernel, kernel_names
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel

PAIR_COLUMNS = 3e7  # the most pairs of a query and a key, times columns, of a problem
DENSE_PAIRS = 1e6  # of those with a table of pairs
KINDS = {"pool": 0.5, "linear": 0.13, "gradients": 0.12, "chunks": 0.06, "levels": 0.07, "torch": 0.06, "model": 0.06}


def uniform(g, n, d):
    return g.random((n, d))


def normal(g, n, d):
    return g.normal(size=(n, d))


def lattice(g, n, d):
    return g.integers(0, max(2, round((4 * n) ** (1 / d))), (n, d)) * g.choice([0.1, 0.25, 1.0])


def clusters(g, n, d):
    width = 10.0 ** g.uniform(-8, 0, 6)
    which = g.integers(0, 6, n)
    return g.random((6, d))[which] + width[which, None] * g.normal(size=(n, d))


def heavy_tails(g, n, d):
    return g.standard_cauchy((n, d))


def near_a_line(g, n, d):
    return g.random((n, 1)) * g.normal(size=d) + 10.0 ** g.uniform(-9, -1) * g.normal(size=(n, d))


def far_from_zero(g, n, d):
    return 1e6 + g.random((n, d))


def uneven_columns(g, n, d):
    return g.normal(size=(n, d)) * 10.0 ** g.uniform(-3, 3, d)


def ties(g, n, d):
    return g.random((max(1, n // 20), d))[g.integers(0, max(1, n // 20), n)]


NATURES = (uniform, normal, lattice, clusters, heavy_tails, near_a_line, far_from_zero, uneven_columns, ties)


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
    part: str = ""  # of the whole case, as the command line takes it

    def problem(self, **changes):
        return Problem.from_arrays(self.query, self.key, self.value, **{**self.options, **changes})

    def generator(self):
        """Numbers that a check draws, apart from those of the case."""
        return np.random.default_rng([self.seed, self.index, 1])

    def cut(self, queries, keys):
        """Return the case of these queries and these keys, both slices."""
        options = dict(self.options)
        if (mask := options.get("attn_mask")) is not None:
            options["attn_mask"] = mask[queries, keys]
        if (weight := options.get("key_weight")) is not None:
            options["key_weight"] = weight[keys]
            if not options["key_weight"].any():
                return None
        if (own := options.get("self_index")) is not None:
            own, n = own[queries], len(self.key)
            start, stop, _ = keys.indices(n)
            options["self_index"] = np.where((own >= start) & (own < stop), own - start, -1)
        codes = None if self.codes is None else (self.codes[0][queries], self.codes[1][keys])
        part = f" --queries {queries.start}:{queries.stop} --keys {keys.start}:{keys.stop}"
        query, key, value = self.query[queries], self.key[keys], self.value[keys]
        return replace(self, query=query, key=key, value=value, options=options, codes=codes, part=part)

    def __str__(self):
        options = {name: self.options[name] for name in ("kernel", "composition", "tol", "moments")}
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
    return f"python -m tests.fuzz --seed {case.seed}{regime} --case {case.index}{case.part}"


def draw(seed, index, regime="all"):
    """Make case number `index` of a seed."""
    g = np.random.default_rng([seed, index])
    narrow = regime == "narrow"
    kind = "pool" if narrow else str(g.choice(list(KINDS), p=list(KINDS.values())))
    d = int(g.integers(2, 4)) if narrow else int(g.choice([1, 2, 3, g.integers(4, 11)], p=[0.27, 0.27, 0.26, 0.2]))
    n = 20_000 if narrow else int(10 ** g.uniform(0, np.log10(50_000)))
    m = 2000 if narrow else int(10 ** g.uniform(0, 3.8))
    mask = (
        None
        if narrow or kind in ("chunks", "model", "torch")
        else g.choice(["none", "bool", "float"], p=[0.86, 0.09, 0.05])
    )
    few = mask in ("bool", "float") or kind in ("gradients", "levels", "torch")
    m = int(np.clip(m, 1, max(1, (DENSE_PAIRS if few else PAIR_COLUMNS / d) / n)))
    nature = NATURES[g.integers(0, len(NATURES))]
    key, query = nature(g, n, d), nature(g, m, d)
    spread = _spread(key)
    if narrow:
        bandwidth = (
            spread
            * 10 ** g.uniform(np.log10(5e-4), np.log10(0.25))
            * (10 ** g.uniform(-1, 1, d) if g.random() < 0.2 else 1.0)
        )
    else:
        bandwidth = spread * 10 ** g.uniform(-4, 1) * (10 ** g.uniform(-1, 1, d) if g.random() < 0.3 else 1.0)
    if nature is lattice and g.random() < 0.5:  # keys exactly at the edge
        bandwidth = np.maximum(np.rint(bandwidth * 20), 1.0) / 20
    at = g.random(m)
    own = g.integers(0, n, m)
    query = np.where((at < 0.3)[:, None], key[own], query)
    if g.random() < 0.4:  # some near keys, some far from all
        away = bandwidth * g.normal(size=(m, d)) * 10 ** g.uniform(-3, 4, (m, 1))
        query = np.where((g.random(m) < 0.3)[:, None], query + away, query)
    names = kernel_names() if not narrow else [name for name in kernel_names() if name != "constant"]
    weights = {"gaussian": 4.0, "laplace": 2.0, "epanechnikov": 2.0}
    p = np.array([weights.get(name, 1.0) for name in names])
    options = {
        "kernel": str(g.choice(names, p=p / p.sum())),
        "composition": "radial" if kind == "torch" else str(g.choice(["radial", "product"], p=[0.7, 0.3])),
        "bandwidth": bandwidth if kind != "torch" else float(np.median(bandwidth)),
        "tol": 1e-6 if g.random() < 0.05 and kind == "pool" else None,
        "moments": int(kind == "linear" or (kind in ("gradients", "chunks", "levels", "torch") and g.random() < 0.3)),
    }
    c = int(g.integers(1, 4))
    value = g.normal((0.0, 1e4, -3.0)[:c], (1.0, 1.0, 1e-3)[:c], size=(n, c))
    if g.random() < 0.2:
        value = value * np.exp(3 * g.normal(size=(n, 1)))
    if kind != "torch" and g.random() < 0.35:
        options["key_weight"] = _weights(g, n)
    if kind not in ("chunks", "model", "torch") and g.random() < 0.25:
        options |= {"exclude_self": True, "self_index": np.where(g.random(m) < 0.1, -1, own)}
    if mask == "bool":
        options["attn_mask"] = g.random((m, n)) < g.choice([0.01, 0.5, 0.99])
    if mask == "float":
        options["attn_mask"] = np.where(g.random((m, n)) < 0.3, -np.inf, g.normal(size=(m, n)))
    if kind == "torch":
        options |= {"key_weight": None, "exclude_self": False}
    if kind in ("pool", "linear", "torch") and nature is not far_from_zero and g.random() < 0.15:
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


def is_compact(case):
    return get_kernel(case.options["kernel"]).is_compact
