"""Sentences of guides that quote a page of measurements: every figure in them is that page's."""

import re

from tests.support.blocks import ROOT

DOCS = ROOT / "docs"

PEERS = {9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


def text(page):
    return (DOCS / page).read_text(encoding="utf-8")


def table(page, first):
    """The rows of the table whose first heading begins so, each a list of cells, and its other headings."""
    lines = iter(text(page).splitlines())
    heading = next(line for line in lines if line.startswith(f"| {first}"))
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[1:], [cell.strip() for cell in heading.strip("|").split("|")]


def figures(cell):
    return re.findall(r"\d+\.\d+", cell)


def row(first):
    """The figures of the row of docs/benchmarks/coverage.md that begins so."""
    lines = text("benchmarks/coverage.md").splitlines()
    return figures(next(line for line in lines if line.startswith(f"| {first} |")).partition(f"{first} |")[2])


def test_coverage_of_curves():
    said = re.search(r"\*\*Measured\*\*.*", text("methods.md"))[0]
    peak = row("peak, n = 200")
    assert figures(said) == [*peak[:2], *peak[3:5], *peak[6:]]


def test_coverage_of_next_values():
    thirds = re.findall(r'`"(\w+)"` (?:covers )?(\d+), (\d+) and (\d+)', text("methods.md"))
    assert [name for name, *_ in thirds] == ["split", "cqr", "adaptive"]
    for name, *said in thirds:
        theirs = row(f"n = 500 and 500 to calibrate with, h = 0.03 | {name}, calibration rows")
        assert said == [f"{float(figure):.0f}" for figure in theirs[2:5]], name


def test_sizes_of_tests():
    names = "`significance_test`, residual", "`significance_test`, gradient", "`specification_test`"
    assert figures(re.search("At 5 %, n = 100.*", text("tests.md"))[0]) == [row(name)[0] for name in names]


def test_a_figure_in_a_sentence_on_next_values():
    words = r'`"jackknife\+"` covered (.*?) of new values \(local linear\) and\s+(.*?) \(local constant\)'
    said = re.search(words, text("methods.md"))
    for degree, words in zip(("linear", "constant"), said.groups(), strict=True):
        mean, error = row(f"n = 500, h by leave-one-out, local {degree} | jackknife+")[:2]
        assert figures(words) == [mean, f"{float(error):.1f}"]


def test_figures_in_sentences_on_real_tables():
    """How many tables, how far from the best peer, of how many peers."""
    words, ours = text("guides/choose-an-estimator.md"), ("stacking", "local linear", "Nadaraya-Watson")
    rows = {row[0]: row for row in table("benchmarks/tables.md", "model | rank")[0]}
    number, said = re.search(r"On (\d+) held-out tables mean R\^2 (.*?)\. On", words, re.DOTALL).groups()
    assert f"## Numbers: {number} held-out" in text("benchmarks/tables.md")
    assert figures(said) == [rows[name][2].lstrip("+-") for name in ours]
    assert re.findall("below|above", said) == ["below" if float(rows[name][2]) > 0 else "above" for name in ours]
    assert f"the best of {PEERS[len(rows.keys() - set(ours))]} competitors" in said
