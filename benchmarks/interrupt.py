"""How long a job of minutes takes to answer Ctrl-C."""

import signal
import statistics
import subprocess
import sys
import time

from measure import report

SCRIPT = """
import numpy as np, kernpool, sys
x = np.random.default_rng(0).normal(size=400_000)
kernpool.pool(x[:2000], x[:2000], x[:2000], kernel="logistic")
print("ready", flush=True)
try:
    kernpool.pool(x, x, x, kernel="logistic", n_jobs=int(sys.argv[1]))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def answer(n_jobs: int) -> float:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(n_jobs)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    seconds = time.perf_counter() - started
    process.wait()
    return seconds


def benchmark() -> None:
    rows = "\n".join(f"| {n_jobs} | {statistics.median(answer(n_jobs) for _ in range(9)):.3f} |" for n_jobs in (1, 2))
    report(
        "interrupt",
        "# From Ctrl-C to the KeyboardInterrupt, n = m = 400 000, the slowest kernel\n\n"
        f"| threads | seconds |\n|---|---|\n{rows}\n\nMedians of 9 runs (bar: 0.3).",
    )


if __name__ == "__main__":
    benchmark()
