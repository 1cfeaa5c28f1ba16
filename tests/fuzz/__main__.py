"""Run the fuzzer from a command line."""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from queue import Empty

import numpy as np

from tests.fuzz.cases import draw, recipe
from tests.fuzz.regimes import BY_NAME
from tests.fuzz.report import Report
from tests.fuzz.worker import attempt, run

MOST_FAILURES = 5  # that are told before the fuzzer gives up
PATIENCE = 180.0  # seconds beyond its time that a worker may take for the case it is at
MANY = 2000  # cases in which all parts of the engine have to be reached


def main(arguments=None):
    """Parse, run, print; return how many cases were wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Hold every algorithm against brute force."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="by default a fresh one, which is printed")
    parser.add_argument("--regime", choices=["all", *BY_NAME], default="all")
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
    places = [context.Value("q", -1) for _ in range(options.processes)]
    workers = [
        context.Process(target=run, args=(seed, options.regime, k, len(places), deadline, queue, at), daemon=True)
        for k, at in enumerate(places)
    ]
    for worker in workers:
        worker.start()

    def where():
        """Cases that workers were at, for those that died or do not end."""
        return "\n".join(f"  {recipe(draw(seed, at.value, options.regime))}" for at in places if at.value >= 0)

    total, wrong = collect(queue, workers, deadline + PATIENCE, where)
    print(summary(total, wrong), flush=True)
    missed = [name for name, times in total.reached.items() if not times]
    if missed and options.regime == "all" and total.cases >= MANY:
        print(f"never reached: {', '.join(missed)}", flush=True)
        return wrong + 1
    return wrong


def collect(queue, workers, latest, where):
    """Add up reports until all workers are done, or too much is wrong."""
    total, wrong, running = Report(), 0, len(workers)
    while running and wrong < MOST_FAILURES:
        try:
            item = queue.get(timeout=10.0)
        except Empty:
            dead = any(worker.exitcode for worker in workers)
            if not dead and time.monotonic() < latest:
                continue
            for worker in workers:
                worker.kill()
            sys.exit(f"a worker {'died' if dead else 'does not end'}, at one of\n{where()}")
        if isinstance(item, Counter):
            running -= 1
            total.reached.update(item)
            continue
        _, report, told = item
        total.add(report)
        if told:
            wrong += 1
            print(told, flush=True)
    return total, wrong


def summary(total, wrong):
    """Say what was compared, and what of the engine was reached."""
    answers = ", ".join(f"{name} {count}" for name, count in sorted(total.algorithms.items()))
    parts = ", ".join(f"{name} {count}" for name, count in total.reached.items())
    return (
        f"{total.cases} cases, {total.answers} answers compared, {total.doubts} of them looked at twice, {wrong} cases "
        f"wrong\nby {answers}\nreached: {parts}"
    )


def _slice(text, size):
    start, _, stop = (text or ":").partition(":")
    return slice(int(start or 0), int(stop or size))


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
