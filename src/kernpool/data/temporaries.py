"""Temporary files and folders next to an output, locked while their process lives.

A killed process cannot remove its temporary files. Its locks end with it, so the next process that writes the same
output can distinguish abandoned files from those in use, and removes them.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked, and nothing is swept
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

MARK = "kernpool-"
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def temporary_beside(path: Path, *, folder: bool = False, suffix: str = "", private: bool = False) -> Iterator[Path]:
    """Yield a new empty file or folder next to `path`, and remove it at the end if it still exists.

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
            lock = locked(temporary)
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
def held(path: Path) -> Iterator[None]:
    """Lock a file or a folder, if possible; wait while another thread or process holds the lock."""
    lock = locked(path, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def locked(path: Path, *, wait: bool = False) -> int | None:
    """Lock a file or a folder.

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
    """Remove temporary files next to `path` of processes that no longer run.

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
                lock = locked(left)
                if lock is not None:
                    _remove(left)
                    os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
