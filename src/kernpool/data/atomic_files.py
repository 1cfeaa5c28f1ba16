"""Atomic writing of files, by way of temporary files next to the output; and fingerprints of files."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PIECE, PIECES = 1 << 16, 64  # of a file, for its fingerprint: all of it up to four MiB
FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))


class OutputExistsError(FileExistsError):
    """Error for an output that exists already and may not be overwritten."""


def fingerprint(path: Path) -> dict[str, Any]:
    """Return the length of a file and a hash of sampled blocks, to detect quickly whether the file has changed."""
    # The hash covers the length, both ends and blocks in between.
    # A file that was replaced, truncated, continued or written again is noticed, in milliseconds for any size; a few
    # bytes changed in place in the middle of a large file may not be.
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    last = max(0, size - PIECE)
    with path.open("rb") as file:
        for start in sorted({last * i // (PIECES - 1) for i in range(PIECES)}):
            file.seek(start)
            digest.update(file.read(PIECE))
    return {"bytes": size, "sha256 of pieces": digest.hexdigest()}


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same existing file or folder, even by links or other spellings."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def refuse_existing(path: Path, force: bool) -> None:
    """Raise an error if an output path may not be written to: it exists, or its parent folder does not."""
    # With `force`, an existing path may be overwritten, but no folder by a file. Call this before the long computation.
    if path.is_dir():
        raise OutputExistsError(f"{path} is a folder, and a file is to be written; choose another name")
    if path.exists() and not force:
        raise OutputExistsError(f"{path} exists already; choose another name, or overwrite it with force=True")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for {path.name} does not exist; make it first")


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file; rename this file to `path` if the `with` block succeeds, else remove it."""
    # The file lies next to `path`, and its temporary name keeps the suffix, because writers choose the format by it. A
    # file that is replaced passes its permissions on.
    path = path.resolve()  # through a symbolic link to the file that it names
    refuse_existing(path, force)
    temporary = path.with_name(f".{path.name}.kernpool-{secrets.token_hex(4)}{path.suffix}")
    mode = 0o600 if path.exists() else 0o666  # a private file stays private meanwhile
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        with _names_the_output(path):
            yield temporary
        refuse_existing(path, force)
        replace_file(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def replace_file(new: Path, old: Path) -> None:
    """Replace the file `old` by the file `new` in one step; if `old` exists, its permissions are kept."""
    if old.exists():
        new.chmod(stat.S_IMODE(old.stat().st_mode))
    new.replace(old)


@contextmanager
def _names_the_output(path: Path) -> Iterator[None]:
    """Add the path of the output to errors in the `with` block that name no file, such as a full disk."""
    try:
        yield
    except OSError as error:
        # NumPy reports a short write as an error without a number.
        short = error.errno is None and "requested and" in str(error) and "written" in str(error)
        if short or (error.errno in FULL and error.filename is None):
            what = error.strerror or f"the disk is full, or a limit of file sizes is reached ({error})"
            raise OSError(error.errno or errno.ENOSPC, f"{what}; nothing was written", str(path)) from error
        raise
