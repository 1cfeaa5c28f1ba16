"""Figures of the fits of one kind on one half: means, ranks, gaps to the best peer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from scipy.stats import rankdata
from table_data import TABLES
from table_models import CLASSIFIERS, REGRESSORS


class Summary:
    """What was found on the tables of a kind in a half.

    Parameters
    ----------
    records : mapping of (table, model, seed) to dict
    half : {"choose", "report", "fresh"}
    classes : bool
    """

    def __init__(self, records: Mapping[tuple[str, str, int], dict], half: str, classes: bool) -> None:
        self.models = CLASSIFIERS if classes else REGRESSORS
        self.score, self.sign = ("log_loss", -1.0) if classes else ("r2", 1.0)  # 1: the larger, the better
        self.fits: dict[tuple[str, str], dict[int, dict]] = defaultdict(dict)
        self.failed: list[dict] = []
        for (table, model, seed), record in sorted(records.items(), key=lambda item: item[0]):
            if TABLES[table].half != half or TABLES[table].classes != classes:
                continue
            if "failed" in record:
                self.failed.append(record)
            else:
                self.fits[table, model][seed] = record
        self.tables = [name for name in TABLES if any(table == name for table, _ in self.fits)]
        self.peers = [name for name, model in self.models.items() if not model.ours]

    def has(self, model: str) -> bool:
        return any(who == model for _, who in self.fits)

    def values(self, table: str, model: str, what: str | None = None) -> dict[int, float]:
        """One figure by split; the score if none is named."""
        name = what or self.score
        return {seed: fit[name] for seed, fit in self.fits.get((table, model), {}).items() if name in fit}

    @cached_property
    def means(self) -> dict[tuple[str, str], float]:
        """Mean score of every model on every table."""
        return {key: float(np.mean(list(self.values(*key).values()))) for key in self.fits}

    def best_peer(self, table: str) -> str:
        """Return the peer whose mean score is the best in hindsight."""
        return max((p for p in self.peers if (table, p) in self.means), key=lambda p: self.sign * self.means[table, p])

    def measured(self, model: str | None) -> list[str]:
        """Tables that a model, if any is named, and a peer were run on."""
        own = [t for t in self.tables if model is None or (t, model) in self.means]
        return [t for t in own if any((t, peer) in self.means for peer in self.peers)]

    def paired(self, table: str, ours: str, other: str, what: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """One figure of two models on the splits that both were run on."""
        mine, theirs = self.values(table, ours, what), self.values(table, other, what)
        seeds = sorted(mine.keys() & theirs.keys())
        return np.array([mine[seed] for seed in seeds]), np.array([theirs[seed] for seed in seeds])

    def gaps(self, model: str) -> dict[str, float]:
        """How much the best peer is better, by table; negative where the model is."""
        both = {table: self.paired(table, model, self.best_peer(table)) for table in self.measured(model)}
        return {table: float(np.mean(self.sign * (theirs - mine))) for table, (mine, theirs) in both.items()}

    def ranks(self, ours: str | None) -> dict[str, dict[str, float]]:
        """Rank of every peer, and of a model of ours if any, 1 the best, by model and table, among those run on it."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for table in self.measured(ours):
            present = [m for m in (ours, *self.peers) if (table, m) in self.means]
            order = rankdata([-self.sign * self.means[table, m] for m in present])
            for model, rank in zip(present, order, strict=True):
                found[model][table] = float(rank)
        return found

    def ahead(self, ours: str) -> list[str]:
        """Peers whose mean rank is better than that of ours on the tables that they were run on."""
        ranks = self.ranks(ours)
        return [
            peer
            for peer in self.peers
            if ranks[peer] and np.mean([*ranks[peer].values()]) < np.mean([ranks[ours][t] for t in ranks[peer]])
        ]

    def promises(self, ours: str, name: str) -> dict[str, float]:
        """What a model says of its error over what it was on rows held out, by table, each a mean over its splits."""
        held = "brier" if self.score == "log_loss" else "mse"
        ratios = {}
        for table in self.measured(ours):
            said, found = self.values(table, ours, name), self.values(table, ours, held)
            if said:
                ratios[table] = float(np.mean([*said.values()]) / np.mean([*found.values()]))  # by more splits
        return ratios

    def seconds(self, table: str, model: str) -> float:
        """Median over splits of choosing, fitting and predicting, together."""
        fits = self.fits.get((table, model), {}).values()
        return float(np.median([fit["fit_seconds"] + fit["predict_seconds"] for fit in fits])) if fits else np.nan
