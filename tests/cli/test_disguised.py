"""Columns of text that people mean as dates, and cells that cannot be read."""

import json

import pytest

from kernpool.data.dates import looks_like_date
from tests.support.commands import kernpool, process

DATES = [
    "01 Jan 2020", "31-Jan-2020", "31-Jan-20", "Jan 31, 2020", "January 2020", "31. Januar 2020", "2020-01", "2020/12",
    "01/2020", "2020Q1", "2020-Q1", "2020-W01", "2020\u5e741\u670831\u65e5", "2020\u5e741\u6708",
]  # fmt: skip
NEITHER = ["10.0.0.1", "1/3", "18-25", "a01f-1", "2020", "may", "route 2020", "1.5", "2020-99", "12 a", "0x1f"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_dates_in_disguise():
    assert [cell for cell in DATES if not looks_like_date(cell)] == []


def test_what_is_no_date():
    assert [cell for cell in NEITHER if looks_like_date(cell)] == []


def refusal(tmp_path, text, *more):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    done = kernpool("fit", "t.csv", "--target", "y", "--json", *more)
    assert done.returncode == 1
    assert done.stdout == b""
    return json.loads(done.stderr)["error"]  # one line


def test_dates_among_which_some_cells_are_text(tmp_path):
    """They were levels, one for each day, without a word."""
    text = "day,y\n" + "".join(f"{f'2020-01-{i:02d}' if i % 3 else 'closed'},{i}\n" for i in range(10, 24))
    assert "column 'day' holds '2020-01-10': a date; say --dates day" in refusal(tmp_path, text)
    assert "column 'day' holds 'closed', which is no date" in refusal(tmp_path, text, "--dates")


@pytest.mark.parametrize("place", [0, 1])
def test_numbers_whose_squares_overflow(place, tmp_path):
    """The column is named, and NumPy warns of nothing."""
    rows = [(i, f"{i + 1}e300") if place else (f"{i + 1}e300", i) for i in range(9)]
    error = refusal(tmp_path, "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    assert f"row 0, column '{'xy'[place]}' holds '1e300', beyond 1e+150 in magnitude" in error


def test_a_separator_that_is_not_looked_for(tmp_path):
    assert refusal(tmp_path, "x^y\n1^2\n2^3\n").endswith("columns are 'x^y'; if '^' separates columns, say --sep '^'")
    assert refusal(tmp_path, "x\n1\n2\n").endswith("columns are 'x'")


def test_letters_of_east_asia(tmp_path):
    """They are not called Windows letters alone."""
    (tmp_path / "t.csv").write_bytes("\u4ef7\u683c,\u9762\u79ef,y\n1,2,3\n2,3,4\n".encode("gb18030"))
    done = kernpool("fit", "t.csv", "--target", "y")
    assert b"such as --encoding cp1252, gb18030 or shift_jis" in done.stderr
    assert kernpool("fit", "t.csv", "--target", "y", "--encoding", "gb18030", "--bandwidth", "1,1").returncode == 0


def test_columns_are_called_by_their_names(tmp_path):
    """In a warning of an estimator that was fitted to an array, and where rows to predict overflow."""
    (tmp_path / "t.csv").write_text("size,x,y\n" + "".join(f"3,{i},{i * i}\n" for i in range(9)))
    done = process("fit", "t.csv", "--target", "y", "--model", "m", "--quiet")  # here, warnings are errors
    assert done.returncode == 0
    assert done.stderr.startswith(b"kernpool fit: warning: column(s) 'size' do not vary")
    assert done.stderr.count(b"\n") == 1
    (tmp_path / "q.csv").write_text("size,x\n3,1e300\n")
    done = kernpool("predict", "m", "q.csv")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"row 0, column 'x' holds '1e300', beyond 1e+150" in done.stderr
