"""What pooling on a cluster costs: a model of few constants, measured here, checked on small sizes; see docs/scale.md.

python benchmarks/scale_model.py            two minutes
python benchmarks/scale_model.py --quick    smaller checks
"""

import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import finish, report
from scale import BANDWIDTH, make

from kernpool import merge, open_chunks
from kernpool.data.chunks.base import Chunk
from kernpool.pooling.out_of_core import QueryBatch
from kernpool.pooling.recipe import Recipe

FAN_IN, BYTES, NETWORK = 8, 8, 1e9  # bytes per second: ten gigabit Ethernet, nearly
PARTS_PER_WORKER, WORKERS, KEYS, QUERIES = 4, 100, 1_000_000_000, 10_000
TOLERANCE = 2.0  # between prediction and measurement


@dataclass(frozen=True)
class Costs:
    """Seconds: per row read, per key summed, per query and partition, per query and merge, per task."""

    read: float
    key: float
    query: float
    merge: float
    task: float

    def seconds(self, keys: int, queries: int, parts: int, workers: int) -> float:
        """Predict: the busiest worker's partitions, the tree of merges, the scheduler, which hands out one by one."""
        partition = keys / parts * (self.read + self.key) + queries * self.query
        busy = -(-parts // workers) * partition
        state = queries * 3 * BYTES / NETWORK
        levels = 0
        while FAN_IN**levels < parts:
            levels += 1
        merges = levels * FAN_IN * (queries * self.merge + state)
        return busy + merges + self.task * parts * FAN_IN / (FAN_IN - 1)


def median(job, rounds: int = 3) -> float:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure_costs(path: Path, client) -> Costs:
    """Measure on one thread what a worker does, and what the scheduler takes per task."""
    chunks = open_chunks(path, target="y")
    pa.set_cpu_count(1)
    read = median(lambda: sum(len(chunk.key) for chunk in chunks)) / chunks.rows
    generator, rows = np.random.default_rng(0), []
    for keys in (1 << 19, 1 << 20, 1 << 21):
        x = generator.random((keys, 1))
        for queries in (1000, 10_000):
            asked = QueryBatch.of(Recipe.of(bandwidth=BANDWIDTH, n_jobs=1), np.linspace(0, 1, queries)[:, None])
            chunk, zero = Chunk(x, np.sin(x)), np.zeros(1)
            asked.state(chunk, zero)
            rows.append((keys, queries, median(lambda: asked.state(chunk, zero))))  # noqa: B023  # called at once
            state = asked.state(chunk, zero)
    design = np.array(rows)
    # Relative errors count: a second is not worth more than a hundredth of one.
    (key, query), *_ = np.linalg.lstsq(design[:, :2] / design[:, 2:], np.ones(len(design)))
    merging = median(lambda: merge(state, state)) / 10_000

    def trivial():
        client.gather(client.map(abs, range(500), pure=False))

    return Costs(read, float(key), float(query), merging, median(trivial) / 500)


def benchmark(quick: bool) -> None:
    from distributed import Client, LocalCluster

    from kernpool.dask.pool import pool

    folder, lines, missed = Path(tempfile.mkdtemp(prefix="kernpool-scale-")), [], []
    sizes = (1 << 21, 1 << 22) if quick else (1 << 22, 1 << 24)
    try:
        for rows in sizes:
            make(folder / f"{rows}.parquet", rows)
        for workers in (1, 2):
            options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            with LocalCluster(**options) as cluster, Client(cluster) as client:
                if workers == 1:
                    costs = measure_costs(folder / f"{sizes[0]}.parquet", client)
                for rows in sizes:
                    for queries in (1000, 10_000):
                        chunks = open_chunks(folder / f"{rows}.parquet", target="y", rows=1 << 20)
                        query = np.linspace(0.0, 1.0, queries)

                        def job(query=query, chunks=chunks, client=client):
                            pool(query, chunks, bandwidth=BANDWIDTH, client=client)

                        job()  # loads and compiles
                        found = median(job)
                        expected = costs.seconds(rows, queries, len(chunks.parts()), workers)
                        lines.append(f"| {rows:,} | {queries:,} | {workers} | {expected:.2f} s | {found:.2f} s |")
                        print(lines[-1], flush=True)
                        if max(found / expected, expected / found) > TOLERANCE:
                            missed.append(f"{rows} keys, {queries} queries, {workers} workers: {found / expected:.2f}")
    finally:
        shutil.rmtree(folder)
    parts = PARTS_PER_WORKER * WORKERS
    large, rest = (costs.seconds(*of, parts, WORKERS) for of in ((KEYS, QUERIES), (0, 0)))
    text = (
        "# Running time on a cluster: model and measurements\n\nConstants of one thread, one column, Gaussian, "
        f"bandwidth {BANDWIDTH}: "
        f"{costs.read * 1e9:.0f} ns per row read from Parquet, {costs.key * 1e9:.0f} ns per key summed, "
        f"{costs.query * 1e6:.1f} us per query and partition, {costs.merge * 1e9:.0f} ns per query and merge, "
        f"{costs.task * 1e3:.1f} ms of the scheduler per task; the network carries {NETWORK / 1e9:g} GB/s.\n\n"
        "| keys | queries | workers | predicted | measured |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
        + f"\n\n{KEYS:,} keys, {QUERIES:,} queries, {WORKERS} workers of one thread, {parts} partitions: {large:.1f} s "
        f"predicted, of which the scheduler takes {rest:.1f} s. Target: within a factor of {TOLERANCE:g} where "
        "measured."
    )
    report("scale-model", text, keep=not quick)
    finish(missed)


if __name__ == "__main__":
    benchmark("--quick" in sys.argv)
