"""Places by the sets of classes there: which sets occur, what to call them, and how to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.displays.style import GRAY, mixed_with_white

Array = NDArray[np.float64]
Color = tuple[float, float, float]

NAMED = 6  # so many sets of several classes are told apart; if there are more, they go by their size
EMPTY = "not sure enough of any class"
HATCHES = ("////", "\\\\\\\\", "xxx", "---", "|||", "+++")
ONE, SEVERAL = 0.42, 0.2  # ink of the regions


@dataclass(frozen=True)
class Region:
    """All places of one set, or of sets of one size.

    Parameters
    ----------
    name : str
        For the legend.
    fill : tuple of three float
        Color.
    hatch : str or None
        What tells it apart without colors: lines for several classes, dots for an empty set.
    only : int or None
        Number of the class, of a set of one.
    """

    name: str
    fill: Color
    hatch: str | None
    only: int | None


def regions_of(
    member: NDArray[np.bool_], classes: Sequence[Any], colors: Sequence[Any]
) -> tuple[NDArray[np.intp], list[Region]]:
    """Return the number of the region of each place, and the regions: empty sets first, then by size and class.

    Parameters
    ----------
    member : ndarray of bool, shape (..., c)
        Which classes are in the set of each place.
    classes : sequence of length c
        Their labels.
    colors : sequence
        At least one per class.
    """
    number, kinds = sets_of(member)
    several = [kind for kind in kinds if len(kind) > 1]
    if len(several) <= NAMED:
        return number, [_region(kind, several, classes, colors) for kind in kinds]
    sizes = sorted({len(kind) for kind in several})
    few = [kind for kind in kinds if len(kind) < 2]
    place = [i if len(kind) < 2 else len(few) + sizes.index(len(kind)) for i, kind in enumerate(kinds)]
    regions = [_region(kind, several, classes, colors) for kind in few]
    for i, size in enumerate(sizes):  # the larger a set, the darker
        fill = mixed_with_white(GRAY, 0.15 + 0.45 * i / max(len(sizes) - 1, 1))
        regions.append(Region(f"{size} classes", fill, HATCHES[i % len(HATCHES)], None))
    return np.asarray(place)[number], regions


def sets_of(member: NDArray[np.bool_]) -> tuple[NDArray[np.intp], list[tuple[int, ...]]]:
    """Return the number of the set of each place, and the sets: the empty one first, then by size and class.

    Examples
    --------
    >>> sets_of(np.array([[[True, False], [True, True]], [[False, False], [True, True]]]))
    (array([[1, 2],
           [0, 2]]), [(), (0,), (0, 1)])
    """
    found, at = np.unique(member.reshape(-1, member.shape[-1]), axis=0, return_inverse=True)
    kinds = [tuple(int(c) for c in np.flatnonzero(row)) for row in found]
    order = sorted(range(len(kinds)), key=lambda i: (len(kinds[i]), kinds[i]))
    return np.argsort(order)[at.ravel()].reshape(member.shape[:-1]), [kinds[i] for i in order]


def name_of(kind: Sequence[int], classes: Sequence[Any]) -> str:
    """Say which classes a set holds.

    Examples
    --------
    >>> name_of((0, 2, 3), ["oak", "elm", "ash", "fir"]), name_of((), ["oak"])
    ('oak, ash or fir', 'not sure enough of any class')
    """
    names = [str(classes[c]) for c in kind]
    return EMPTY if not names else names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _region(
    kind: tuple[int, ...], several: list[tuple[int, ...]], classes: Sequence[Any], colors: Sequence[Any]
) -> Region:
    from matplotlib.colors import to_rgb

    name = name_of(kind, classes)
    if not kind:
        return Region(name, (1.0, 1.0, 1.0), "..", None)
    paint = np.mean([to_rgb(colors[c]) for c in kind], axis=0)
    if len(kind) == 1:
        return Region(name, mixed_with_white(tuple(paint), ONE), None, kind[0])
    return Region(name, mixed_with_white(tuple(paint), SEVERAL), HATCHES[several.index(kind) % len(HATCHES)], None)
