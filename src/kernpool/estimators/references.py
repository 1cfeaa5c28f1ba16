"""What a model on chunks writes instead of its rows: where they are, and how to tell that they are still the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.opening import reopen


def open_reference(reference: Any, memory: int | None = None) -> Chunks:
    """Open the rows of a reference, which is not believed, if they are the ones that it was fitted to."""
    problem = _problem(reference)
    if problem:
        raise ValueError(f"{problem} of the rows it refers to")
    return reopen(reference, memory=memory)


def _problem(reference: Any) -> str | None:
    """Return what is wrong with a reference."""
    if not isinstance(reference, dict):
        return "there is no description"
    if reference.get("kind") not in ("npy", "parquet"):
        return f"kind {reference.get('kind')!r:.40} is not known"
    path = reference.get("path")
    if not isinstance(path, str) or "\0" in path or not Path(path).is_absolute():
        return "the path is not absolute"
    target, weight = reference.get("target"), reference.get("weight")
    if not (isinstance(target, str) or (target and _are_texts(target))):
        return "the target is no column"
    if not (weight is None or isinstance(weight, str)) or "weight" not in reference:
        return "the weight is no column"
    if not reference.get("features") or not _are_texts(reference["features"]):
        return "the features are no columns"
    files = reference.get("files")
    if not files or not isinstance(files, dict) or not all(map(_is_fingerprint, files.values())):
        return "there are no fingerprints"
    columns = [*reference["features"], *([target] if isinstance(target, str) else target)]
    if len(set(columns)) < len(columns) or weight in columns:
        return "a column has two parts"
    return None


def _is_fingerprint(record: Any) -> bool:
    wanted = {"bytes": int, "sha256 of pieces": str}
    return isinstance(record, dict) and {name: type(entry) for name, entry in record.items()} == wanted


def _are_texts(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
