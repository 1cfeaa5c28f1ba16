"""Text tables (CSV, TSV): detection of encoding, compression and separator, and splitting into cells.

**Readers.** pyarrow, if it is installed, reads large files without quotes: it is faster, and splits them as Python's
`csv` does. `csv` reads small files, files with quotes, about which readers differ, and all that pyarrow refuses; its
messages name the line. pandas is not used: it accepts lines that are too short, and where lines are too long it takes
the first column for row names.

**Separator.** `csv.Sniffer` takes letters for separators and guesses where two fit. Here a separator fits if it
splits the header and all of the first lines into the same number of cells, two or more. If several fit, the file is
refused and the error asks for `--sep`.

**Encoding.** Text is decoded by a byte-order mark, as UTF-8, or as what Windows programs write (cp1252, else
latin-1).

**Compression.** Compressed files are recognised by their first bytes and not by their names, which a pipe lacks.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from kernpool.data import MISSING, SMALL, TableError, row_labels
from kernpool.execution.error_messages import abbreviate
from kernpool.tables.decimal_marks import Decimals
from kernpool.tables.table import Table

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
    r"""Decode the bytes of a file as text; return the text, and the encoding if it was only guessed, else None.

    Parameters
    ----------
    data : bytes
        All of it.
    source : str
        Its name, for messages.
    encoding : str, optional
        Name of the encoding in Python; detected if not given.

    Returns
    -------
    text : str
        Without a byte-order mark.
    assumed : str or None
        The encoding, if it was only assumed because no better one was found.

    Raises
    ------
    ValueError
        If the bytes are not valid in the given encoding, or no encoding can be detected.

    Examples
    --------
    >>> decoded(b"\xef\xbb\xbfna\xc3\xafve", "t.csv"), decoded(b"na\xefve", "t.csv")
    (('naïve', None), ('naïve', 'cp1252'))
    """
    if encoding is not None:
        return _decoded_as(data, source, encoding), None
    for mark, name in MARKS:
        if data.startswith(mark):
            return _decoded_as(data, source, name), None
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
                "name the encoding, such as --encoding cp1252, gb18030 or shift_jis; if it is utf-8, correct that line"
            ) from None
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:  # five bytes have no meaning there
        return data.decode("latin-1"), "latin-1"


def _decoded_as(data: bytes, source: str, encoding: str) -> str:
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


CANDIDATES = (",", ";", "\t", "|")
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
OPTIONS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}
SAMPLE, SAMPLE_ROWS = 1 << 16, 200


def as_separator(given: str) -> str:
    r"""Return the separator character that a value of ``--sep`` stands for, such as ``;`` for ``semicolon``.

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
    """Return a `csv` reader over the rows of a text table, each split into a list of cells.

    If the separator is a space, a run of spaces is one separator, as in aligned tables.
    """
    file = io.StringIO(text, newline="")
    if separator == " ":
        return csv.reader((line.strip() for line in file), delimiter=" ", skipinitialspace=True, strict=strict)
    return csv.reader(file, delimiter=separator, strict=strict)


def find_separator(text: str, source: str, usual: str = ",") -> str:
    r"""Detect the column separator of a text table: a comma, semicolon, tab or vertical bar.

    Parameters
    ----------
    text : str
        The file.
    source : str
        Its name, for messages.
    usual : str, default=","
        Separator of the file's suffix, which decides between two if it is a tab.

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
    """Return the number of cells in each of the first rows of a text that is split by the given separator."""
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


READERS = ("pyarrow", "csv")
Progress = Callable[[int, int], Any]
STEP = 1 << 15  # rows between two reports of progress


@dataclass(frozen=True)
class TextFormat:
    """Format of a text table: separator, decimal sign, encoding and markers of missing cells.

    A separator, decimal sign or encoding of None is detected.

    Parameters
    ----------
    separator, decimal, encoding : str, optional
        Of columns, of numbers, of letters.
    blanks : frozenset of str
        Markers of missing cells, in lower case.
    readers : sequence of {"pyarrow", "csv"}, optional
        Which may read it, in turn; by default "csv" alone up to `SMALL` bytes, which it reads before pyarrow is loaded.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    blanks: frozenset[str] = MISSING
    readers: Sequence[str] | None = None


