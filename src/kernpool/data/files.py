"""Files and folders that are written whole or not at all, never over others without `force`, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kernpool.data.temporaries import held, sweep, temporary_beside

PIECE, PIECES = 1 << 16, 64  # of a file, for its fingerprint: all of it up to four MiB
FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))


class OutputExistsError(FileExistsError):
    """The output is there already and overwriting was not asked for."""


def sha256(path: Path) -> str:
    """Digest a file, piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """Digest the length of a file, both of its ends and pieces in between: as good as all of it to tell files apart.

    A file that was replaced, truncated, continued or written again is noticed, in milliseconds for any size; a few
    bytes changed in place in the middle of a large file may not be.
    """
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    last = max(0, size - PIECE)
    with path.open("rb") as file:
        for start in sorted({last * i // (PIECES - 1) for i in range(PIECES)}):
            file.seek(start)
            digest.update(file.read(PIECE))
    return {"bytes": size, "sha256 of pieces": digest.hexdigest()}


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two names, through links or spelled in two ways, are of one file or folder that exists."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def refuse_existing(path: Path, force: bool, *, folder: bool = False) -> None:
    """Raise if `path` exists and is no empty folder, unless `force`; to be called before the long work, not after."""
    if path.is_dir() and not folder:
        raise OutputExistsError(f"{path} is a folder, and a file is to be written; choose another name")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise OutputExistsError(f"{path} exists already; choose another name, or overwrite it with force=True")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for {path.name} does not exist; make it first")


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends well it becomes `path`, otherwise it is gone.

    The temporary name keeps the suffix, because writers choose the format by it. A file that is replaced passes its
    permissions on.
    """
    path = path.resolve()  # through a symbolic link to the file that it names
    refuse_existing(path, force)
    with temporary_beside(path, suffix=path.suffix, private=path.exists()) as temporary:
        with _names_the_output(path):
            yield temporary
        refuse_existing(path, force)
        replace_file(temporary, path)
    sweep(path, path.suffix)


def replace_file(new: Path, old: Path) -> None:
    """Rename `new` to `old`, in one step; a file that is there passes its permissions on."""
    if old.exists():
        new.chmod(stat.S_IMODE(old.stat().st_mode))
    new.replace(old)


@contextmanager
def whole_folder(path: Path, header: str, replaceable: Callable[[Path], Collection[str]]) -> Iterator[Path]:
    """Yield a temporary folder; when the block ends well its files are in the folder `path`, otherwise they are gone.

    Parameters
    ----------
    path : Path
        The folder. If it exists, it and all files that may not be replaced stay as they are.
    header : str
        The file that describes the others; it is replaced last, so that the others are never taken for those of an
        older one.
    replaceable : callable
        Takes a folder that may exist, and returns the names of its files that the new ones replace; raises if the
        folder may not be written to. Called before the work, and again, with the folder locked, before files move.

    Yields
    ------
    Path
        Where to write the files, without folders in between.

    Raises
    ------
    FileExistsError
        If a new file has the name of one that may not be replaced.
    """
    replaceable(path)
    path = path.resolve()  # "." has no name
    with temporary_beside(path, folder=True, private=path.exists()) as temporary:
        with _names_the_output(path):
            yield temporary
        if path.exists():
            with held(path):
                _move_in(temporary, path, header, set(replaceable(path)))
        else:
            temporary.replace(path)
    sweep(path)


def _move_in(temporary: Path, path: Path, header: str, replaced: set[str]) -> None:
    """Move files into a folder in place of others, header last; after an error all are where they were."""
    new = sorted(file.name for file in temporary.iterdir())
    for name in new:
        if name not in replaced and os.path.lexists(path / name):
            raise FileExistsError(
                f"{path / name} is no part of the model that is replaced, and the new one has a file of that name; "
                "move it, or choose another folder"
            )
        like = next((file for file in (path / name, path / header) if file.exists()), None)
        if like is not None:
            (temporary / name).chmod(stat.S_IMODE(like.stat().st_mode))
    retired = temporary / ".replaced"
    retired.mkdir()
    old = [name for name in sorted(replaced - {header}) if os.path.lexists(path / name)]
    moves = [(path / name, retired / name) for name in old]
    moves += [(temporary / name, path / name) for name in sorted(new, key=lambda name: name == header)]
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            source.replace(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            with suppress(OSError):
                target.replace(source)
        raise


@contextmanager
def _names_the_output(path: Path) -> Iterator[None]:
    """Say which output a full disk has stopped: errors of writing to an open file know no name."""
    try:
        yield
    except OSError as error:
        # NumPy reports a short write as an error without a number.
        short = error.errno is None and "requested and" in str(error) and "written" in str(error)
        if short or (error.errno in FULL and error.filename is None):
            what = error.strerror or f"the disk is full, or a limit of file sizes is reached ({error})"
            raise OSError(error.errno or errno.ENOSPC, f"{what}; nothing was written", str(path)) from error
        raise
