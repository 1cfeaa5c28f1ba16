"""Ways to sum weights over ordered keys, for tests of what is only chosen for many pairs."""

from kernpool.distribution import weighted_quantile


def never_by_table(monkeypatch):
    """Make tables of weights the last choice, for few pairs too."""
    monkeypatch.setattr(weighted_quantile, "TABLE_PAIRS", 0)
