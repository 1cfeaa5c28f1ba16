"""Run the fuzzer from a command line."""

import argparse
import multiprocessing
import sys
import time
from queue import Empty

import numpy as np

from tests.fuzz.cases import draw
from tests.fuzz.report import Report
from tests.fuzz.worker import attempt, run

MOST_FAILURES = 5  # that are told before the fuzzer gives up


def main(arguments=None):
    """Parse, run, print; return how many cases were wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Hold every algorithm against brute force."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="by default a fresh one, which is printed")
    parser.add_argument("--regime", choices=["all", "narrow"], default="all")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--case", type=int, help="run this one alone")
    parser.add_argument("--queries", help="of that case, as 0:10")
    parser.add_argument("--keys", help="likewise")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else int(np.random.SeedSequence().entropy % 2**31)
    if options.case is not None:
        case = draw(seed, options.case, options.regime)
        if options.queries or options.keys:
            case = case.cut(_slice(options.queries, len(case.query)), _slice(options.keys, len(case.key)))
        report, told = attempt(case)
        print(told or f"right: {case}, {report.answers} answers compared")
        return int(bool(told))
    print(f"fuzzing for {options.seconds:g} s, seed {seed}, {options.regime}", flush=True)
    context = multiprocessing.get_context("spawn")
    queue, deadline = context.Queue(), time.monotonic() + options.seconds
    workers = [
        context.Process(target=run, args=(seed, options.regime, k, options.processes, deadline, queue), daemon=True)
        for k in range(options.processes)
    ]
    for worker in workers:
        worker.start()
    total, wrong = collect(queue, workers)
    print(summary(total, wrong), flush=True)
    return wrong


def collect(queue, workers):
    """Add up reports until all workers are done, or too much is wrong."""
    total, wrong, cases, running = Report(), 0, 0, len(workers)
    while running and wrong < MOST_FAILURES:
        try:
            item = queue.get(timeout=10.0)
        except Empty:
            if any(worker.exitcode for worker in workers):
                sys.exit("a worker of the fuzzer died")
            continue
        if item is None:
            running -= 1
            continue
        _, report, told = item
        cases += 1
        total.doubts += report.doubts
        for name, count in report.algorithms.items():
            total.saw(name, count)
        if told:
            wrong += 1
            print(told, flush=True)
    total.cases = cases
    return total, wrong


def summary(total, wrong):
    """Say what was compared."""
    parts = ", ".join(f"{name} {count}" for name, count in sorted(total.algorithms.items()))
    return (
        f"{total.cases} cases, {total.answers} answers compared, {total.doubts} of them looked at twice, {wrong} cases "
        f"wrong\nby {parts}"
    )


def _slice(text, size):
    start, _, stop = (text or ":").partition(":")
    return slice(int(start or 0), int(stop or size))


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
