"""Files and folders that are written whole or not at all, never over others without `force`, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
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
    with temporary_beside(path, suffix=path.suffix) as temporary:
        with _names_the_output(path):
            yield temporary
        temporary.chmod(0o666 & ~_umask())  # the temporary one is private; an output is an ordinary file
        refuse_existing(path, force)
        temporary.replace(path)
    sweep(path, path.suffix)


@contextmanager
def whole_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; when the block ends well it becomes `path`, otherwise it is gone."""
    path = path.resolve()  # "." has no name
    refuse_existing(path, force, folder=True)
    with temporary_beside(path, folder=True) as temporary:
        with _names_the_output(path):
            yield temporary
        temporary.chmod(0o777 & ~_umask())
        refuse_existing(path, force, folder=True)
        if path.exists():
            with temporary_beside(path, folder=True) as retired, held(path):
                path.replace(retired)  # onto an empty folder: one atomic step
                try:
                    temporary.replace(path)
                except BaseException:
                    with suppress(OSError):
                        retired.replace(path)
                    raise
        else:
            temporary.replace(path)
    sweep(path)


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
