"""How long a job of minutes takes to answer Ctrl-C."""

import signal
import statistics
import subprocess
import sys
import time

from measure import finish, report

SCRIPT = """
import numpy as np, kernpool, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background a shell has it ignored
n_jobs, n, kernel, algorithm = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
x = np.random.default_rng(0).normal(size=n)
kernpool.pool(x[:2000], x[:2000], x[:2000], kernel=kernel, algorithm=algorithm, empty="zero")
print("ready", flush=True)
try:
    kernpool.pool(x, x, x, kernel=kernel, bandwidth=0.01, algorithm=algorithm, n_jobs=n_jobs, empty="zero")
except KeyboardInterrupt:
    print("stopped", flush=True)
else:
    print("finished", flush=True)
"""
# The slowest kernel key by key; and twenty million keys and queries put in order, stopped ever later on the way.
CASES = {
    "brute force, n = m = 400 000, logistic": (400_000, "logistic", "brute"),
    "sweep, n = m = 20 000 000, Epanechnikov": (20_000_000, "epanechnikov", "sweep"),
}
ROUNDS, BAR = 9, 0.3


def answer(n_jobs: int, wait: float, *case: object) -> float:
    command = [sys.executable, "-c", SCRIPT, str(n_jobs), *map(str, case)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(wait)
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    seconds = time.perf_counter() - started
    process.kill()
    process.wait()
    return seconds


def benchmark() -> None:
    lines, missed = [], []
    for name, case in CASES.items():
        for n_jobs in (1, 2):
            seconds = [answer(n_jobs, 0.5 + 0.25 * i, *case) for i in range(ROUNDS)]
            lines.append(f"| {name} | {n_jobs} | {statistics.median(seconds):.3f} | {max(seconds):.3f} |")
            missed += [f"{name}, {n_jobs} thread(s): {max(seconds):.2f} s"] if max(seconds) > BAR else []
    rows = "\n".join(lines)
    report(
        "interrupt",
        "# Time from Ctrl-C to KeyboardInterrupt\n\n"
        f"| job | threads | median seconds | longest |\n|---|---|---|---|\n{rows}\n\n"
        f"{ROUNDS} runs each, interrupted ever later (target: 0.3).",
    )
    finish(missed)


if __name__ == "__main__":
    benchmark()
