"""What kernpool's defaults have to reach on the half of the tables that reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from table_summary import Summary


@dataclass(frozen=True)
class Bars:
    """Limits of gaps to the best peer, of ranks, and of what models say of their own errors."""

    gap: float = 0.015
    behind: float = 0.03
    tables_behind: int = 2
    peers_ahead: int = 1
    loss_gap: float = 0.03
    loss_ratio: float = 1.5
    promise: float = 0.10
    bias: float = 0.03

    def __str__(self) -> str:
        return (
            f"- Numbers: the mean gap to the best peer at most {self.gap}; a better mean rank than all peers but "
            f"{self.peers_ahead}, on the tables that each was run on; at most {self.tables_behind} tables more than "
            f"{self.behind} behind.\n"
            f"- Classes: the mean gap in log loss at most {self.loss_gap}; on no table more than {self.loss_ratio} "
            f"times the best peer's.\n"
            f"- `expected_error`: on average within {100 * self.promise:.0f} % of the error held out, and its mean "
            f"over it within {100 * self.bias:.0f} % of 1."
        )


BARS = Bars()


def missed(found: Summary, ours: str) -> list[str]:
    """Return targets that a model of ours missed on these tables, in words."""
    if not found.measured(ours):
        return [f"{ours} was not measured"]
    gaps = np.array([*found.gaps(ours).values()])
    failed = sum(record["model"] == ours for record in found.failed)
    lines = [f"{failed} fits of {ours} failed"] if failed else []
    if found.sign > 0:
        behind, ahead = int(np.sum(gaps > BARS.behind)), found.ahead(ours)
        lines += [f"R^2 {gaps.mean():.4f} behind the best peer on average"] if gaps.mean() > BARS.gap else []
        lines += [f"{behind} tables more than {BARS.behind} behind"] if behind > BARS.tables_behind else []
        lines += [f"ranks better: {', '.join(ahead)}"] if len(ahead) > BARS.peers_ahead else []
    else:
        ratios = found.ratios(ours)
        worst = max(ratios, key=ratios.__getitem__)
        lines += [f"log loss {gaps.mean():.4f} behind the best peer on average"] if gaps.mean() > BARS.loss_gap else []
        if ratios[worst] > BARS.loss_ratio:
            lines.append(f"log loss {ratios[worst]:.2f} times the best peer's on {worst}")
    said = np.array([*found.promises(ours, "expected_error").values()])
    what = f"`expected_error` of {ours}"
    if len(said) and np.mean(np.abs(said - 1)) > BARS.promise:
        lines.append(f"{what} off by {100 * np.mean(np.abs(said - 1)):.0f} % on average")
    if len(said) and abs(said.mean() - 1) > BARS.bias:
        lines.append(f"{what} biased by {100 * (said.mean() - 1):+.1f} %")
    return lines
