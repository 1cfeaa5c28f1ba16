"""What is slow to make is made once: folders named after a digest of everything that they are made of."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
CACHE = DOCS / "_build" / "cache"


@cache
def package_digest() -> str:
    """Return a digest of all files of the package."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src" / "kernpool").rglob("*")):
        if path.is_file() and path.suffix in {".py", ".js", ".json", ".css", ".html"}:
            found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def made(name: str, of: str, make: Callable[[Path], None]) -> Path:
    """Return the folder that `make` fills, from an earlier build if neither `of` nor the package has changed."""
    digest = hashlib.sha256((of + package_digest()).encode()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob(f"{name}-{'[0-9a-f]' * 16}"):
            shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            draft = Path(temporary) / "draft"
            draft.mkdir()
            make(draft)
            draft.rename(folder)  # whole or not at all
    return folder
