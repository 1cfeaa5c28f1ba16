"""The picture of the rooms agrees with the imports, and can be read."""

import runpy
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
imports = cache(ROOMS["imports"])  # reads every file of the package, a second each time


def test_the_picture_is_that_of_the_imports():
    assert ROOMS["PICTURE"].read_text(encoding="utf-8") == ROOMS["draw"](imports()), (
        "the imports between rooms have changed: run python docs/rooms.py, and look at docs/images/rooms.svg"
    )


def test_every_room_has_a_place_and_every_folder_is_a_room():
    rooms = {room for layer in ROOMS["layers"]() for room in layer}
    package = ROOT / "src" / "kernpool"
    there = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(ROOMS["PLACES"]) >= rooms == there - {"__init__", "__main__", "_version"}


def test_only_arrows_that_follow_from_others_are_left_out():
    essential, reachable = ROOMS["essential"], ROOMS["reachable"]
    assert essential({"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}) == [("a", "b"), ("b", "c"), ("c", "d")]
    graph = imports()
    drawn = {room: {other for start, other in essential(graph) if start == room} for room in graph}
    for room in graph:
        assert reachable(drawn, room) == reachable(graph, room)


def test_no_box_is_covered():
    """No box overlaps another one, and arrows end at boxes without running through any."""
    (width, height), row = ROOMS["BOX"], ROOMS["ROW"]
    center = {
        room: (ROOMS["PLACES"][room][0] * ROOMS["WIDTH"] / 100, row * number)
        for number, layer in enumerate(ROOMS["layers"]())
        for room in layer
    }
    for room, (x, y) in center.items():
        assert width / 2 <= x <= ROOMS["WIDTH"] - width / 2
        assert not [other for other, at in center.items() if at[1] == y and 0 < abs(at[0] - x) < width + 10], room
    for start, end in ROOMS["essential"](imports()):
        for (x, y), (to_x, to_y) in pairwise(ROOMS["route"](center[start], center[end])):
            for room, (at_x, at_y) in center.items():
                across = min(x, to_x) < at_x + width / 2 and max(x, to_x) > at_x - width / 2
                along = min(y, to_y) < at_y + height / 2 and max(y, to_y) > at_y - height / 2
                assert not (across and along), f"the arrow from {start} to {end} runs through {room}"


@pytest.mark.parametrize("room", ["algorithms", "pooling"])
def test_imports_within_functions_count(room):
    assert "execution" in imports()[room]
    assert room not in imports()[room]
