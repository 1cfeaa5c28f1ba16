"""Ways to sum weights over ordered keys, for tests of what is only chosen for many pairs."""

from dataclasses import replace

from kernpool.distribution.ordered_sums import WAYS


def never_by_table(monkeypatch):
    """Make tables of weights the last choice, for few pairs too."""
    monkeypatch.setitem(WAYS, "table", replace(WAYS["table"], fixed=1e9))
