"""What is compared: inputs, bandwidths, and where a contender stops."""

from dataclasses import dataclass

import numpy as np

LIMIT, PATIENCE = 2.0, 3.0  # seconds a contender may be expected to take, and times as much for `pool` by itself
SIZES = (100, 1000, 10_000, 100_000, 1_000_000)
COLUMNS = (1, 2, 3, 10, 64)
KERNELS = ("gaussian", "epanechnikov", "laplace")
SUPPORT = {"gaussian": 9.5, "epanechnikov": 1.0, "laplace": 45.0}  # bandwidths; beyond are weights below rounding
WIDENESS = {"gaussian": 1.0, "epanechnikov": 2.34, "laplace": 0.75}  # for about as much smoothing


@dataclass(frozen=True)
class Case:
    """As many queries as keys, uniform in the unit cube, with one value column."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    kernel: str
    bandwidth: float
    threads: int

    @property
    def n(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> int:
        return self.key.shape[1]

    @property
    def pairs(self) -> float:
        return float(len(self.query)) * len(self.key)

    def neighbours(self) -> float:
        """Mean number of keys with a weight that counts, from a sample."""
        sample = self.query[:: max(1, len(self.query) // 50)]
        keys = self.key[:: max(1, self.n // 5000)]
        squared = sum((sample[:, a, None] - keys[:, a]) ** 2 for a in range(self.columns))
        return float(np.mean(squared <= (SUPPORT[self.kernel] * self.bandwidth) ** 2) * self.n)


def make_case(n: int, columns: int, kernel: str, dtype: str, threads: int) -> Case:
    """Draw a case. Its bandwidth is that of the normal-reference rule, wider in many columns so that windows fill."""
    generator = np.random.default_rng(0)
    query, key = generator.random((n, columns)), generator.random((n, columns))
    value = np.sin(6.0 * key[:, 0]) + 0.1 * generator.normal(size=n)
    spread = np.sqrt(1 / 12) * max(1.0, np.sqrt(columns / 3))
    bandwidth = float(WIDENESS[kernel] * spread * n ** (-1 / (columns + 4)))
    return Case(query.astype(dtype), key.astype(dtype), value.astype(dtype), kernel, bandwidth, threads)
