"""Files that are written whole or not at all, and never over something without being told to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class OutputExistsError(FileExistsError):
    """The output is there already and overwriting was not asked for."""


def refuse_existing(path: Path, force: bool, *, folder: bool = False) -> None:
    """Raise if `path` exists and is no empty folder, unless `force`; to be called before the long work, not after."""
    if path.is_dir() and not folder:
        raise OutputExistsError(f"{path} is a folder, and a file is to be written; choose another name")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise OutputExistsError(
            f"{path} exists already; choose another name, or overwrite it with --force (force=True)"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for {path.name} does not exist; make it first")


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends well it becomes `path`, otherwise it is gone.

    The temporary name keeps the suffix, because writers choose the format by it.
    """
    path = path.resolve()  # through a symbolic link to the file that it names
    refuse_existing(path, force)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes private files; an output is an ordinary one
        refuse_existing(path, force)
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def whole_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; when the block ends well it becomes `path`, otherwise it is gone."""
    path = path.resolve()  # "." has no name of its own
    refuse_existing(path, force, folder=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        refuse_existing(path, force, folder=True)
        if path.exists():
            retired = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            try:
                path.replace(retired)  # onto an empty folder: one atomic step
            except OSError:
                retired.rmdir()
                raise
            temporary.replace(path)
            shutil.rmtree(retired)
        else:
            temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
