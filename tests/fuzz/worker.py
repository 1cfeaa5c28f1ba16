"""One case: checked, and its story told."""

import traceback

from tests.fuzz.cases import recipe
from tests.fuzz.checks import check
from tests.fuzz.report import Report


def attempt(case):
    """Check a case; return its report, and for a failure its story."""
    report = Report()
    try:
        check(case, report)
    except Exception as error:
        report.wrong(type(error).__name__, [], traceback.format_exc(limit=-4))
    return report, story(case, report) if report.faults else ""


def story(case, report):
    """Tell what is wrong, and how to see it again."""
    lines = [f"WRONG: {case}"]
    lines += [f"  {who}: {what}" for who, _, what in report.faults[:4]]
    return "\n".join([*lines, f"  {recipe(case)}"])
