"""How large problems are and what is asked of them: anything, and regimes that single algorithms are made for."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernpool import kernel_names
from tests.fuzz.natures import normal, uniform

PAIR_COLUMNS = 3e7  # the most pairs of a query and a key, times columns, of a problem
DENSE_PAIRS = 1e6  # of those with a table of pairs
KINDS = {
    "pool": 0.5, "linear": 0.15, "gradients": 0.14, "chunks": 0.07, "levels": 0.07, "model": 0.07,
}  # fmt: skip
KERNELS = tuple(kernel_names())  # before anybody registers one
WEIGHTS = {"gaussian": 4.0, "laplace": 2.0, "epanechnikov": 2.0}
NARROW = (5e-4, 0.25)


@dataclass(frozen=True)
class Plan:
    """What a problem has to be; `cases.draw` does the rest."""

    kind: str
    queries: int
    keys: int
    columns: int
    bandwidths: tuple[float, float] = (1e-4, 10.0)  # in spreads of the keys
    natures: Any = None
    kernels: Any = KERNELS
    mask: str = "none"
    own: str = "some"
    single: float = 0.0  # how often arrays are float32
    may_be_linear: tuple[str, ...] = ("gradients",)


def anything(g):
    """Sizes that are spread evenly over the decades."""
    kind = str(g.choice(list(KINDS), p=list(KINDS.values())))
    d = int(g.choice([1, 2, 3, g.integers(4, 11)], p=[0.27, 0.27, 0.26, 0.2]))
    n, m = int(10 ** g.uniform(0, np.log10(50_000))), int(10 ** g.uniform(0, 3.8))
    without = kind in ("chunks", "model")
    mask = "none" if without else str(g.choice(["none", "bool", "float"], p=[0.86, 0.09, 0.05]))
    few = mask != "none" or kind in ("gradients", "levels")
    m = int(np.clip(m, 1, max(1, (DENSE_PAIRS if few else PAIR_COLUMNS / d) / n)))
    single = 0.15 if kind in ("pool", "linear") else 0.0
    return Plan(kind, m, n, d, mask=mask, own="none" if without else "some", single=single)


def narrow(g):
    """Two and three columns, leaves of the tree many bandwidths wide."""
    names = [name for name in KERNELS if name != "constant"]
    return Plan("pool", 2000, 20_000, int(g.integers(2, 4)), NARROW, kernels=names, single=0.1)


def transforms(g):
    """Windows of many keys in two and three columns, which a grid is fine enough for."""
    n, m = int(g.integers(5000, 15_000)), int(g.integers(500, 1000))
    return Plan("pool", m, n, int(g.integers(2, 4)), (0.02, 0.3), (uniform, normal), ("gaussian",))


def curves(g):
    """A curve: few queries and very many keys on a line, or in more columns."""
    d = int(g.choice([1, 1, 1, 2, 3]))
    return Plan(str(g.choice(["pool", "pool", "linear"])), int(g.integers(1, 31)), int(g.integers(20_000, 300_000)), d)


def trees(g):
    """So many queries that a few of them are computed by brute force as well."""
    return Plan("pool", int(g.integers(4096, 5500)), int(g.integers(2000, 6000)), int(g.integers(2, 4)))


def series(g):
    """Gradients on a line in single precision, of windows of many keys."""
    n, m = int(g.integers(1500, 3000)), int(g.integers(100, 300))
    return Plan("gradients", m, n, 1, (0.1, 1.0), (uniform, normal), ("gaussian",), single=1.0, may_be_linear=())


def deletions(g):
    """Every row predicted from all others."""
    n, d = int(10 ** g.uniform(0.3, 3.5)), int(g.choice([1, 1, 2, 3]))
    return Plan(str(g.choice(["pool", "linear"])), n, n, d, own="all")


REGIMES = {
    anything: 0.66, narrow: 0.04, transforms: 0.07, curves: 0.07, trees: 0.05, series: 0.06, deletions: 0.05,
}  # fmt: skip
BY_NAME = {regime.__name__: regime for regime in REGIMES}


def plan_of(g, regime):
    """Draw what a problem has to be, in one regime or, for ``"all"``, in any."""
    if regime == "all":
        regime = list(REGIMES)[g.choice(len(REGIMES), p=list(REGIMES.values()))].__name__
    return BY_NAME[regime](g)


def kernel_of(g, plan):
    """Draw a kernel, those used most more often."""
    p = np.array([WEIGHTS.get(name, 1.0) for name in plan.kernels])
    return str(g.choice(plan.kernels, p=p / p.sum()))
