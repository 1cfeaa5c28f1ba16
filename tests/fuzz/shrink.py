"""A smaller problem that is still wrong."""

import time

from tests.fuzz.checks import check
from tests.fuzz.report import Report

SECONDS = 10.0


def shrink(case, report):
    """Take halves of the keys and of the queries away as long as something stays wrong."""
    rows = [row for _, rows, _ in report.faults for row in rows]
    queries, keys = slice(0, len(case.query)), slice(0, len(case.key))
    best, until = case, time.monotonic() + SECONDS
    if rows:
        alone = slice(int(rows[0]), int(rows[0]) + 1)
        if is_wrong(case.cut(alone, keys)):
            best, queries = case.cut(alone, keys), alone
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for more_queries, more_keys in [
            *((queries, half) for half in halves(keys)),
            *((half, keys) for half in halves(queries)),
        ]:
            smaller = case.cut(more_queries, more_keys)
            if is_wrong(smaller):
                best, queries, keys, progress = smaller, more_queries, more_keys, True
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


def is_wrong(case):
    """Whether a part of a case is wrong as well."""
    if case is None:
        return False
    report = Report()
    try:
        check(case, report)
    except Exception:
        return True
    return bool(report.faults)
