"""Two versions of the package side by side: what users call, alternating between two processes, medians of ratios.

python benchmarks/versions.py ../before/src src            ratios of the second to the first; above 1.05 is slower
python benchmarks/versions.py ../before/src src --only tree
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROUNDS, LEAST_SECONDS, BAR = 11, 0.02, 1.05


def arrays(n, m, d, dtype=np.float64):
    """Keys, values and queries that look like data."""
    generator = np.random.default_rng([n, m, d])
    key = generator.normal(size=(n, d)).astype(dtype)
    return generator.normal(size=(m, d)).astype(dtype), key, np.sin(key[:, 0]).astype(dtype)


def pooled(n, m, d, dtype=np.float64, **options):
    """Pool arrays."""
    import kernpool

    given = arrays(n, m, d, dtype)
    return lambda: kernpool.pool(*given, n_jobs=2, empty="zero", **options)


def fitted(name, n, d, **options):
    """Fit an estimator, with its search."""
    import kernpool

    _, key, value = arrays(n, 1, d)
    return lambda: getattr(kernpool, name)(**options).fit(key, value)


def predicted(name, n, m, d):
    """Predict from a fitted model."""
    import kernpool

    query, key, value = arrays(n, m, d)
    model = getattr(kernpool, name)(bandwidth=0.2).fit(key, value)
    return lambda: model.predict(query)


def of_levels():
    """Fit and predict with a categorical column."""
    import pandas

    import kernpool

    query, key, value = arrays(400, 400, 2)
    tables = [pandas.DataFrame({"x": rows[:, 0], "g": pandas.cut(rows[:, 1], 4).astype(str)}) for rows in (key, query)]
    tables = [table.astype({"g": "category"}) for table in tables]
    model = kernpool.NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.2], unseen="unlike").fit(tables[0], value)
    return lambda: model.predict(tables[1])


def of_chunks():
    """Pool chunks of a large array."""
    import kernpool

    query, key, value = arrays(1_000_000, 500, 2)
    return lambda: kernpool.pool(query, kernpool.open_chunks(key, value, rows=200_000), bandwidth=0.1, n_jobs=2)


def of_layer(d):
    """Run a layer forward and backward."""
    import torch

    from kernpool.torch import AttentionPooling, GaussianSimilarity

    query, key, value = (torch.tensor(rows, dtype=torch.float32) for rows in arrays(3000, 3000, d))
    layer = AttentionPooling(GaussianSimilarity(float(np.sqrt(d))))

    def run():
        layer.zero_grad()
        layer(query, key, value[:, None]).sum().backward()

    return run


def small_batches():
    """Pool a batch of small problems."""
    import kernpool

    generator = np.random.default_rng(0)
    query, key, value = (generator.normal(size=(50, 30, 2)) for _ in range(3))
    return lambda: kernpool.pool(query, key, value)


CASES = {
    "50 x 50": lambda: pooled(50, 50, 1),
    "a batch of 50": small_batches,
    "brute gaussian, 3 columns": lambda: pooled(6000, 6000, 3, algorithm="brute"),
    "brute epanechnikov, 3 columns": lambda: pooled(6000, 6000, 3, algorithm="brute", kernel="epanechnikov"),
    "brute laplace, product": lambda: pooled(3000, 3000, 3, algorithm="brute", kernel="product laplace"),
    "brute gaussian, float32": lambda: pooled(6000, 6000, 3, np.float32, algorithm="brute"),
    "brute gaussian, 64 columns": lambda: pooled(3000, 3000, 64, algorithm="brute", bandwidth=8.0),
    "brute local linear, 3 columns": lambda: pooled(3000, 3000, 3, algorithm="brute", degree=1),
    "sweep gaussian, 10^6": lambda: pooled(1_000_000, 1_000_000, 1, bandwidth=0.01),
    "sweep epanechnikov, 10^6": lambda: pooled(1_000_000, 1_000_000, 1, bandwidth=0.01, kernel="epanechnikov"),
    "sweep local linear, 10^5": lambda: pooled(100_000, 100_000, 1, bandwidth=0.05, degree=1),
    "a curve of 401, 10^6 keys": lambda: pooled(1_000_000, 401, 1, bandwidth=0.05),
    "tree gaussian, 2 columns": lambda: pooled(100_000, 100_000, 2, bandwidth=0.01, algorithm="kd_tree"),
    "tree epanechnikov, 3 columns": lambda: pooled(
        100_000, 100_000, 3, bandwidth=0.1, algorithm="kd_tree", kernel="epanechnikov"
    ),
    "fit, 300 rows, 3 columns": lambda: fitted("NadarayaWatsonRegressor", 300, 3),
    "fit, 20 000 rows, 1 column": lambda: fitted("NadarayaWatsonRegressor", 20_000, 1),
    "fit local linear, 300 rows": lambda: fitted("LocalLinearRegressor", 300, 2),
    "predict 1 row": lambda: predicted("NadarayaWatsonRegressor", 100_000, 1, 2),
    "predict 1 row, local linear": lambda: predicted("LocalLinearRegressor", 100_000, 1, 2),
    "predict 2000 rows": lambda: predicted("NadarayaWatsonRegressor", 100_000, 2000, 2),
    "levels": of_levels,
    "chunks": of_chunks,
    "layer, 1 column": lambda: of_layer(1),
    "layer, 16 columns": lambda: of_layer(16),
}


def work() -> None:
    """Answer names of cases on standard input with seconds of a call, until it ends."""
    made = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made.clear()  # memory of one at a time
            call = CASES[name]()
            call()
            started = time.perf_counter()
            call()
            made[name] = call, max(1, round(LEAST_SECONDS / (time.perf_counter() - started)))
        call, times = made[name]
        started = time.perf_counter()
        for _ in range(times):
            call()
        print((time.perf_counter() - started) / times, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs=2, help="folders that hold the package: the earlier version, the later one")
    parser.add_argument("--only", default="", help="part of the names of cases")
    options = parser.parse_args()
    command = [sys.executable, __file__, "--work"]
    workers = [
        subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": str(Path(source).resolve())}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for source in options.sources
    ]  # fmt: skip
    for name in (name for name in CASES if options.only in name):
        seconds = []
        for _ in range(ROUNDS):
            for worker in workers:
                worker.stdin.write(f"{name}\n")
                worker.stdin.flush()
                seconds.append(float(worker.stdout.readline()))
        before, after = seconds[::2], seconds[1::2]
        ratio = statistics.median(b / a for a, b in zip(before, after, strict=True))
        best = min(after) / min(before)
        slower = "slower" if min(ratio, best) > BAR else ""
        print(f"{name:32s} {statistics.median(before) * 1e3:9.3f} ms {statistics.median(after) * 1e3:9.3f} ms"
              f"   {ratio:5.2f} (of the smallest {best:5.2f}) {slower}", flush=True)  # fmt: skip
    for worker in workers:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    work() if "--work" in sys.argv else main()
