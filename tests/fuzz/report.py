"""What a run of the fuzzer has seen."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from kernpool.algorithms import ALGORITHMS

LEAST = 1e-300  # subnormal sums have few digits


@dataclass
class Report:
    """What was compared, and what was wrong."""

    cases: int = 0
    answers: int = 0
    doubts: int = 0
    algorithms: Counter = field(default_factory=Counter)
    reached: Counter = field(default_factory=Counter)
    faults: list = field(default_factory=list)

    def wrong(self, who, rows, story):
        self.faults.append((who, np.atleast_1d(rows), story))

    def saw(self, who, answers):
        self.answers += answers
        self.algorithms[who] += answers

    def add(self, other):
        """Count what another report has seen."""
        self.cases += 1
        self.answers += other.answers
        self.doubts += other.doubts
        self.algorithms.update(other.algorithms)


def able(problem):
    """Names of the algorithms that can do a problem; `auto` as well."""
    return [*(name for name, one in ALGORITHMS.items() if one.refusal(problem) is None), "auto"]
