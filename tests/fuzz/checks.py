"""Which check belongs to which kind of case, and what none of them may cause: a warning, or an answer corrected."""

import warnings

from kernpool import EmptyWindowWarning, ExtrapolationWarning, RankDeficiencyWarning
from kernpool.algorithms.verification import FAULTS
from tests.fuzz.containers import chunks, levels
from tests.fuzz.estimators import model
from tests.fuzz.gradients import gradients
from tests.fuzz.planes import linear
from tests.fuzz.sums import pooled

CHECKS = {
    "pool": pooled,
    "linear": linear,
    "gradients": gradients,
    "chunks": chunks,
    "levels": levels,
    "model": model,
}


def check(case, report):
    """Run one case by everything that can do it."""
    FAULTS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EmptyWindowWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        CHECKS[case.kind](case, report)
    for who, count in FAULTS.counts().items():
        report.wrong(who, [], f"{count} answers had to be computed again at run time")
