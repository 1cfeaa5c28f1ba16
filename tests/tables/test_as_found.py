"""Tables as people have them: each is read right by every reader, or one line says what to do."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernpool.data import TableError
from kernpool.tables import text_files as texts
from kernpool.tables.file_formats import read_table
from kernpool.tables.text_files import TextFormat
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

READERS = ["csv", pytest.param("pyarrow", marks=pytest.mark.skipif(not find_spec("pyarrow"), reason="needs 'arrow'"))]
XY = {"x": [1.5, 2.0, -3.25], "y": [1.0, 4.0, 9.0]}
PLAIN = "x,y\n1.5,1\n2,4\n-3.25,9\n"
LOCAL = "x;y\n1,5;1\n2,0;4\n-3,25;9\n"

# name of the file, its bytes, options, and its columns
RIGHT = {
    "commas": ("t.csv", PLAIN, {}, XY),
    "semicolons": ("t.csv", PLAIN.replace(",", ";"), {}, XY),
    "tabs": ("t.csv", PLAIN.replace(",", "\t"), {}, XY),
    "tabs by suffix": ("t.tsv", PLAIN.replace(",", "\t"), {}, XY),
    "tabs and commas by suffix": ("t.tsv", "x\ty,z\n1\t2,3\n4\t5,6\n", {}, {"x": [1.0, 4.0], "y,z": [2.3, 5.6]}),
    "bars": ("t.txt", PLAIN.replace(",", "|"), {}, XY),
    "spaces, told": ("t.txt", "x  y\n1.5  1\n 2   4\n-3.25 9 \n", {"separator": " "}, XY),
    "another separator, told": ("t.csv", PLAIN.replace(",", "^"), {"separator": "^"}, XY),
    "a stated separator": ("t.csv", "sep=|\r\n" + PLAIN.replace(",", "|"), {}, XY),
    "a mark of UTF-8": ("t.csv", b"\xef\xbb\xbf" + PLAIN.encode(), {}, XY),
    "UTF-16": ("t.csv", PLAIN.encode("utf-16"), {}, XY),
    "UTF-16 without a mark, told": ("t.csv", PLAIN.encode("utf-16-le"), {"encoding": "utf-16-le"}, XY),
    "latin-1": ("t.csv", PLAIN.replace("x", "größe").encode("latin-1"), {}, {"größe": XY["x"], "y": XY["y"]}),
    "cp1252 and spaces that do not break": (
        "t.csv", PLAIN.replace("x", "à\xa0x").encode("cp1252"), {}, {"à\xa0x": XY["x"], "y": XY["y"]}
    ),
    "latin-1, told": (
        "t.csv", PLAIN.replace("x", "größe").encode("latin-1"), {"encoding": "latin-1"}, {"größe": XY["x"]}
    ),
    "Chinese, told": ("t.csv", PLAIN.replace("x", "价").encode("gb18030"), {"encoding": "gb18030"}, {"价": XY["x"]}),
    "UTF-8 letters": ("t.csv", PLAIN.replace("x", "größe"), {}, {"größe": XY["x"]}),
    "lines of Windows": ("t.csv", PLAIN.replace("\n", "\r\n"), {}, XY),
    "lines of old Macs": ("t.csv", PLAIN.replace("\n", "\r"), {}, XY),
    "no last line end": ("t.csv", PLAIN.rstrip(), {}, XY),
    "blank lines": ("t.csv", "\n" + PLAIN.replace("\n", "\n\n"), {}, XY),
    "spaces that do not break around cells": ("t.csv", PLAIN.replace(",", "\u00a0,\u00a0"), {}, XY),
    "spaces around cells": ("t.csv", PLAIN.replace(",", " , "), {}, XY),
    "decimal commas": ("t.csv", LOCAL, {}, XY),
    "decimal commas and tabs": ("t.csv", LOCAL.replace(";", "\t"), {}, XY),
    "decimal commas in quotes": ("t.csv", 'x,y\n"1,5",1\n"2,0",4\n"-3,25",9\n', {}, XY),
    "decimal commas, told": ("t.csv", "x;y\n1,234;1\n2,500;2\n", {"decimal": ","}, {"x": [1.234, 2.5]}),
    "thousands, told": ("t.csv", "x;y\n1,234;1\n2,500;2\n", {"decimal": "."}, {"x": [1234.0, 2500.0]}),
    "thousands by other cells": ("t.csv", 'x,y\n"1,234",1\n"2,500.5",2\n', {}, {"x": [1234.0, 2500.5]}),
    "decimal commas by another column": ("t.csv", "x;y\n1,234;0,5\n2,500;2\n", {}, {"x": [1.234, 2.5]}),
    "points between thousands": ("t.csv", "x;y\n1.234,5;1\n2.500;2\n", {}, {"x": [1234.5, 2500.0]}),
    "thousands after a decimal point": ("t.csv", 'x,y\n999.5,1\n"1,234.5",2\n', {}, {"x": [999.5, 1234.5]}),
    "1,234 after a decimal point": ("t.csv", 'x,y\n0.5,1\n"1,234",2\n', {}, {"x": [0.5, 1234.0]}),
    "three decimals and semicolons": ("t.csv", "x;y\n1.234;1\n2.500;2\n", {}, {"x": [1.234, 2.5]}),
    "points and semicolons": ("t.csv", "x;y\n1.234;0.5\n2;2\n", {}, {"x": [1.234, 2.0]}),
    "thousands by points, told": ("t.csv", "x;y\n1.234;1\n2;2\n", {"decimal": ","}, {"x": [1234.0, 2.0]}),
    "one column of decimal commas": ("t.csv", "x\n0,5\n1,5\n", {}, {"x": [0.5, 1.5]}),
    "powers": ("t.csv", "x,y\n1e3,1\n-2.5E-2,2\n+7,3\n", {}, {"x": [1e3, -0.025, 7.0]}),
    "digits to the last": ("t.csv", "x\n0.1\n1e-320\n1.7976931348e308\n", {}, {"x": [0.1, 1e-320, 1.7976931348e308]}),
    "gzip": ("t.csv.gz", gzip.compress(PLAIN.encode()), {}, XY),
    "gzip without its suffix": ("t.csv", gzip.compress(PLAIN.encode()), {}, XY),
    "bzip2": ("t.csv.bz2", bz2.compress(PLAIN.encode()), {}, XY),
    "xz": ("t.tsv.xz", lzma.compress(PLAIN.replace(",", "\t").encode()), {}, XY),
    "quoted numbers": ("t.csv", 'x,y\n"1.5","1"\n"2","4"\n"-3.25","9"\n', {}, XY),
    "quoted line ends": ("t.csv", 'x,note,y\n1.5,"one\ntwo",1\n2,"a ""b"", c",4\n-3.25,,9\n', {}, XY),
    "a column without a name": ("t.csv", ",x,y\n0,1.5,1\n1,2,4\n2,-3.25,9\n", {}, XY),
    "a separator at the end of lines": ("t.csv", "x,y,\n1.5,1,\n2,4,\n-3.25,9,\n", {}, XY),
    "one row": ("t.csv", "x,y\n1.5,2\n", {}, {"x": [1.5], "y": [2.0]}),
    "one column": ("t.csv", "x\n1.5\n2\n", {}, {"x": [1.5, 2.0]}),
    "text beside numbers": ("t.csv", "name,x\nOslo; Norway,1\nBergen,2\n", {}, {"x": [1.0, 2.0]}),
}  # fmt: skip

# bytes, and what the one line says
REFUSED = {
    "empty": ("", "t.csv is empty; the first line must name the columns"),
    "a header alone": ("x,y\n", "has a header and no rows"),
    "names twice": ("x,y,x\n1,2,3\n", "two columns have the same name, 'x'; rename one of them in the first line"),
    "no header": ("1,2\n3,4\n", "the first line has to name the columns"),
    "a short line": ("x,y\n1,2\n3\n", "line 3 has 1 cell, the header has 2; correct that line"),
    "a long line": ("x,y\n1,2\n3,4,5\n", "line 3 has 3 cells"),
    "a separator at the end of data lines": ("x,y\n1,2,\n3,4,\n", "write one at the end of the first, too"),
    "a short line after a stated separator": ("sep=;\nx;y\n1;2\n3\n", "line 4 has 1 cell, the header has 2"),
    "a remark above the names": ("# made by hand\nx,y\n1,2\n", "delete the lines above that of the names"),
    "a title above the names": ("a table\nx;y\n1;2\n", "delete the lines above that of the names"),
    "names of rows": ("x,y\nfirst,1,2\nsecond,3,4\n", "if the first cells are names of rows, as R writes them"),
    "two separators": ("a,b;c\n1,2;3\n", "separated by commas (2 columns) or semicolons (2 columns); say which"),
    "spaces": ("x y\n1 2\n3 4\n", "separated by spaces; if so, say --sep space"),
    "1,234": ("x;y\n1,234;2\n", "holds '1,234', which is 1.234 or 1234; say --decimal ,"),
    "1,234 in quotes": ('x,y\n"1,234",2\n', "holds '1,234', which is 1.234 or 1234; say --decimal ,"),
    "1.234 in a file of decimal commas": ("x;y\n1.234;0,5\n", "holds '1.234', which is 1.234 or 1234"),
    "1.234 and 999 between semicolons": ("x;y\n1.234;2\n12.500;3\n999;4\n", "holds '1.234', which is 1.234 or 1234"),
    "a line end between decimal commas": (
        'x;y\n1,5;2\n"2,5\n3,5";3\n4,0;4\n', r"row 1 (line 3), column 'x' holds '2,5\n3,5', not a finite number"
    ),
    "huge integers beside text with commas": ('x,y,n\n9007199254740993,1,"a, b"\n', "9007199254740993"),
    "both signs": ("x;y\n1,5;2\n2.5;3\n", "row 1 (line 3), column 'x' holds '2.5', not a finite number"),
    "a missing cell": ("x,y\n1,2\nNA,3\n", "row 1 (line 3), column 'x' holds 'NA'"),
    "an empty cell": ("x,y\n1,2\n,3\n", "row 1 (line 3), column 'x' is empty"),
    "text among numbers": ("x,y\n1,2\nmany,3\n", "row 1 (line 3), column 'x' holds 'many', not a finite number"),
    "infinity": ("x,y\n1,2\ninf,3\n", "holds 'inf', not a finite number"),
    "an open quote": ('x,y\n"1,2\n', "after line"),
    "text after a quote": ('x,y\n"1"0,2\n', "after line 2"),
    "half UTF-8": ("x,näme\n1,2\n".encode() + b"3,\xe4\n", "line 3 has a byte that is no UTF-8"),
    "two bytes a letter": ("x,y\n1,2\n".encode("utf-16-le"), "say --encoding utf-16-le"),
    "a spreadsheet": (b"PK\x03\x04\x14\x00", "is a zip archive or a spreadsheet"),
    "half a gzip": (gzip.compress(PLAIN.encode())[:-9], "is compressed, and truncated or damaged"),
    "huge integers between commas": ('x,y,n\n"9,007,199,254,740,993",1,"a, b"\n', "9007199254740993"),
    "an underscore": ("x,y\n1,2\n1_0,3\n", "row 1 (line 3), column 'x' holds '1_0', not a finite number"),
    "another script": ("x,y\n1,2\n\u0661,3\n", "row 1 (line 3), column 'x' holds '\u0661', not a finite number"),
    "beyond all numbers": ("x,y\n1,2\n2,1e999\n", "row 1 (line 3), column 'y' holds '1e999'"),
    "no column": ("b,c\n1,2\n", "no column 'x'; columns are 'b', 'c'"),
    "huge integers": ("x,y\n9007199254740993,1\n", "9007199254740993"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", RIGHT)
def test_tables_that_are_read(case, reader, tmp_path):
    name, content, options, columns = RIGHT[case]
    form = TextFormat(**options, readers=(reader, "csv"))
    table = read_table(written(tmp_path, name, content), form=form)
    np.testing.assert_array_equal(table.numbers(columns), np.transpose(list(columns.values())))
    told = {"separator": "--sep", "decimal": "--decimal", "encoding": "--encoding"}
    assert not [note for note in table.notes for option in options if told[option] in note]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_are_refused(case, reader, tmp_path):
    content, message = REFUSED[case]
    with pytest.raises(TableError) as error:
        read_table(written(tmp_path, "t.csv", content), form=TextFormat(readers=(reader, "csv"))).numbers(["x", "y"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_assumed_is_said(tmp_path):
    """Nothing of a plain file; of others each assumption, with the option that says otherwise."""
    assert read_table(written(tmp_path, "t.csv", PLAIN)).notes == []
    table = read_table(written(tmp_path, "t.csv", LOCAL.replace("x", "größe").encode("latin-1")))
    table.numbers(["größe"])
    three = read_table(written(tmp_path, "s.csv", "x;y\n1.234;1\n2.500;2\n"))
    three.numbers(["x"])
    assert three.notes[1:] == ["column 'x' is read with decimal points, '1.234' as 1.234; --decimal , says otherwise"]
    assert table.notes == [
        "text is read as cp1252, as it is no UTF-8; --encoding says otherwise",
        "columns are separated by semicolons; --sep says otherwise",
        "numbers have decimal commas; --decimal . says otherwise",
    ]


@pytest.mark.skipif(not find_spec("pyarrow"), reason="needs 'arrow'")
def test_pyarrow_reads_what_it_can(monkeypatch):
    """So that the table of cases above is about two readers."""
    monkeypatch.setitem(texts.READ, "csv", None)
    large = PLAIN + PLAIN.partition("\n")[2] * (texts.SMALL // 8)
    for text, readers in ((PLAIN, ("pyarrow", "csv")), (large, None)):
        assert texts.read_text(text.encode(), "t.csv", "csv", TextFormat(readers=readers)).numbers(["x"])[0, 0] == 1.5


THREADS = """
import os, sys
from kernpool.data.chunks.sources import open_chunks
from kernpool.tables.file_formats import read_table
def threads():
    return len(os.listdir("/proc/self/task"))
