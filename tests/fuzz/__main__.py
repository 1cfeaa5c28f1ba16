"""Run the fuzzer from a command line."""

import argparse
import sys
import time

import numpy as np

from tests.fuzz.cases import draw
from tests.fuzz.reached import count_parts
from tests.fuzz.regimes import BY_NAME
from tests.fuzz.report import Report
from tests.fuzz.worker import attempt

MOST_FAILURES = 5  # that are told before the fuzzer gives up
MANY = 2000  # cases in which all parts of the engine have to be reached


def main(arguments=None):
    """Parse, run, print; return how many cases were wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Hold every algorithm against brute force."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="by default a fresh one, which is printed")
    parser.add_argument("--regime", choices=["all", *BY_NAME], default="all")
    parser.add_argument("--case", type=int, help="run this one alone")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else int(np.random.SeedSequence().entropy % 2**31)
    if options.case is not None:
        case = draw(seed, options.case, options.regime)
        report, told = attempt(case)
        print(told or f"right: {case}, {report.answers} answers compared")
        return int(bool(told))
    print(f"fuzzing for {options.seconds:g} s, seed {seed}, {options.regime}", flush=True)
    total, wrong, index, deadline = Report(), 0, 0, time.monotonic() + options.seconds
    total.reached = count_parts()
    while time.monotonic() < deadline and wrong < MOST_FAILURES:
        if sys.stderr.isatty():  # of a case in which the process dies nothing else is left
            print(f"case {index}", end="\r", file=sys.stderr, flush=True)
        report, told = attempt(draw(seed, index, options.regime))
        total.add(report)
        if told:
            wrong += 1
            print(told, flush=True)
        index += 1
    print(summary(total, wrong), flush=True)
    missed = [name for name, times in total.reached.items() if not times]
    if missed and options.regime == "all" and total.cases >= MANY:
        print(f"never reached: {', '.join(missed)}", flush=True)
        return wrong + 1
    return wrong


def summary(total, wrong):
    """Say what was compared, and what of the engine was reached."""
    answers = ", ".join(f"{name} {count}" for name, count in sorted(total.algorithms.items()))
    parts = ", ".join(f"{name} {count}" for name, count in total.reached.items())
    return (
        f"{total.cases} cases, {total.answers} answers compared, {total.doubts} of them looked at twice, {wrong} cases "
        f"wrong\nby {answers}\nreached: {parts}"
    )


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
