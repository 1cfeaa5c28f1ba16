"""Atomic writing of files and folders, by way of locked temporary files next to the output; and hashes of files.

Files and folders are written whole or not at all, and never replace others without `force`. A killed process cannot
remove its temporary files. Its locks end with it, so the next process that writes the same output can distinguish
abandoned files from those in use, and removes them.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked, and nothing is swept
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

MARK = "kernpool-"
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


PIECE, PIECES = 1 << 16, 64  # of a file, for its fingerprint: all of it up to four MiB
FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))


class OutputExistsError(FileExistsError):
    """Error for an output that exists already and may not be overwritten."""


def sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file as hexadecimal digits, without holding the whole file in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """Return the length of a file and a hash of sampled blocks, to detect quickly whether the file has changed.

    The hash covers the length, both ends and blocks in between.

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
    """Return whether two paths lead to the same existing file or folder, even by links or other spellings."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def refuse_existing(path: Path, force: bool, *, folder: bool = False) -> None:
    """Raise an error if an output path may not be written to: it exists, or its parent folder does not.

    With `force`, an existing path may be overwritten, but no folder by a file. An empty folder counts as free if a
    folder is to be written. Call this before the long computation.
    """
    if path.is_dir() and not folder:
        raise OutputExistsError(f"{path} is a folder, and a file is to be written; choose another name")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise OutputExistsError(f"{path} exists already; choose another name, or overwrite it with force=True")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for {path.name} does not exist; make it first")


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file; rename this file to `path` if the `with` block succeeds, else remove it.

    The file lies next to `path`, and its temporary name keeps the suffix, because writers choose the format by it. A
    file that is replaced passes its permissions on.
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
    """Replace the file `old` by the file `new` in one step; if `old` exists, its permissions are kept."""
    if old.exists():
        new.chmod(stat.S_IMODE(old.stat().st_mode))
    new.replace(old)


@contextmanager
def whole_folder(path: Path, header: str, replaceable: Callable[[Path], Collection[str]]) -> Iterator[Path]:
    """Yield a temporary folder; move its files into the folder `path` if the `with` block succeeds, else remove them.

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
            with hold_lock(path):
                _move_in(temporary, path, header, set(replaceable(path)))
        else:
            temporary.replace(path)
    sweep(path)


def _move_in(temporary: Path, path: Path, header: str, replaced: set[str]) -> None:
    """Move the files of a temporary folder into another folder, replacing old files; after an error, undo all moves.

    The header moves last.
    """
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


@contextmanager
def temporary_beside(path: Path, *, folder: bool = False, suffix: str = "", private: bool = False) -> Iterator[Path]:
    """Yield a new, empty temporary file or folder next to `path`; remove it after the `with` block if it still exists.

    Parameters
    ----------
    path : Path
        The output.
    folder : bool, default=False
        Whether it is a folder.
    suffix : str
        End of its name.
    private : bool, default=False
        Whether only the user may read it; otherwise the system gives it the permissions of any new file.

    Yields
    ------
    Path
        Hidden, and locked.
    """
    while True:
        temporary = path.with_name(f".{path.name}.{MARK}{secrets.token_hex(4)}{suffix}")
        try:
            if folder:
                temporary.mkdir(0o700 if private else 0o777)
            else:
                os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))
            lock = acquire_lock(temporary)
        except FileExistsError:
            continue
        except BlockingIOError:  # another process is sweeping, and took it for an abandoned one
            continue
        if temporary.exists():
            break
        if lock is not None:
            os.close(lock)
    try:
        yield temporary
    finally:
        _remove(temporary)
        if lock is not None:
            os.close(lock)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder during the `with` block, if possible.

    Wait while another thread or process holds it.
    """
    lock = acquire_lock(path, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def acquire_lock(path: Path, *, wait: bool = False) -> int | None:
    """Lock a file or a folder and return the descriptor that holds the lock, or None if it cannot be locked.

    Parameters
    ----------
    path : Path
        No symbolic link.
    wait : bool, default=False
        Whether to wait for another process that has locked it.

    Returns
    -------
    int or None
        A descriptor, whose closing, or whose process's end, ends the lock; None if it cannot be locked.

    Raises
    ------
    BlockingIOError
        If another process has locked it, unless `wait`.
    """
    if fcntl is None:
        return None
    try:
        lock = os.open(path, FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(lock)
        raise
    except OSError:  # a file system without locks
        os.close(lock)
        return None
    return lock


def sweep(path: Path, suffix: str = "") -> None:
    """Remove the temporary files and folders that ended processes have left behind next to an output.

    Parameters
    ----------
    path : Path
        An output.
    suffix : str
        As in `temporary_beside`.
    """
    pattern = re.compile(re.escape(f".{path.name}.{MARK}") + "[a-z0-9_]{8}" + re.escape(suffix))
    with suppress(OSError):  # a folder that can be written to and not read
        for left in [left for left in path.parent.iterdir() if pattern.fullmatch(left.name)]:
            with suppress(BlockingIOError):
                lock = acquire_lock(left)
                if lock is not None:
                    _remove(left)
                    os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
