"""More data than memory, more machines than one: a hundred million keys in Parquet, and two workers against one.

python benchmarks/scale.py            everything, about four minutes, and 3.3 GB on the disk while it runs
python benchmarks/scale.py --quick    a hundredth of the rows, and no report
"""

import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import finish, flags, in_process, report, table
from pyarrow import parquet

ROWS, ROW_GROUP = 100_000_000, 1 << 20
QUERIES, BANDWIDTH, THREADS, ROUNDS = 10_000, 0.01, 2, 3
TIME_BAR, MEMORY_BAR, FLAT_BAR, SPEED_BAR = 5.0, 1024.0, 1.2, 1.7
DASK_ROWS, DASK_COLUMNS, DASK_QUERIES, DASK_PARTS = 1 << 18, 4, 8000, 32

READ = """
import pyarrow, pyarrow.parquet
pyarrow.set_cpu_count(threads)
def read():
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=pre_buffer)
    return sum(batch.num_rows for batch in file.iter_batches(columns=["x", "y"]))
read()
started = time.perf_counter()
read()
tell(time.perf_counter() - started)
"""
POOL = """
import pyarrow
pyarrow.set_cpu_count(threads)
from kernpool import open_chunks, pool
query = np.linspace(0.0, 1.0, queries)
few = np.random.default_rng(0).random(700_000)
pool(query, open_chunks(few, few, rows=700_000), bandwidth=bandwidth, n_jobs=threads)  # loads and compiles
started = time.perf_counter()
pooled = pool(query, open_chunks(path, target="y"), bandwidth=bandwidth, n_jobs=threads)
seconds = time.perf_counter() - started
tell(seconds, mebibytes("VmHWM:"), float(np.abs(pooled - np.sin(12 * query))[100:-100].max()))
"""
DASK = """
import statistics
import dask.array
from distributed import Client, LocalCluster
from kernpool import pool
from kernpool.dask import open_partitions

def main():
    generator = np.random.default_rng(0)
    key, query = generator.random((rows, columns)), generator.random((queries, columns))
    chunks = (rows // parts, columns)
    keys, values = dask.array.from_array(key, chunks), dask.array.from_array(key.sum(axis=1), chunks[0])
    seconds, found = {}, {}
    for workers in (1, 2):
        with (LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
              Client(cluster) as client):
            held = open_partitions(*client.persist([keys, values]), client=client)
            pool(query[:10], held, bandwidth=0.05, algorithm="brute")  # loads and compiles
            times = []
            for _ in range(rounds):
                started = time.perf_counter()
                found[workers] = pool(query, held, bandwidth=0.05, algorithm="brute")
                times.append(time.perf_counter() - started)
            seconds[workers] = statistics.median(times)
    tell(seconds[1], seconds[2], found[1].tobytes() == found[2].tobytes())

if __name__ == "__main__":
    main()
"""


def make(path: Path, rows: int) -> None:
    """Write x uniform and a noisy sine of it, a row group at a time."""
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    generator = np.random.default_rng(0)
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROW_GROUP):
            x = generator.random(min(ROW_GROUP, rows - start))
            y = np.sin(12 * x) + generator.normal(size=len(x))
            writer.write_table(pa.table([x, y], schema=schema), row_group_size=ROW_GROUP)


def measure_parquet(path: Path) -> dict[str, float]:
    """Alternate reading alone, in two ways, and pooling; medians of seconds, and the largest peak."""
    given = {"path": str(path), "threads": THREADS}
    pooling = given | {"queries": QUERIES, "bandwidth": BANDWIDTH}
    rounds = [
        (
            in_process(READ, pre_buffer=False, **given),
            in_process(READ, pre_buffer=True, **given),
            in_process(POOL, **pooling),
        )
        for _ in range(ROUNDS)
    ]
    read, buffered, pooled = (statistics.median(one[0] for one in of) for of in zip(*rounds, strict=True))
    peak, error = max(one[2][1] for one in rounds), rounds[0][2][2]
    return {"read": read, "buffered": buffered, "pool": pooled, "peak": peak, "error": error}


def main() -> None:
    quick = flags(__doc__, "quick").quick
    rows = ROWS // 100 if quick else ROWS
    with tempfile.TemporaryDirectory(prefix="kernpool-scale-") as folder:
        found = {}
        for n in (rows // 10, rows):
            path = Path(folder) / f"{n}.parquet"
            make(path, n)
            found[n], size = measure_parquet(path), path.stat().st_size / 1e9
    small, large = found.values()
    given = {
        "rows": DASK_ROWS // 16 if quick else DASK_ROWS,
        "columns": DASK_COLUMNS,
        "queries": DASK_QUERIES,
        "parts": DASK_PARTS,
    }
    one, two, same = in_process(DASK, rounds=ROUNDS, **given)
    bars = [
        ("time, in readings", large["pool"] / large["read"], TIME_BAR, 1),
        ("peak memory, MiB", large["peak"], MEMORY_BAR, 1),
        ("peak of ten times the rows, times", large["peak"] / small["peak"], FLAT_BAR, 1),
        ("two workers against one, times", one / two, SPEED_BAR, -1),
    ]
    missed = [f"{name}: {value:.2f}" for name, value, bar, sense in bars if sense * value > sense * bar]
    missed += [] if same else ["other bits with two workers"]
    report(
        "scale",
        "# Data larger than memory",
        f"{rows:,} keys in one Parquet file of {size:.1f} GB, one column, Gaussian, bandwidth {BANDWIDTH}, {QUERIES:,} "
        f"queries, {THREADS} threads, warm page cache. *Reading* is `iter_batches` of both columns and nothing else, "
        "in the faster of its two ways.",
        table("what | found | target", [(name, f"{value:.2f}", f"{bar:g}") for name, value, bar, _ in bars]),
        table(
            "rows | reading | reading, `pre_buffer=True` | pooling | peak",
            [
                (f"{n:,}", *(f"{of[name]:.2f} s" for name in ("read", "buffered", "pool")), f"{of['peak']:.0f} MiB")
                for n, of in found.items()
            ],
        ),
        f"Dask: {given['rows']:,} keys of {DASK_COLUMNS} columns in {DASK_PARTS} partitions, {DASK_QUERIES:,} queries, "
        f"every pair: {one:.2f} s on one worker of one thread, {two:.2f} s on two; the same bits: "
        f"{'yes' if same else 'no'}.",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
