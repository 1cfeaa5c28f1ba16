"""A smaller problem that is still wrong."""

import time

from tests.fuzz.checks import check
from tests.fuzz.report import Report

SECONDS = 10.0


def shrink(case, report):
    """Take halves of the keys and of the queries away as long as the same one is wrong."""
    who, rows = report.faults[0][0], [row for _, rows, _ in report.faults for row in rows]
    queries, keys = slice(0, len(case.query)), slice(0, len(case.key))
    best, until = case, time.monotonic() + SECONDS
    if rows and is_wrong(alone := case.cut(slice(int(rows[0]), int(rows[0]) + 1), keys), who):
        best, queries = alone, slice(int(rows[0]), int(rows[0]) + 1)
    found = True
    while found and time.monotonic() < until:
        found = False
        for fewer in [*((queries, half) for half in halves(keys)), *((half, keys) for half in halves(queries))]:
            if found := is_wrong(smaller := case.cut(*fewer), who):
                best, (queries, keys) = smaller, fewer
                break
            if time.monotonic() > until:
                break
    return best


def halves(part):
    """Both halves of a slice, and its quarters at the ends taken away."""
    size = part.stop - part.start
    middle, quarter = part.start + size // 2, size // 4
    if size < 2:
        return []
    some = [slice(part.start, middle), slice(middle, part.stop)]
    return some + ([slice(part.start + quarter, part.stop), slice(part.start, part.stop - quarter)] if quarter else [])


def is_wrong(case, who):
    """Whether the same one is wrong on a part of a case, in the same way."""
    if case is None:
        return False
    report = Report()
    try:
        check(case, report)
    except Exception as error:
        return type(error).__name__ == who
    return any(name == who for name, _, _ in report.faults)
