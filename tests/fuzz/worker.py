"""Workers: each checks every k-th case of a seed until the time is over."""

import time
import traceback

from tests.fuzz.cases import draw, recipe
from tests.fuzz.checks import check
from tests.fuzz.reached import count_parts
from tests.fuzz.report import Report
from tests.fuzz.shrink import shrink


def run(seed, regime, first, step, deadline, queue, at):
    """Check every step-th case until the time is over; tell what was seen, and before each case which one it is."""
    reached, index = count_parts(), first
    while time.monotonic() < deadline:
        at.value = index
        queue.put((index, *attempt(draw(seed, index, regime))))
        index += step
    queue.put(reached)


def attempt(case):
    """Check a case; return its report, and for a failure its story."""
    report = Report()
    try:
        check(case, report)
    except Exception as error:
        report.wrong(type(error).__name__, [], traceback.format_exc(limit=-4))
    return report, story(case, report) if report.faults else ""


def story(case, report):
    """Tell what is wrong, and how to see it again, on a part of the problem if that will do."""
    lines = [f"WRONG: {case}"]
    lines += [f"  {who}: {what}" for who, _, what in report.faults[:4]]
    lines.append(f"  {recipe(case)}")
    small = shrink(case, report)
    if small is not case:
        lines.append(f"  on {len(small.query)} x {len(small.key)}: {recipe(small)}")
    return "\n".join(lines)
