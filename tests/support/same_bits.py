"""Fifty problems whose answers have to keep every bit when code is moved, and the program that takes their digests.

``python -m tests.support.same_bits`` prints one line of JSON: name to digest and to some of the numbers. The compiler,
NumPy and BLAS are held to AVX2 by `ENVIRONMENT`, so that digests do not depend on the processor.
"""

import hashlib
import json
import sys
import warnings
from functools import partial

import numpy as np

# What both kinds of processor have. GLIBC and OpenBLAS choose their functions by the processor, too.
ENVIRONMENT = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+lzcnt,+mmx,+movbe,"
    "+pclmul,+popcnt,+rdrnd,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave,+xsaveopt,+64bit",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
}


def samples(columns, queries, keys, dtype=np.float64, values=2):
    """Rows that look like data: two clusters, values with a trend and noise."""
    generator = np.random.default_rng([columns, queries, keys])
    key = (generator.normal(size=(keys, columns)) + 3.0 * generator.integers(0, 2, (keys, 1))).astype(dtype)
    query = (generator.normal(size=(queries, columns)) * 2.0 + 1.0).astype(dtype)
    value = (np.sin(key[:, :1]) + generator.normal(size=(keys, values))).astype(dtype)
    weight = generator.integers(0, 5, keys).astype(dtype)
    return query, key, value, weight


def pooled(columns, queries, keys, *, dtype=np.float64, weighted=False, own=False, masked=False, **options):
    """Pool one problem by the public function."""
    import kernpool

    query, key, value, weight = samples(columns, queries, keys, dtype)
    if own:
        query, options = key[:queries], options | {"exclude_self": True}
    if weighted:
        options["key_weight"] = weight
    if masked:
        options["attn_mask"] = np.random.default_rng(0).random((queries, keys)) < 0.4
    return kernpool.pool(query, key, value, empty="zero", **options)


def of_chunks(degree):
    """Pool chunks."""
    import kernpool

    query, key, value, weight = samples(2, 300, 4000)
    parts = [(key[i : i + 1000], value[i : i + 1000], weight[i : i + 1000]) for i in range(0, 4000, 1000)]
    return kernpool.pool(query, kernpool.open_chunks(parts), degree=degree, bandwidth=0.5, algorithm="brute")


def fitted(name, weighted=False, **options):
    """Fit an estimator, search for its bandwidths, and predict."""
    import kernpool

    query, key, value, weight = samples(2, 200, 300)
    model = getattr(kernpool, name)(**options).fit(key, value[:, 0], weight if weighted else None)
    return np.concatenate([model.bandwidth_, model.predict(query)])


def of_levels(name):
    """Fit an estimator to a table with a categorical column."""
    import pandas

    import kernpool

    query, key, value, _ = samples(2, 120, 250)
    tables = []
    for rows in (key, query):
        level = pandas.Categorical.from_codes((np.abs(rows[:, 1]) * 2).astype(int) % 3, ["a", "b", "c"])
        tables.append(pandas.DataFrame({"x": rows[:, 0], "level": level}))
    model = getattr(kernpool, name)(bandwidth="loo").fit(tables[0], value[:, 0])
    return np.concatenate([model.bandwidth_, model.smoothing_, model.predict(tables[1])])


def differentiated(algorithm, columns, degree=0, kernel="gaussian"):
    """Differentiate a pooled value by everything."""
    import kernpool

    query, key, value, weight = samples(columns, 150, 900)
    problem = kernpool.Problem.from_arrays(
        query, key, value, key_weight=weight, kernel=kernel, bandwidth=0.7, degree=degree
    )
    plan = kernpool.choose(problem, algorithm)
    wanted = ("query", "key", "value", "log_bandwidth")
    found = plan.pullback(problem, plan.reduce(problem), np.ones((150, 2)), wanted)
    return np.concatenate([getattr(found, name).ravel() for name in wanted])


def problems():
    """Return names, and functions that compute the answers."""
    table = {}
    for kernel in ("gaussian", "epanechnikov", "laplace", "cosine"):
        for algorithm in ("reference", "brute", "sweep", "kd_tree"):
            table[f"{algorithm} {kernel} line"] = partial(
                pooled, 1, 400, 3000, kernel=kernel, algorithm=algorithm, bandwidth=0.3
            )
        for algorithm in ("brute", "kd_tree"):
            table[f"{algorithm} {kernel} plane"] = partial(
                pooled, 2, 400, 3000, kernel=kernel, algorithm=algorithm, bandwidth=0.3, weighted=True
            )
    for algorithm in ("brute", "sweep", "kd_tree"):
        table[f"{algorithm} float32"] = partial(pooled, 1, 300, 2000, dtype=np.float32, algorithm=algorithm)
        table[f"{algorithm} local linear"] = partial(
            pooled, 1, 300, 2000, degree=1, algorithm=algorithm, weighted=True, bandwidth=0.4
        )
        table[f"{algorithm} leave-one-out"] = partial(
            pooled, 1, 500, 500, own=True, algorithm=algorithm, weighted=True, bandwidth=0.2
        )
    table["nufft"] = partial(pooled, 2, 3000, 30000, algorithm="nufft", bandwidth=0.4)
    table["brute product"] = partial(
        pooled, 3, 200, 1500, kernel="epanechnikov", composition="product", algorithm="brute", bandwidth=1.5
    )
    table["brute masked"] = partial(pooled, 4, 150, 800, masked=True, algorithm="brute", bandwidth=1.5)
    table["brute wide"] = partial(pooled, 40, 150, 800, algorithm="brute", bandwidth=6.0)
    table["auto dense"] = partial(pooled, 2, 40, 100, bandwidth=0.5)
    table["auto line"] = partial(pooled, 1, 20000, 30000, bandwidth=0.05)
    table["chunks"] = partial(of_chunks, 0)
    table["chunks local linear"] = partial(of_chunks, 1)
    for algorithm, columns in (("brute", 3), ("sweep", 1), ("kd_tree", 2)):
        table[f"gradients {algorithm}"] = partial(differentiated, algorithm, columns)
    table["gradients local linear"] = partial(differentiated, "brute", 2, 1)
    table["gradients epanechnikov"] = partial(differentiated, "sweep", 1, 0, "epanechnikov")
    table["regressor"] = partial(fitted, "NadarayaWatsonRegressor", bandwidth="loo", weighted=True)
    table["local linear regressor"] = partial(fitted, "LocalLinearRegressor", bandwidth=0.6)
    table["levels"] = partial(of_levels, "NadarayaWatsonRegressor")
    table["levels local linear"] = partial(of_levels, "LocalLinearRegressor")
    return table


def answers():
    """Compute everything, in this order, in this process."""
    import numba  # noqa: F401  # the same history for every run

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, compute in problems().items():
            array = np.ascontiguousarray(compute(), dtype=np.float64)
            digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
            some = array.ravel()[:: max(1, array.size // 8)]
            found[name] = {"digest": digest, "some": some.tolist(), "range": float(np.ptp(array))}
    return found


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
