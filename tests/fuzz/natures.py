"""What keys and queries look like."""


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
