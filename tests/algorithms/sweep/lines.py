"""Problems of one column that an algorithm on a line could stumble over, and what is right there."""

import numpy as np

from kernpool import Problem, choose
from kernpool.pooling import rounding_bound

FAR_SUMS = ["boxcar", "epanechnikov", "triangular", "biweight", "triweight", "tricube", "gaussian", "laplace"]
INFINITE = ["gaussian", "laplace", "logistic"]
M, N = 101, 1200


def line_problem(kernel, situation, generator, **options):
    """One column of data that some algorithm on a line could stumble over."""
    query, key, h = SITUATIONS[situation](generator)
    value = generator.normal((0.0, 5.0, 1e5), size=(len(key), 3))
    if "decades" in situation:
        options["key_weight"] = 10.0 ** generator.uniform(-10, 0, len(key))
    if "own" in situation:
        own = generator.integers(-1, len(key), len(query))
        if "arbitrary" not in situation:
            query = np.where(own >= 0, key[own], query)
        if "heavy" in situation:
            options["key_weight"] = np.full(len(key), 1e-9)
            options["key_weight"][own[:9]] = 1.0
        if "counts" in situation:
            options["key_weight"] = generator.integers(0, 4, len(key)).astype(float)
        options |= {"exclude_self": True, "self_index": own}
    return Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h, **options)


def both(x, g, m=M):
    """Queries of which half are keys."""
    return np.where(g.random(m) < 0.5, g.choice(x, m), g.choice(x, m) + 1e-3 * np.ptp(x) * g.normal(size=m))


def uniform(g, h=0.05, m=M, n=N, offset=0.0):
    return offset + g.random(m), offset + g.random(n), h


def clusters(g, h=0.1, width=1e-12):
    key = g.integers(0, 5, N) + width * g.normal(size=N)
    return both(key, g), key, h


def cauchy(g, h=0.3):
    key = g.standard_cauchy(N)
    return both(key, g), key, h


def grid(g, step=0.1, h=0.3):
    return step * g.integers(0, 60, M), step * g.integers(0, 60, N), h


def integers(g, h=1.0, m=M, n=5000):
    return g.integers(0, 9, m).astype(float), g.integers(0, 9, n).astype(float), h


def far(g):
    query, key, h = uniform(g)
    return query + h * g.choice([-1e6, -1e3, 0, 1.001 / h, 1e3, 1e4, 1e6], M), key, h


SITUATIONS = {
    "uniform": uniform,
    "decades": uniform,
    "decades in clusters": clusters,
    "clusters": clusters,
    "clusters, h inside of one": lambda g: clusters(g, h=1e-12),
    "Cauchy": cauchy,
    "Cauchy, own": cauchy,
    "log-normal": lambda g: (np.exp(5 * g.normal(size=M)), np.exp(5 * g.normal(size=N)), 0.5),
    "grid": grid,
    "grid, h of one step": lambda g: grid(g, h=0.1),
    "grid, decades": lambda g: grid(g, h=0.7),
    "integers": integers,
    "integers, own": integers,
    "integers, own counts": lambda g: integers(g, h=2.0),
    "integers, own heavy": lambda g: integers(g, h=1.5),
    "own": uniform,
    "own arbitrary": uniform,
    "own arbitrary counts": uniform,
    "own heavy": uniform,
    "own heavy in clusters": clusters,
    "offset of 1e6 bandwidths": lambda g: uniform(g, offset=5e4),
    "offset, own": lambda g: uniform(g, offset=-5e4),
    "far queries": far,
    "far queries, decades": far,
    "one key": lambda g: uniform(g, n=1),
    "one key, own": lambda g: uniform(g, n=1),
    "two keys, own": lambda g: uniform(g, n=2, h=0.5),
    "one query": lambda g: uniform(g, m=1),
    "equal keys": lambda g: (0.3 + 0.1 * g.integers(-1, 2, M), np.full(N, 0.3), 0.2),
    "equal keys, own": lambda g: (0.3 + 0.1 * g.integers(-1, 2, M), np.full(N, 0.3), 0.2),
    "few queries": lambda g: (np.linspace(0, 1, 101), g.random(20_000), 0.04),
    "few keys": lambda g: uniform(g, m=5000, n=50),
    "h of 1e-6": lambda g: uniform(g, h=1e-6),
    "h of 1e-3": lambda g: uniform(g, h=1e-3),
    "h of 1": lambda g: uniform(g, h=1.0),
    "h of 1e3": lambda g: uniform(g, h=1e3),
    "subnormal": lambda g: (5e-324 * g.integers(0, 999, M), 5e-324 * g.integers(0, 999, N), 1e-149),
    "tiny": lambda g: (1e-150 * g.normal(size=M), 1e-150 * g.normal(size=N), 1e-150),
    "huge": lambda g: (1e149 * g.normal(size=M), 1e149 * g.normal(size=N), 3e148),
    "both ends": lambda g: (g.choice([-1e150, 1e150], M), g.choice([-1e150, 0.0, 1e150], N), 1e10),
    "at the edge": lambda g: (0.02 * g.random(M), g.choice([-1, 1], N) * (0.85 + 0.06 * g.random(N)), 0.92),
}


def assert_right(problem, tol=0.0):
    """The first promise: within `tol` and its rounding term of the reference, and empty exactly where that is."""
    expected = choose(problem, "reference").reduce(problem)
    state = choose(problem, "sweep").reduce(problem)
    np.testing.assert_array_equal(state.denominator == 0, expected.denominator == 0)
    target = expected.finalize("zero")
    allowed = rounding_bound(problem, expected) + tol * np.ptp(problem.value, axis=0)
    error = np.abs(state.finalize("zero") - target)
    assert np.all(error <= allowed), f"{np.max(error / allowed):.3g} times what is allowed"
    occupied = state.denominator > 0
    found, target = state.log_denominator[occupied], expected.log_denominator[occupied]
    np.testing.assert_allclose(found, target, rtol=1e-10, atol=1e-10 + tol / (1 - tol))
