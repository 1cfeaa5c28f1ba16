"""The cache of compiled loops on disk, as Numba keeps it, but safe where several processes compile at once.

Numba numbers the files of a function's versions, and an index tells which is whose. Two processes that compile two
versions at once both read the index, take the same number, and the one that writes its file last has its code run as
the other's version from then on, in every process, without an error. Here the name of a file is made of what was
compiled, so that no two versions share one and no index is needed, and what is read has to say that it is what was
asked for. A file ends in a digest of what is before it, which is compared before anything is unpickled: a file that is
empty, cut or damaged is one that is not there, and is written again.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST_SIZE = hashlib.sha256().digest_size


def closed_over(function: Any) -> str:
    """Describe what a function closes over, the same in every process: compiled functions by their names.

    Numba pickles it. A compiled function among it has another number in every process, so that such loops, which were
    written to disk each time, were never found there again: .7 s of every process that planted a tree.

    Examples
    --------
    >>> def power(exponent):
    ...     return lambda x: x**exponent
    >>> closed_over(power(2)), closed_over(closed_over)
    ('[2]', '[]')
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return repr([(x.py_func.__module__, x.py_func.__qualname__) if hasattr(x, "py_func") else x for x in cells])


class NamedFiles(IndexDataCacheFile):
    """Files of compiled versions of a function, named by their keys: types, processor, closure, Numba's version.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = NamedFiles(folder, "loop", "date and size of the source")
    ...     files.save("for float64", "its code")
    ...     files.load("for float64"), files.load("for float32")
    ('its code', None)
    """

    def _name(self, key: Any) -> str:
        what = repr((self._version, self._source_stamp, key)).encode()
        return f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(what).hexdigest()[:32]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        """Keep a version; a disk that is full costs time in later processes, and no answer."""
        with suppress(OSError):
            self._save_data(self._name(key), (key, data))  # type: ignore[no-untyped-call]  # Numba has no types

    def load(self, key: Any) -> Any:
        """Return a version, or None if there is no file of it that is whole."""
        try:
            whole = memoryview(Path(self._cache_path, self._name(key)).read_bytes())
        except OSError:
            return None
        data, digest = whole[:-DIGEST_SIZE], whole[-DIGEST_SIZE:]
        if hashlib.sha256(data).digest() != digest:
            return None
        known, version = pickle.loads(data)
        return version if known == key else None

    def _dump(self, version: Any) -> bytes:
        data: bytes = super()._dump(version)  # type: ignore[no-untyped-call]  # Numba is not typed
        return data + hashlib.sha256(data).digest()


class LoopCache(FunctionCache):
    """Numba's cache of a function, in such files."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # Numba is not typed
        stamp = self._impl.locator.get_source_stamp()
        base = self._impl.filename_base
        # Numba is not typed.
        self._cache_file = NamedFiles(self._cache_path, base, stamp)  # type: ignore[no-untyped-call]

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        function = self._py_func
        parts = function.__code__.co_code, closed_over(function).encode()
        return signature, codegen.magic_tuple(), tuple(hashlib.sha256(part).hexdigest() for part in parts)