AS_FOUND = TextFormat()


class SplitText(NamedTuple):
    """Cells of a text table, column by column, and the line number of each row."""

    columns: list[Sequence[str]]
    lines: Sequence[int]


def read_text(
    data: bytes, source: str, format: str, form: TextFormat = AS_FOUND, progress: Progress | None = None
) -> Table:
    r"""Read a table from the bytes of a text file; parameters and errors as in `read_table`.

    Examples
    --------
    >>> table = read_text(b"x;y\n1,5;2\n", "t.csv", "csv")
    >>> table.numbers(["x", "y"]), table.notes[0]
    (array([[1.5, 2. ]]), 'columns are separated by semicolons; --sep says otherwise')
    """
    usual = "\t" if format == "tsv" else ","
    try:
        text, assumed = decoded(data, source, form.encoding)
        separator, text = _declared_separator(text)
        found = form.separator or separator or find_separator(text, source, usual)
    except ValueError as error:
        raise TableError(str(error)) from None
    notes = [] if assumed is None else [f"text is read as {assumed}, as it is no UTF-8; --encoding says otherwise"]
    if form.separator is None and separator is None and found != usual and found in text:
        notes.append(f"columns are separated by {WORDS[found]}; --sep says otherwise")
    names, begin = _header(text, found, source)
    cut = None
    for reader in form.readers or (READERS if len(data) > SMALL else ("csv",)):
        cut = READ[reader](text, found, names, source, begin, progress)
        if cut is not None:
            break
    assert cut is not None
    if not len(cut.lines):
        raise TableError(f"{source} has a header and no rows")
    columns = dict(zip(names, cut.columns, strict=True))
    unnamed = [i for i, name in enumerate(names) if not name]
    if unnamed:
        which = ", ".join(str(i + 1) for i in unnamed)
        are = f"column {which} has no name and is" if len(unnamed) == 1 else f"columns {which} have no names and are"
        notes.append(f"{are} left out; a name in the first line lets one be used")
        columns.pop("", None)
    decimals = _decimals(text, found, columns, form.decimal)
    labels = row_labels(names)
    return Table(source, columns, len(cut.lines), cut.lines, decimals, form.blanks, notes, row_labels=labels)


def _declared_separator(text: str) -> tuple[str | None, str]:
    """Return the separator that a first line such as ``sep=;`` declares, or None, and the text without that line.

    Spreadsheets write such lines.
    """
    if text[:4].lower() != "sep=" or len(text) < 6:
        return None, text
    line, end, rest = text.partition("\n")
    separator = line[4:].strip("\r")
    return (
        (separator, "\n" + rest) if end and len(separator) == 1 else (None, text)
    )  # a line that is blank still counts


def _header(text: str, separator: str, source: str) -> tuple[list[str], int]:
    """Return the column names of a text table, '' for unnamed columns, and the number of lines before the first row."""
    reader = split_rows(text, separator, strict=True)
    try:
        header: list[str] = next((row for row in reader if row), [])
    except csv.Error as error:
        raise TableError(f"{source}: after line {reader.line_num}: {error}; expected a line of names") from None
    if not header:
        raise TableError(f"{source} is empty; the first line must name the columns")
    names = [name.strip() for name in header]
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise TableError(
            f"{source}: two columns have the same name, {twice!r}; rename one of them in the first line. Columns are "
            f"{', '.join(map(repr, names))}"
        )
    return names, reader.line_num


def _decimals(text: str, separator: str, columns: dict[str, Any], given: str | None) -> Decimals | None:
    """Return the decimal signs of the columns of a text table; None if all of them are points.

    That is known if no cell has a comma, semicolons do not separate columns, and no sign is given.
    """
    semicolons = separator == ";"
    if given is None and ("," not in text if separator != "," else '"' not in text) and not semicolons:
        return None
    if given is None and not any("," in cell for cells in columns.values() for cell in cells) and not semicolons:
        return None
    return Decimals(columns, given, semicolons=semicolons)


