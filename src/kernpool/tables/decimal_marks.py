"""Decimal marks and thousands separators: detection of decimal commas and points in a text file.

`1,5` has a decimal comma, `1,234.5` has separated thousands, and `1,234` is ambiguous. Other cells of its column
decide, then other columns of its file. If none does, the program does not guess.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Evidence = Literal["comma", "point", "either", "thousands?", "none"]

POWER = r"(?:[eE][+-]?\d+)?"
THOUSANDS_OF_COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
THOUSANDS_OF_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?")
DECIMAL_COMMA = re.compile(rf"[+-]?(?:\d+,\d*|,\d+){POWER}")
DECIMAL_POINT = re.compile(rf"[+-]?(?:\d+\.\d*|\.\d+){POWER}")


def evidence_of(cell: str) -> Evidence:
    """Return the decimal sign that a text cell suggests for its column: comma, point, ambiguous or none.

    Returns
    -------
    {"comma", "point", "either", "thousands?", "none"}
        ``"either"`` for 1,234 and ``"thousands?"`` for 1.234, which is one thousand in a file of decimal commas.

    Examples
    --------
    >>> [evidence_of(cell) for cell in ("0,5", "1,234.5", "1.234.567", "1,234", "1.234", "12", "x")]
    ['comma', 'point', 'comma', 'either', 'thousands?', 'none', 'none']
    """
    cell = cell.strip()
    if THOUSANDS_OF_COMMAS.fullmatch(cell):
        return "point" if "." in cell or cell.count(",") > 1 else "either"
    if THOUSANDS_OF_POINTS.fullmatch(cell):
        return "comma" if "," in cell or cell.count(".") > 1 else "thousands?"
    if DECIMAL_COMMA.fullmatch(cell):
        return "comma"
    return "point" if DECIMAL_POINT.fullmatch(cell) else "none"


def evidence_in(cells: Iterable[str]) -> tuple[Evidence, str]:
    """Return the decimal sign that the cells of a column suggest, and the cell that suggests it.

    That is the first decisive cell; without one, a cell that remains ambiguous, if any.
    """
    open_question: tuple[Evidence, str] = ("none", "")
    for cell in cells:
        if "," in cell or "." in cell:
            found = evidence_of(cell)
            if found in ("comma", "point"):
                return found, cell
            if open_question[0] == "none" or (open_question[0] == "thousands?" and found == "either"):
                open_question = found, cell
    return open_question


class Decimals:
    """Decimal signs, comma or point, of the columns of a text file.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        Its cells.
    given : {",", "."}, optional
        What the user says that it is, in all columns.
    semicolons : bool, default=False
        Whether semicolons separate the columns, as spreadsheets write where commas are decimal signs: 1.234 may then be
        one thousand even if no cell of the file has a comma.

    Examples
    --------
    >>> Decimals({"x": ["1,5", "2,25"], "n": ["1,234", "5,678"]}).sign("n")
    (',', "column 'n' is read with decimal commas, '1,234' as 1.234, because column 'x' has them")
    """

    def __init__(
        self, columns: Mapping[str, Sequence[str]], given: str | None = None, *, semicolons: bool = False
    ) -> None:
        self._columns, self.given, self.semicolons = columns, given, semicolons
        self._found: dict[str, tuple[Evidence, str]] = {}
        self._signs: dict[str, tuple[str, str]] = {}

    def sign(self, name: str) -> tuple[str, str]:
        """Return the decimal sign of a column, and a note on how its numbers are read, which may be empty.

        Raises
        ------
        ValueError
            If the numbers of the column are ambiguous, and other columns do not decide.
        """
        if name not in self._signs:
            self._signs[name] = (self.given, "") if self.given is not None else self._sign(name)
        return self._signs[name]

    def _sign(self, name: str) -> tuple[str, str]:
        evidence, cell = self._evidence(name)
        if evidence == "comma":
            return ",", "numbers have decimal commas"
        if evidence in ("point", "none"):
            separated = evidence == "point" and any("," in other for other in self._columns[name])
            return ".", "commas in numbers separate thousands" if separated else ""
        others = {other: self._evidence(other)[0] for other in self._columns if other != name}
        commas = [other for other, found in others.items() if found == "comma"]
        points = [other for other, found in others.items() if found == "point"]
        cell = cell.strip()
        if evidence == "thousands?" and not commas:
            if points or not self.semicolons:
                return ".", ""
            if not any(other.strip().isdecimal() for other in self._columns[name]):  # as many decimals in every cell
                return ".", f"column {name!r} is read with decimal points, {cell!r} as {cell}"
        if evidence == "either" and bool(commas) != bool(points):
            if commas:
                read, because = f"with decimal commas, {cell!r} as {cell.replace(',', '.')}", commas[0]
            else:
                read, because = f"with commas between thousands, {cell!r} as {cell.replace(',', '')}", points[0]
            has = "them" if commas else "decimal points"
            return ("," if commas else "."), f"column {name!r} is read {read}, because column {because!r} has {has}"
        one, other = cell.replace(",", "."), re.sub("[.,]", "", cell)
        raise ValueError(
            f"column {name!r} holds {cell!r}, which is {one} or {other}; say --decimal , if commas are decimal signs "
            "in this file, or --decimal . if points are"
        )

    def _evidence(self, name: str) -> tuple[Evidence, str]:
        if name not in self._found:
            self._found[name] = evidence_in(self._columns[name])
        return self._found[name]


def floats_with(cells: Sequence[str], sign: str) -> Array:
    """Convert text cells with a given decimal sign, and thousands separators, to floats; other text becomes NaN.

    Examples
    --------
    >>> floats_with(["1.234,5", "0,25", "7", "1.5"], ","), floats_with(["1,234.5", "1,5"], ".")
    (array([1.2345e+03, 2.5000e-01, 7.0000e+00,        nan]), array([1234.5,    nan]))
    """
    text = "\n".join(cells)
    if sign == "," and text.isascii() and "." not in text and "_" not in text:
        try:
            read = np.array(text.replace(",", ".").split("\n"), dtype=np.float64)
        except ValueError:
            pass
        else:
            if len(read) == len(cells):  # a line end within a cell would make two of it
                return read
    return np.array([_float_with(cell.strip(), sign) for cell in cells], dtype=np.float64)


def _float_with(cell: str, sign: str) -> float:
    grouped, plain = (THOUSANDS_OF_COMMAS, ",") if sign == "." else (THOUSANDS_OF_POINTS, ".")
    if not cell.isascii() or "_" in cell:
        return math.nan
    if grouped.fullmatch(cell):
        cell = cell.replace(plain, "")
    elif plain in cell:
        return math.nan
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return math.nan
