"""Ten and a hundred million rows in two and three columns: time and memory, and where they end.

python benchmarks/growth.py            1e6 and 1e7 rows, some minutes
python benchmarks/growth.py --large    1e8 rows as well: a quarter of an hour, and 16 of 24 GiB
python benchmarks/growth.py --quick    1e5 and 1e6 rows, and no report
"""

import subprocess

from measure import finish, flags, in_process, report, table, tell

QUERIES, NEIGHBOURS, LIMIT = 100_000, 500, 1200  # queries, keys in a ball of radius h, seconds
BAR = 14.0  # times as long for ten times the keys: linear, with a logarithm
RUN = """
from kernpool import Problem, choose

generator = np.random.default_rng(0)
key = generator.random((n, d))
query = generator.random((queries, d))
value = np.sin(6.0 * key[:, 0])
h = (neighbours / n / {2: np.pi, 3: 4.0 / 3.0 * np.pi}[d]) ** (1.0 / d)

def run(rows):
    problem = Problem.from_arrays(query, key[:rows], value[:rows], bandwidth=h if rows == n else 0.05)
    return choose(problem, algorithm).reduce(problem, n_jobs=jobs)

run(20_000)  # loads and compiles
started = time.perf_counter()
run(n)
seconds = time.perf_counter() - started
tell(seconds, mebibytes("VmHWM:") / 1024)
"""


def run(n: int, d: int, algorithm: str) -> list[float] | str:
    """Return seconds and GiB of a process, or why there are none."""
    given = {"n": n, "d": d, "algorithm": algorithm, "jobs": 2}
    try:
        return in_process(RUN, timeout=LIMIT, queries=QUERIES, neighbours=NEIGHBOURS, **given)
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT} s"
    except subprocess.CalledProcessError as error:
        return "killed, out of memory" if error.returncode == -9 else f"ended with {error.returncode}"


def main() -> None:
    asked = flags(__doc__, "large", "quick")
    sizes = (10**5, 10**6) if asked.quick else (10**6, 10**7, 10**8) if asked.large else (10**6, 10**7)
    rows, missed = [], []
    for d, algorithm in ((2, "kd_tree"), (2, "nufft"), (3, "kd_tree"), (3, "nufft")):
        before = None
        for n in sizes:
            found = run(n, d, algorithm)
            if isinstance(found, str):
                rows.append(tell(f"{n:.0e}", d, algorithm, found, "", ""))
                break
            seconds, memory = found
            times = seconds / before if before else 0.0
            before, shown = seconds, f"{times:.1f}" if times else ""
            rows.append(tell(f"{n:.0e}", d, algorithm, f"{seconds:.1f}", shown, f"{memory:.1f}"))
            if times > BAR:
                missed.append(
                    f"{algorithm}, {d} columns, {n:.0e} rows: {times:.1f} times as long for ten times as many"
                )
    report(
        "growth",
        "# Growth with the number of keys",
        f"{QUERIES} queries, Gaussian, {NEIGHBOURS} keys within a bandwidth, two threads:",
        table("keys | columns | algorithm | seconds | times those of a tenth of the keys | GiB", rows),
        keep=not asked.quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
