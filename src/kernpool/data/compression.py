"""Compressed files, recognised by their first bytes and not by their names, which a pipe has not."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from importlib import import_module

SUFFIXES = ("gz", "bz2", "xz", "zst")
ZSTD = b"\x28\xb5\x2f\xfd"
MAGIC = ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ\x00", lzma.decompress))
ARCHIVE = b"PK\x03\x04"


def decompressed(data: bytes, source: str) -> bytes:
    """Return what a file holds: unpacked if it was compressed by gzip, bzip2, xz or zstd, otherwise as it is.

    Parameters
    ----------
    data : bytes
        All of the file.
    source : str
        Its name, for messages.

    Raises
    ------
    ValueError
        If it is damaged, an archive of files or a spreadsheet.
    ImportError
        If it is compressed by zstd, and nothing that reads it is installed.

    Examples
    --------
    >>> decompressed(gzip.compress(b"x,y"), "table.csv.gz")
    b'x,y'
    """
    if data.startswith(ARCHIVE):
        raise ValueError(
            f"{source} is a zip archive or a spreadsheet, and one table of text is expected; unpack it, or save the "
            "sheet as CSV"
        )
    if data.startswith(ZSTD):
        return _zstd(data, source)
    for magic, unpack in MAGIC:
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(f"{source} is compressed, and truncated or damaged: {error}; copy it again") from None
    return data


def _zstd(data: bytes, source: str) -> bytes:
    try:
        return bytes(import_module("compression.zstd").decompress(data))  # from Python 3.14 on
    except ImportError:
        pass
    except Exception as error:
        raise ValueError(f"{source} is compressed, and truncated or damaged: {error}; copy it again") from None
    try:
        pyarrow = import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            f"{source} is compressed by zstd, which needs pyarrow here; install it with: pip install "
            '"kernpool[arrow]", or unpack it with: zstd -d'
        ) from error
    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
            return bytes(stream.read())
    except (OSError, ValueError) as error:
        raise ValueError(f"{source} is compressed, and truncated or damaged: {error}; copy it again") from None
