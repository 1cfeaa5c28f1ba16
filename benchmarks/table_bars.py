"""What kernpool's defaults have to reach on the half of the tables that reports."""

from __future__ import annotations

import numpy as np
from table_summary import Summary

GAP, BEHIND, TABLES_BEHIND, PEERS_AHEAD = 0.015, 0.03, 2, 1  # R^2 of the best peer less ours, tables, peers
LOSS_GAP, LOSS_RATIO = 0.03, 1.5
PROMISE, BIAS = 0.10, 0.03  # of `expected_error` over the error held out, less one
WORDS = f"""\
- Numbers: the mean gap to the best peer at most {GAP}; a better mean rank than all peers but {PEERS_AHEAD}, on the \
tables that each was run on; at most {TABLES_BEHIND} tables more than {BEHIND} behind.
- Classes: the mean gap in log loss at most {LOSS_GAP}; on no table more than {LOSS_RATIO} times the best peer's.
- `expected_error`: on average within {100 * PROMISE:.0f} % of the error held out, and its mean over it within \
{100 * BIAS:.0f} % of 1."""


def missed(found: Summary, ours: str) -> list[str]:
    """Return targets that a model of ours missed on these tables, in words."""
    if not found.measured(ours):
        return [f"{ours} was not measured"]
    gaps = np.array([*found.gaps(ours).values()])
    failed = sum(record["model"] == ours for record in found.failed)
    lines = [f"{failed} fits of {ours} failed"] if failed else []
    if found.sign > 0:
        behind, ahead = int(np.sum(gaps > BEHIND)), found.ahead(ours)
        lines += [f"R^2 {gaps.mean():.4f} behind the best peer on average"] if gaps.mean() > GAP else []
        lines += [f"{behind} tables more than {BEHIND} behind"] if behind > TABLES_BEHIND else []
        lines += [f"ranks better: {', '.join(ahead)}"] if len(ahead) > PEERS_AHEAD else []
    else:
        ratios = found.ratios(ours)
        worst = max(ratios, key=ratios.__getitem__)
        lines += [f"log loss {gaps.mean():.4f} behind the best peer on average"] if gaps.mean() > LOSS_GAP else []
        if ratios[worst] > LOSS_RATIO:
            lines.append(f"log loss {ratios[worst]:.2f} times the best peer's on {worst}")
    said = np.array([*found.promises(ours, "expected_error").values()])
    what = f"`expected_error` of {ours}"
    if len(said) and np.mean(np.abs(said - 1)) > PROMISE:
        lines.append(f"{what} off by {100 * np.mean(np.abs(said - 1)):.0f} % on average")
    if len(said) and abs(said.mean() - 1) > BIAS:
        lines.append(f"{what} biased by {100 * (said.mean() - 1):+.1f} %")
    return lines
