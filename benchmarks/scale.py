"""More data than memory, more machines than one: a hundred million keys in Parquet, and two workers against one.

python benchmarks/scale.py            everything, about four minutes, and 3.3 GB on the disk while it runs
python benchmarks/scale.py --quick    a hundredth of the rows
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import finish, report
from pyarrow import parquet

ROWS, ROW_GROUP = 100_000_000, 1 << 20
QUERIES, BANDWIDTH, THREADS, ROUNDS = 10_000, 0.01, 2, 3
TIME_BAR, MEMORY_BAR, FLAT_BAR, SPEED_BAR = 5.0, 1024.0, 1.2, 1.7
DASK_ROWS, DASK_COLUMNS, DASK_QUERIES, DASK_PARTS = 1 << 18, 4, 8000, 32

START = """
import json, re, sys, time
import numpy as np
path, threads = sys.argv[1], {threads}
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1)) / 1024
"""
READ = """
import pyarrow, pyarrow.parquet
pyarrow.set_cpu_count(threads)
def read():
    file = pyarrow.parquet.ParquetFile(path, pre_buffer={pre_buffer})
    return sum(batch.num_rows for batch in file.iter_batches(columns=["x", "y"]))
read()
started = time.perf_counter()
read()
print(json.dumps([time.perf_counter() - started, peak()]))
"""
POOL = """
import pyarrow
pyarrow.set_cpu_count(threads)
from kernpool import open_chunks, pool
query = np.linspace(0.0, 1.0, {queries})
few = np.random.default_rng(0).random(700_000)
pool(query, open_chunks(few, few, rows=700_000), bandwidth={bandwidth}, n_jobs=threads)  # loads and compiles
started = time.perf_counter()
pooled = pool(query, open_chunks(path, target="y"), bandwidth={bandwidth}, n_jobs=threads)
print(json.dumps([time.perf_counter() - started, peak(), float(np.abs(pooled - np.sin(12 * query))[100:-100].max())]))
"""
DASK = """
import dask.array
from distributed import Client, LocalCluster
from kernpool.dask import pool

def main():
    generator = np.random.default_rng(0)
    key, query = generator.random(({rows}, {columns})), generator.random(({queries}, {columns}))
    chunks = ({rows} // {parts}, {columns})
    keys, values = dask.array.from_array(key, chunks), dask.array.from_array(key.sum(axis=1), chunks[0])
    seconds, found = {{}}, {{}}
    for workers in (1, 2):
        options = {{"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            held, held_values = client.persist([keys, values])
            pool(query[:10], held, held_values, bandwidth=0.05, algorithm="brute", client=client)  # loads and compiles
            times = []
            for _ in range({rounds}):
                started = time.perf_counter()
                found[workers] = pool(query, held, held_values, bandwidth=0.05, algorithm="brute", client=client)
                times.append(time.perf_counter() - started)
            seconds[workers] = sorted(times)[len(times) // 2]
    print(json.dumps([seconds[1], seconds[2], found[1].tobytes() == found[2].tobytes()]))

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


def run(code: str, path: Path | str, **options) -> list:
    """Run a script in a process of its own, whose peak of memory is its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write((START + code).format(threads=THREADS, **options))
        script.flush()
        done = subprocess.run([sys.executable, script.name, str(path)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure_parquet(path: Path) -> dict[str, float]:
    """Alternate reading alone, in two ways, and pooling; medians of seconds, and the peaks."""
    jobs = {
        "read": (READ, {"pre_buffer": False}),
        "read, buffered": (READ, {"pre_buffer": True}),
        "pool": (POOL, {"queries": QUERIES, "bandwidth": BANDWIDTH}),
    }
    seen: dict[str, list] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, (code, options) in jobs.items():
            seen[name].append(run(code, path, **options))
    found = {name: statistics.median(one[0] for one in results) for name, results in seen.items()}
    return found | {"peak": max(one[1] for one in seen["pool"]), "error": seen["pool"][0][2]}


def benchmark(quick: bool) -> None:
    rows = ROWS // 100 if quick else ROWS
    folder, missed = Path(tempfile.mkdtemp(prefix="kernpool-scale-")), []
    try:
        make(folder / "small.parquet", rows // 10)
        make(folder / "large.parquet", rows)
        size = (folder / "large.parquet").stat().st_size / 1e9
        small, large = (measure_parquet(folder / f"{name}.parquet") for name in ("small", "large"))
    finally:
        shutil.rmtree(folder)
    one, two, same = run(
        DASK, "", rows=DASK_ROWS, columns=DASK_COLUMNS, queries=DASK_QUERIES, parts=DASK_PARTS, rounds=ROUNDS
    )
    bars = [
        ("time, in readings", large["pool"] / large["read"], TIME_BAR, 1),
        ("peak memory, MiB", large["peak"], MEMORY_BAR, 1),
        ("peak of ten times the rows, times", large["peak"] / small["peak"], FLAT_BAR, 1),
        ("two workers against one, times", one / two, SPEED_BAR, -1),
    ]
    missed += [f"{name}: {found:.2f}" for name, found, bar, sense in bars if sense * found > sense * bar]
    missed += [] if same else ["other bits with two workers"]
    lines = "\n".join(f"| {name} | {found:.2f} | {bar:g} |" for name, found, bar, _ in bars)
    text = (
        f"# Running time on data larger than memory\n\n{rows:,} keys in one Parquet file of {size:.1f} GB, one "
        "column, Gaussian, "
        f"bandwidth {BANDWIDTH}, {QUERIES:,} queries, {THREADS} threads, warm page cache. *Reading* is `iter_batches` "
        "of both columns and nothing else, in the faster of its two ways.\n\n"
        f"| what | found | target |\n|---|---|---|\n{lines}\n\n"
        "| rows | reading | reading, `pre_buffer=True` | pooling | peak |\n|---|---|---|---|---|\n"
        + "\n".join(
            f"| {n:,} | {of['read']:.2f} s | {of['read, buffered']:.2f} s | {of['pool']:.2f} s | {of['peak']:.0f} MiB |"
            for n, of in ((rows // 10, small), (rows, large))
        )
        + f"\n\nAway from the ends pooled values are within {large['error']:.4f} of the curve without noise.\n\n"
        f"Dask: {DASK_ROWS:,} keys of {DASK_COLUMNS} columns in {DASK_PARTS} partitions, {DASK_QUERIES:,} queries, "
        f"every pair: {one:.2f} s on one worker of one thread, {two:.2f} s on two; "
        f"the same bits: {'yes' if same else 'no'}."
    )
    report("scale", text, keep=not quick)
    finish(missed)


if __name__ == "__main__":
    benchmark("--quick" in sys.argv)
