"""Tables of calls side by side: each row runs, and what it says of the numbers is true.

Beside a page of `docs/coming-from` is a file of names. Its rows are expressions over those: the first code of
the cell *here*, and that of *checked against*, or without one that of *there*. The last cell says *same* or *close* and
to what precision, *differ*, or *not compared*.
"""

import re
import runpy
from contextlib import nullcontext
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import ExtrapolationWarning
from tests.support.blocks import ROOT, cells

FOLDER = ROOT / "docs" / "coming-from"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")
NEEDS = {"statsmodels": "statsmodels", "torch": "torch"}
DIFFERENT = 1e-6  # two answers that agree to this are not called different


def code(cell):
    """The first code of a cell, or an empty string."""
    found = re.search(r"`([^`]+)`", cell)
    return found[1] if found else ""


def value(expression, names):
    found = eval(expression, names)
    return np.asarray(found.detach() if hasattr(found, "detach") else found, dtype=float)


def names_of(page):
    return runpy.run_path(str(page.with_name(f"{page.stem.replace('-', '_')}_names.py")))


def check(row, names):
    """Run a row, and hold it to its word; what it says of the numbers is returned."""
    claim = row["same numbers?"]
    with pytest.warns(ExtrapolationWarning) if "ExtrapolationWarning" in claim else nullcontext():
        here = value(code(row["here"]), names)
    kind = claim.split(":")[0].partition(" to ")[0]
    assert here.size
    assert np.isfinite(here).all()
    if kind in ("not compared", "not compared here"):
        assert claim.partition(": ")[2], "a reason has to be given"
        assert not row.get("checked against")
        return "not compared"
    theirs = value(code(row["checked against"] if "checked against" in row else row["there"]), names)
    assert here.shape == theirs.shape
    size = np.abs(theirs).max()
    if kind in ("same", "close"):
        precision = float(code(claim.partition(" to ")[2]))
        assert kind == "close" or precision <= 1e-6, "what is the same agrees to six digits"
        np.testing.assert_allclose(here, theirs, rtol=precision, atol=precision * size)
        return kind
    assert kind == "differ", f"neither same, close, differ nor not compared: {claim}"
    assert claim.partition(": ")[2], "a reason has to be given"
    assert not np.allclose(here, theirs, rtol=DIFFERENT, atol=DIFFERENT * size), "they are the same"
    return kind


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # a row asks far away, where answers differ
@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")  # statsmodels, about random numbers it does not use
def test_the_rows_are_true(page):
    package = NEEDS.get(page.stem)
    if package and not find_spec(package):
        pytest.skip(f"the page is about {package}, which is not installed")
    names, said = names_of(page), []
    for row in (row for row in cells(page) if "same numbers?" in row):
        try:
            said.append(check(row, names))
        except Exception as error:
            error.add_note(f"{page.name}: {row}")
            raise
    assert len(said) >= 10
    assert sum(kind != "not compared" for kind in said) >= len(said) / 2
    assert "differ" in said


def test_every_page_is_in_the_index():
    listed = set(re.findall(r"\]\(([\w-]+)\.md\)", (FOLDER / "index.md").read_text(encoding="utf-8")))
    assert listed == {page.stem for page in PAGES}
    assert len(PAGES) == 7


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # queries beyond a tiny table
def test_the_session_runs(page):
    """The right column, from top to bottom; names of kinds and classes alone are no calls."""
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'").use("agg")
    package = NEEDS.get(page.stem)
    if package and not find_spec(package):
        pytest.skip(f"the page is about {package}, which is not installed")
    names = names_of(page)
    codes = [one for row in cells(page) for one in re.findall(r"`([^`]+)`", row.get("in kernpool", ""))]
    calls = [one for one in codes if re.match(r"from|[\w, ]+ = \S|\w.*\)$", one)]
    assert len(calls) >= 7
    for call in calls:
        exec(call, names)
