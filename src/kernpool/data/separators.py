r"""What separates the columns of a text file.

`csv.Sniffer` takes letters for separators and guesses where two fit. Here a separator fits if it cuts the header and
all of the first lines into the same number of cells, two or more, and what is not decided by that is refused.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from kernpool.execution.messages import abbreviate

CANDIDATES = (",", ";", "\t", "|")
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
OPTIONS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}
SAMPLE, SAMPLE_ROWS = 1 << 16, 200


def as_separator(given: str) -> str:
    r"""Return the character that an option names.

    Examples
    --------
    >>> as_separator("semicolon"), as_separator("tab"), as_separator("^")
    (';', '\t', '^')
    """
    separator = NAMED.get(given.lower(), given)
    if len(separator) != 1 or separator in '"\r\n' or separator.isalnum():
        raise ValueError(f"--sep must be one character, or one of {', '.join(NAMED)}; got {abbreviate(given)}")
    return separator


def split_rows(text: str, separator: str, strict: bool = False) -> Any:
    """Return a reader of rows; spaces separate in runs, as in tables that are aligned for people."""
    file = io.StringIO(text, newline="")
    if separator == " ":
        return csv.reader((line.strip() for line in file), delimiter=" ", skipinitialspace=True, strict=strict)
    return csv.reader(file, delimiter=separator, strict=strict)


def find_separator(text: str, source: str, usual: str = ",") -> str:
    r"""Return what separates the columns.

    Parameters
    ----------
    text : str
        The file.
    source : str
        Its name, for messages.
    usual : str, default=","
        What its suffix stands for, which decides between two if it is a tab.

    Raises
    ------
    ValueError
        If two or more separators fit, or columns seem to be aligned by spaces.

    Examples
    --------
    >>> find_separator("x;y\n1,5;2,5\n", "t.csv"), find_separator("x\n1,5\n", "t.csv")
    (';', ';')
    """
    whole = len(text) <= SAMPLE
    sample = text if whole else text[: text.rfind("\n", 0, SAMPLE) + 1] or text[:SAMPLE]
    widths = {separator: _widths(sample, separator, whole) for separator in CANDIDATES}
    fitting = [s for s, found in widths.items() if found and found[0] > 1 and len(set(found)) == 1]
    if len(fitting) == 1 or (usual == "\t" and usual in fitting):
        return fitting[0] if len(fitting) == 1 else usual
    if fitting:
        ways = " or ".join(f"{WORDS[s]} ({widths[s][0]} columns)" for s in fitting)
        raise ValueError(
            f"{source}: columns may be separated by {ways}; say which, such as --sep {OPTIONS[fitting[0]]}"
        )
    splitting = [s for s, found in widths.items() if found and found[0] > 1]
    if splitting:  # and some line differs, which the reader names
        return usual if usual in splitting else max(splitting, key=lambda s: widths[s][0])
    if _aligned(sample):
        raise ValueError(f"{source}: columns seem to be separated by spaces; if so, say --sep space")
    return next((s for s, found in widths.items() if set(found) <= {1}), usual)


def _widths(sample: str, separator: str, whole: bool) -> list[int]:
    """Return the number of cells of the first rows."""
    try:
        found = [len(row) for row, _ in zip(split_rows(sample, separator), range(SAMPLE_ROWS), strict=False) if row]
    except csv.Error:
        return []
    # The sample may end within a quoted cell of several lines.
    return found if whole or len(found) < 2 else found[:-1]


def _aligned(sample: str) -> bool:
    rows = [line.split() for line in sample.splitlines()[:SAMPLE_ROWS] if line.strip()]
    width = len(rows[-1]) if rows else 0
    numbers = [cell for row in rows[1:] for cell in row if re.fullmatch(r"[-+]?\d*[.,]?\d+([eE][-+]?\d+)?", cell)]
    return (
        width > 1
        and len(rows) > 1
        and all(len(row) == width for row in rows[1:])
        and len(rows[0]) in (width, width - 1)
        and 2 * len(numbers) > width * (len(rows) - 1)
    )