read_table("t.csv").numbers(["x", "y"])
assert "pyarrow" not in sys.modules
import pyarrow.parquet
before = threads()
read_table("t.parquet").numbers(["x", "y"])
[*open_chunks("t.parquet", target="y")]
assert threads() == before, (threads(), before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system does not list threads")
def test_small_files_start_no_threads(tmp_path):
    """Threads of pyarrow that still ran when a process ended made it abort, in some of a hundred runs under load."""
    write_both(tmp_path)
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def write_both(folder):
    written(folder, "t.csv", PLAIN)
    write_parquet("t.parquet", {name: list(cells) for name, cells in XY.items()})


def test_zstd(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    with arrow.CompressedOutputStream("t.csv.zst", "zstd") as file:
        file.write(PLAIN.encode())
    np.testing.assert_array_equal(read_table("t.csv.zst").numbers(["x"])[:, 0], XY["x"])
    whole = (tmp_path / "t.csv.zst").read_bytes()
    (tmp_path / "t.csv.zst").write_bytes(whole[:-5])
    with pytest.raises(TableError, match="truncated or damaged"):
        read_table("t.csv.zst")


def test_one_clear_line_through_the_command(tmp_path):
    """A command tells the same, on one line, and writes nothing."""
    written(tmp_path, "t.csv", "x;y\n1,234;2\n2,345;3\n")
    done = kernpool("fit", "t.csv", "--target", "y", "--model", "m")
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert not (tmp_path / "m").exists()
    done = kernpool("fit", "t.csv", "--target", "y", "--json")
    assert json.loads(done.stderr) == {
        "error": "t.csv: column 'x' holds '1,234', which is 1.234 or 1234; say --decimal , if commas are decimal signs "
        "in this file, or --decimal . if points are",
        "command": "fit",
        "exit_code": 1,
    }
    assert done.stdout == b""
    done = kernpool("fit", "t.csv", "--target", "y", "--bandwidth", "1", "--decimal", ".", "--json")
    assert json.loads(done.stdout)["rows"] == 2


def outcome(text, reader):
    """All that a reader makes of a text: cells and lines, or the message."""
    try:
        table = texts.read_text(text.encode(), "t.csv", "csv", TextFormat(readers=(reader, "csv")))
    except TableError as error:
        return str(error)
    cells = {name: list(column) for name, column in table.columns.items()}
    lines = [table.lines[row] for row in range(table.rows)]
    numbers = {}
    for name in table.names:
        try:
            numbers[name] = table.numbers([name])[:, 0].tolist()
        except TableError as error:
            numbers[name] = str(error)
    return cells, lines, table.notes, numbers


@pytest.mark.skipif(not find_spec("pyarrow"), reason="needs 'arrow'")
@settings(max_examples=300, deadline=None)
@given(st.text('01.,;\t\n\r "-eax|N\u00e9\u2028', max_size=40) | st.text(max_size=20))
@example("x\ry\r1\r\r\n2")
@example("x,y\n1,2\n  \n")
@example("x\n+1\n1_0\n\u0661\n1d\n0x1\n")
def test_readers_agree_on_any_text(text):
    if "\0" not in text:
        assert outcome(text, "pyarrow") == outcome(text, "csv")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1)), min_size=2, max_size=6),
    st.sampled_from([";", "\t", "|", ","]),
    st.sampled_from([".", ","]),
    st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_numbers_come_back_however_they_are_written(rows, separator, decimal, encoding, end):
    """To the last bit, with nothing told."""
    quote = '"' if separator == "," else ""
    written = [[f"{quote}{format(x, '.17f').replace('.', decimal)}{quote}" for x in row] for row in rows]
    data = end.join(separator.join(row) for row in [["größe", "y"], *written]).encode(encoding)
    expected = [[float(format(x, ".17f")) for x in row] for row in rows]
    found = texts.read_text(data, "t.csv", "csv").numbers(["größe", "y"])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_million_rows(decimal, reader, tmp_path):
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(1_000_000, 3)).round(6)
    text = "\n".join(";".join(map(repr, row)) for row in numbers.tolist()).replace(".", decimal)
    written(tmp_path, "t.csv", "a;b;y\n" + text + "\n")
    table = read_table("t.csv", form=TextFormat(readers=(reader, "csv")))
    np.testing.assert_array_equal(table.numbers(["a", "b", "y"]), numbers)
