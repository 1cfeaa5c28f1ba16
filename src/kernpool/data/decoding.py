"""Bytes of a file as text: by a byte-order mark, as UTF-8, or as what Windows programs write."""

from __future__ import annotations

import codecs
import re

# Those of UTF-32 begin with those of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# How a letter beyond ASCII looks in UTF-8. Accented letters before a space that does not break look less so in cp1252.
SEQUENCE = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def decoded(data: bytes, source: str, encoding: str | None = None) -> tuple[str, str | None]:
    r"""Return a file as text.

    Parameters
    ----------
    data : bytes
        All of it.
    source : str
        Its name, for messages.
    encoding : str, optional
        What it is encoded in, as Python knows it; found if not given.

    Returns
    -------
    text : str
        Without a byte-order mark.
    assumed : str or None
        The encoding, where nothing but the lack of a better one speaks for it.

    Raises
    ------
    ValueError
        If the bytes are not what they were said to be, or there is no telling what they are.

    Examples
    --------
    >>> decoded(b"\xef\xbb\xbfna\xc3\xafve", "t.csv"), decoded(b"na\xefve", "t.csv")
    (('naïve', None), ('naïve', 'cp1252'))
    """
    if encoding is not None:
        return _as_told(data, source, encoding), None
    for mark, name in MARKS:
        if data.startswith(mark):
            return _as_told(data, source, name), None
    if b"\0" in data[: 1 << 16]:
        raise ValueError(
            f"{source} is no text, or text of two bytes per character without a mark; if it is, say --encoding "
            "utf-16-le (or utf-16-be)"
        )
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        if SEQUENCE.search(data):
            line = data.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"{source}: line {line} has a byte that is no UTF-8, and other lines have letters that look like it; "
                "say which it is, such as --encoding cp1252, gb18030 or shift_jis; of utf-8, correct that line"
            ) from None
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:  # five bytes have no meaning there
        return data.decode("latin-1"), "latin-1"


def _as_told(data: bytes, source: str, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except LookupError:
        raise ValueError(
            f"--encoding {encoding} is unknown; known are utf-8, latin-1, cp1252, utf-16, gb18030, ..."
        ) from None
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = data.count(b"\n", 0, at) + 1
        raise ValueError(f"{source}: line {line} is not in {encoding} ({error}); say another --encoding") from None
    return text.removeprefix("\ufeff")
