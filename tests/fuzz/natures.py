"""What keys and queries look like."""

import numpy as np


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


def with_a_gap(g, n, d):
    """Return two clouds with nothing between them, the lower one of a multiple of 16 points."""
    is_low = np.arange(n)[:, None] < n // 32 * 16
    return np.where(is_low, g.random((n, d)), 3.0 + 10.0 ** g.uniform(-2, 0) * g.random((n, d)))


NATURES = (
    uniform, normal, lattice, clusters, heavy_tails, near_a_line, far_from_zero, uneven_columns, ties, with_a_gap,
)  # fmt: skip
