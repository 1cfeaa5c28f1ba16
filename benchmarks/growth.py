"""Ten and a hundred million rows in two and three columns: time and memory, and where they end.

python benchmarks/growth.py            1e6 and 1e7 rows, some minutes
python benchmarks/growth.py --large    1e8 rows as well: a quarter of an hour, and 16 of 24 GiB

Each run has a process of its own, whose peak memory is read when it ends.
"""

import argparse
import json
import subprocess
import sys
import textwrap

from measure import finish, report

QUERIES, NEIGHBOURS, LIMIT = 100_000, 500, 1200  # queries, keys in a ball of radius h, seconds
BAR = 14.0  # times as long for ten times the keys: linear, with a logarithm
RUN = """
    import json, resource, sys, time
    import numpy as np
    from kernpool import Problem, choose

    n, d, algorithm, jobs, start, stop = json.loads(sys.argv[1])
    generator = np.random.default_rng(0)
    key = generator.random((n, d))
    query = generator.random((QUERIES, d))[start:stop]
    value = np.sin(6.0 * key[:, 0])
    ball = {2: np.pi, 3: 4.0 / 3.0 * np.pi}[d]
    h = (NEIGHBOURS / n / ball) ** (1.0 / d)

    def run(rows):
        problem = Problem.from_arrays(query, key[:rows], value[:rows], bandwidth=h if rows == n else 0.05)
        return choose(problem, algorithm).reduce(problem, n_jobs=jobs)

    run(20_000)  # loads and compiles
    inputs = (key.nbytes + query.nbytes + value.nbytes) / 2**30
    started = time.perf_counter()
    run(n)
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, inputs]))
"""


def begin(*arguments) -> subprocess.Popen:
    code = f"QUERIES, NEIGHBOURS = {QUERIES}, {NEIGHBOURS}\n{textwrap.dedent(RUN)}"
    command = [sys.executable, "-c", code, json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen) -> list[float] | str:
    """Return seconds, GiB of the process and GiB of its inputs, or why there are none."""
    try:
        out, error = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"not done after {LIMIT} s"
    if process.returncode:
        return "killed, out of memory" if process.returncode == -9 else error.strip().splitlines()[-1]
    return json.loads(out)


def benchmark() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    sizes = (10**6, 10**7, 10**8) if parser.parse_args().large else (10**6, 10**7)
    lines, missed, before = [], [], {}
    for d in (2, 3):
        for algorithm in ("kd_tree", "nufft"):
            for n in sizes:
                found = end(begin(n, d, algorithm, 2, 0, QUERIES))
                if isinstance(found, str):
                    lines.append(f"| {n:.0e} | {d} | {algorithm} | {found} | | | |")
                    print(lines[-1], flush=True)
                    break
                seconds, memory, inputs = found
                times = seconds / before[d, algorithm] if (d, algorithm) in before and n > sizes[0] else None
                before[d, algorithm] = seconds
                lines.append(
                    f"| {n:.0e} | {d} | {algorithm} | {seconds:.1f} | {f'{times:.1f}' if times else ''} "
                    f"| {memory:.1f} | {memory / inputs:.1f} |"
                )
                if times and times > BAR:
                    missed.append(
                        f"{algorithm}, {d} columns, {n:.0e} rows: {times:.1f} times as long for ten times the keys"
                    )
                print(lines[-1], flush=True)
    processes = two_processes()
    report(
        "growth",
        f"# Growth of running time: {QUERIES} queries among up to 1e8 keys, Gaussian, {NEIGHBOURS} keys within a "
        "bandwidth, two threads\n\n"
        "| keys | columns | algorithm | seconds | times those of a tenth of the keys | GiB | times the inputs |\n"
        f"|---|---|---|---|---|---|---|\n{chr(10).join(lines)}\n\n{processes}",
    )
    finish(missed)


def two_processes() -> str:
    """Compare two processes of one thread, each with half of the queries, with one process of two threads."""
    rows = []
    for algorithm, n in (("kd_tree", 10**6), ("brute", 20_000)):
        together = end(begin(n, 2, algorithm, 2, 0, QUERIES))[0]
        half = QUERIES // 2
        apart = max(
            found[0] for found in map(end, [begin(n, 2, algorithm, 1, *part) for part in ((0, half), (half, QUERIES))])
        )
        rows.append(f"{algorithm} among {n:.0e} keys: {together:.2f} s and {apart:.2f} s")
    return f"One process of two threads, and two of one thread with half of the queries each: {'; '.join(rows)}."


if __name__ == "__main__":
    benchmark()