def _with_csv(text: str, separator: str, names: list[str], source: str, _: int, progress: Progress | None) -> SplitText:
    reader = split_rows(text, separator, strict=True)
    length, total = len(names), text.count("\n") + 1
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        next(row for row in reader if row)
        after = reader.line_num
        for row in reader:
            line, after = after + 1, reader.line_num  # where a row begins: quoted cells may have several lines
            if not row:  # a blank line
                continue
            if len(row) != length:
                raise TableError(_ragged(source, line, row, names, first=not rows))
            rows.append(row)
            lines.append(line)
            if progress is not None and not len(rows) % STEP:
                progress(reader.line_num, total)
    except csv.Error as error:
        raise TableError(
            f"{source}: after line {reader.line_num}: {error}; expected text with quotes in pairs, or say --sep"
        ) from None
    return SplitText([list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in names], lines)


def _ragged(source: str, line: int, row: list[str], names: list[str], *, first: bool) -> str:
    message = f"{source}: line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has {len(names)}"
    if first and len(row) == len(names) + 1 and not row[-1].strip():
        return f"{message}; if all lines but the first end with a separator, write one at the end of the first, too"
    if first and len(row) == len(names) + 1:
        return f"{message}; if the first cells are names of rows, as R writes them, give them a name in the first line"
    return f"{message}; correct that line, or say --sep if columns are separated by something else"


def _with_pyarrow(
    text: str, separator: str, names: list[str], _: str, begin: int, __: Progress | None
) -> SplitText | None:
    """Split a text table into cells with pyarrow; return None if the `csv` module has to be used instead.

    That is where pyarrow is not installed, or may not give the same result.
    """
    if '"' in text or separator == " " or "\0" in text:
        return None
    try:
        arrow_csv, arrow = import_module("pyarrow.csv"), import_module("pyarrow")
    except ImportError:
        return None
    numbered = [str(i) for i in range(len(names))]
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=arrow_csv.ReadOptions(column_names=numbered, skip_rows=begin),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbered, arrow.string()), strings_can_be_null=False
            ),
        )
    except (arrow.ArrowException, ValueError, UnicodeError):  # lines of several lengths, no rows
        return None
    return SplitText([ArrowText(column) for column in table.itercolumns()], Lines(text, begin, table.num_rows))


READ = {"csv": _with_csv, "pyarrow": _with_pyarrow}


class ArrowText(Sequence[str]):
    """Text cells of one column, held by pyarrow: a sequence of strings, with a fast conversion to floats."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells
        self._listed: list[str] | None = None

    @property
    def _strings(self) -> list[str]:
        if self._listed is None:
            self._listed = self._cells.to_pylist()
        return self._listed

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        return self._cells[int(row)].as_py() if not isinstance(row, slice) else self._strings[row]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)

    def take(self, rows: NDArray[np.intp]) -> ArrowText:
        """Return the cells of the rows with these indices, as `ArrowText`."""
        return ArrowText(self._cells.take(import_module("pyarrow").array(rows)))

    def floats(self) -> NDArray[np.float64] | None:
        """Return the cells as finite floats; None if any cell is not a finite number."""
        arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
        try:
            read: NDArray[np.float64] = compute.cast(self._cells, arrow.float64()).to_numpy()
        except arrow.ArrowException:
            return None
        return read if np.isfinite(read).all() else None


class Lines(Sequence[int]):
    """Line numbers of the rows of a text file without quotes, computed when a message needs one."""

    def __init__(self, text: str, begin: int, rows: int) -> None:
        self._text, self._begin, self._rows = text, begin, rows

    def __getitem__(self, row: Any) -> Any:
        lines = (number for number, line in enumerate(io.StringIO(self._text, newline=""), 1) if line.strip("\r\n"))
        places = [number for number in lines if number > self._begin]
        return places[row]

    def __len__(self) -> int:
        return self._rows


SUFFIXES = ("gz", "bz2", "xz", "zst")
ZSTD = b"\x28\xb5\x2f\xfd"
MAGIC = ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ\x00", lzma.decompress))
ARCHIVE = b"PK\x03\x04"


def decompressed(data: bytes, source: str) -> bytes:
    """Return the content of a file, decompressed if it is gzip, bzip2, xz or zstd.

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
