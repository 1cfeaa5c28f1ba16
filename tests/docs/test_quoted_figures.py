"""Tables of the guides that quote a page of measurements: every figure in them is that page's."""

import re

from tests.support.blocks import ROOT

DOCS = ROOT / "docs"

# A row of docs/inference.md, and the setting of docs/benchmarks/coverage.md that it is about.
COVERAGE = {
    "peak, bandwidth by leave-one-out": "peak, n = 200",
    "the same, a local quadratic fit": "peak, n = 200, local quadratic",
    'the same, `variance="sandwich"`': "peak, n = 200, sandwich",
    "the same, at twice the bandwidth found, robust": "peak, n = 200, twice the bandwidth found",
    "the same, at twice the bandwidth found, quadratic": "peak, n = 200, twice the bandwidth found, local quadratic",
    "the same, at 2.8 times the bandwidth found, robust": "peak, n = 200, 2.8 times the bandwidth found",
    "the same, at 2.8 times the bandwidth found, quadratic": "peak, n = 200, 2.8 times the bandwidth found, "
    "local quadratic",
    "Student's noise, 5 degrees of freedom": "Student noise, 5 df, n = 200",
    "curve of Calonico, Cattaneo and Farrell, 500 rows": "curve of CCF, n = 500",
    "peak, biweight, h = 0.1": "biweight, h = .1, n = 200",
    "peak, Epanechnikov, h = 0.1": "Epanechnikov, h = .1, n = 200",
    "slope, h = 0.05": "slope, h = .05, n = 200",
    "two levels, lambda = 0.1, h = 0.06": "two levels, lambda = .1, h = .06, n = 200",
    "two columns, 400 rows, bandwidth by leave-one-out": "two columns, n = 400",
    "24 clusters of 10 rows with shocks, h = 0.1": "24 clusters of 10 with a shock, h = .1",
    "the same without shocks": "24 clusters of 10 without a shock, h = .1",
    "60 clusters of 4 rows, close together, with shocks": "60 clusters of 4, close in x, with a shock, h = .1",
}
HALVES = {"n = 100, h = 0.05": "n = 100 and 100 to calibrate with, h = 0.05",
          "n = 500, h = 0.03": "n = 500 and 500 to calibrate with, h = 0.03"}  # fmt: skip
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


def measured(page, keys):
    """Rows of a page of measurements by their first cells."""
    return {tuple(row[:keys]): row for row in table(page, "setting")[0]}


def test_coverage_of_curves():
    found, rows = measured("benchmarks/coverage.md", 1), table("inference-methods.md", "200 rows, one column")[0]
    assert {row[0] for row in rows} == set(COVERAGE)
    for name, runs, single, band, naive in rows:
        setting = COVERAGE[name]
        theirs = found[(setting,)]
        worst = found.get((f"{setting}, naive",)) or found.get((f"{setting}, clusters ignored",))
        assert runs == theirs[1], name
        assert figures(single)[:2] == figures(theirs[2])[:2], name
        assert figures(single)[2:] in ([], figures(theirs[3])[:1]), name
        assert figures(band) == figures(theirs[5])[: len(figures(band))], name
        if naive:
            ours = figures(naive)
            assert ours in ([figures(worst[2])[0]], [figures(worst[2])[0], figures(worst[3])[0]]), name


def test_coverage_of_next_values():
    found = measured("benchmarks/prediction-coverage.md", 2)
    rows, headings = table("prediction-methods.md", "90 percent, n rows")
    assert len(rows) == 3
    for method, *cells in rows:
        for cell, heading in zip(cells, headings[1:], strict=True):
            theirs = found[HALVES[heading], f"{method.strip('`').strip(chr(34))}, calibration rows"]
            assert figures(cell) == [figures(theirs[3])[0], *figures(theirs[4])], (method, heading)


def test_sizes_of_tests():
    theirs = table("benchmarks/test-size.md", "test ")[0]
    ours = table("tests.md", "test ")[0]
    assert len(ours) == len(theirs) == 3
    for (name, *cells), (_, size, _, power) in zip(ours, theirs, strict=True):
        for cell, figure in zip(cells, (size, power), strict=True):
            said = cell.rstrip(" %")
            decimals = len(said.partition(".")[2])
            assert said == f"{float(figure.split('%')[0]):.{decimals}f}", name


def test_a_figure_in_a_sentence_on_next_values():
    words = r'`"jackknife\+"` covered (.*?) of new values \(local linear\) and\s+(.*?) \(local constant\)'
    said = re.search(words, text("prediction-methods.md"))
    found = measured("benchmarks/prediction-coverage.md", 2)
    for degree, words in zip(("linear", "constant"), said.groups(), strict=True):
        mean, error = figures(found[f"n = 500, h by leave-one-out, local {degree}", "jackknife+"][3])
        assert figures(words) == [mean, f"{float(error):.1f}"]


def test_figures_in_sentences_on_real_tables():
    """How many tables, how far from the best peer, of how many peers."""
    words, ours = text("guides/choose-an-estimator.md"), ("stacking", "local linear", "Nadaraya-Watson")
    rows = {row[0]: row for row in table("benchmarks/tables.md", "model | tables")[0]}
    number, said = re.search(r"On (\d+) held-out tables mean R\^2 (.*?)\. On", words, re.DOTALL).groups()
    assert number == rows["stacking"][1]
    assert figures(said) == [rows[name][3].lstrip("+-") for name in ours]
    assert re.findall("below|above", said) == ["below" if float(rows[name][3]) > 0 else "above" for name in ours]
    assert f"the best of {PEERS[len(rows.keys() - set(ours))]} competitors" in said
