"""The picture of the subpackages agrees with the imports, and can be read."""

import runpy
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUBPACKAGES = runpy.run_path(str(ROOT / "docs" / "subpackages.py"))
imports = cache(SUBPACKAGES["imports"])  # reads every file of the package, a second each time


def test_the_picture_is_that_of_the_imports():
    assert SUBPACKAGES["PICTURE"].read_text(encoding="utf-8") == SUBPACKAGES["draw"](imports()), (
        "the imports between subpackages have changed: run docs/subpackages.py, and look at its picture"
    )


def test_the_table_is_that_of_the_docstrings():
    page = SUBPACKAGES["PAGE"].read_text(encoding="utf-8")
    assert page == SUBPACKAGES["with_table"](page), "a docstring of a subpackage has changed: run docs/subpackages.py"


def test_every_subpackage_has_a_place_and_every_folder_is_one():
    subpackages = {subpackage for layer in SUBPACKAGES["layers"]() for subpackage in layer}
    package = ROOT / "src" / "kernpool"
    there = {path.stem for path in package.glob("[!_]*") if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(SUBPACKAGES["PLACES"]) >= subpackages == there


def test_only_arrows_that_follow_from_others_are_left_out():
    essential, reachable = SUBPACKAGES["essential"], SUBPACKAGES["reachable"]
    assert essential({"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}) == [("a", "b"), ("b", "c"), ("c", "d")]
    graph = imports()
    drawn = {subpackage: {other for start, other in essential(graph) if start == subpackage} for subpackage in graph}
    for subpackage in graph:
        assert reachable(drawn, subpackage) == reachable(graph, subpackage)


def test_no_box_is_covered():
    """No box overlaps another one, and arrows end at boxes without running through any."""
    (width, height), row = SUBPACKAGES["BOX"], SUBPACKAGES["ROW"]
    center = {
        subpackage: (SUBPACKAGES["PLACES"][subpackage][0] * SUBPACKAGES["WIDTH"] / 100, row * number)
        for number, layer in enumerate(SUBPACKAGES["layers"]())
        for subpackage in layer
    }
    for subpackage, (x, y) in center.items():
        assert width / 2 <= x <= SUBPACKAGES["WIDTH"] - width / 2
        assert not [other for other, at in center.items() if at[1] == y and 0 < abs(at[0] - x) < width + 10], subpackage
    for start, end in SUBPACKAGES["essential"](imports()):
        for (x, y), (to_x, to_y) in pairwise(SUBPACKAGES["route"](center[start], center[end])):
            for subpackage, (at_x, at_y) in center.items():
                across = min(x, to_x) < at_x + width / 2 and max(x, to_x) > at_x - width / 2
                along = min(y, to_y) < at_y + height / 2 and max(y, to_y) > at_y - height / 2
                assert not (across and along), f"the arrow from {start} to {end} runs through {subpackage}"


@pytest.mark.parametrize("subpackage", ["algorithms", "pooling"])
def test_imports_within_functions_count(subpackage):
    assert "execution" in imports()[subpackage]
    assert subpackage not in imports()[subpackage]
