"""Columns on circles, and pairs of columns on the globe, as coordinates whose straight distance is that of the chord.

The difference of 23.9 h and 0.1 h is .2 h, and two places at longitudes of 179 and -179 degrees are neighbours. An
angle becomes a point on a circle, a latitude and a longitude a point on a sphere, and the kernel takes the distance
through it. On a circle of radius one the squared chord of an angle is 2 - 2 cos, so that a Gaussian of it is, up to a
factor that cancels, the density of von Mises with kappa = 1 / h^2 (Mardia and Jupp, "Directional Statistics", Wiley
(2000), section 3.5.4); on a sphere likewise that of von Mises and Fisher. All coordinates of a column share its
bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.columns import is_column, position_of
from kernpool.execution.error_messages import abbreviate

Array = NDArray[np.float64]

EARTH_RADIUS = 6371.0088  # km, the mean radius of the International Union of Geodesy and Geophysics
POLE = 90.0
PERIODS = "a dict from columns to their positive periods, 1e-100 to 1e100, such as {'hour': 24}"


@dataclass(frozen=True)
class Circle:
    """A numeric column that comes round after its period, as a point on a circle of this circumference."""

    columns: tuple[int]  # position among the numeric columns
    period: float  # in units of the column
    size = 2  # coordinates

    def place(self, X: NDArray[Any]) -> Array:
        """Return the coordinates of rows, given all numeric columns, of shape (m, 2)."""
        angle, radius = self._angle(X), self.period / (2.0 * np.pi)
        return radius * np.column_stack([np.cos(angle), np.sin(angle)])

    def tangents(self, X: NDArray[Any]) -> Array:
        """Return the derivatives of the coordinates with respect to the column, of shape (m, 2, 1)."""
        angle = self._angle(X)
        return np.stack([-np.sin(angle), np.cos(angle)], axis=1)[:, :, None]

    def _angle(self, X: NDArray[Any]) -> Array:
        turns = np.mod(X[:, self.columns[0]].astype(np.float64), self.period) / self.period  # equal places, equal bits
        return np.asarray(2.0 * np.pi * np.where(turns < 1.0, turns, 0.0))

    @property
    def turn(self) -> tuple[int, float]:
        """Column that comes round, and its period."""
        return self.columns[0], self.period

    def in_units(self, bandwidth: float, _: NDArray[Any]) -> tuple[float]:
        """Return the bandwidth in units of the column."""
        return (bandwidth,)

    def refuse_outside(self, X: NDArray[Any]) -> None:
        """Accept all rows: every number is an angle."""


@dataclass(frozen=True)
class Globe:
    """Latitude and longitude in degrees, as a point on the Earth taken as a sphere, in km."""

    columns: tuple[int, int]  # positions of latitude and longitude among the numeric columns
    label: str | int = "latitude"  # of this column, in messages
    size = 3  # coordinates

    def place(self, X: NDArray[Any]) -> Array:
        """Return the coordinates of rows, given all numeric columns, of shape (m, 3)."""
        north, east = self._angles(X)
        flat = np.cos(north)
        return EARTH_RADIUS * np.column_stack([flat * np.cos(east), flat * np.sin(east), np.sin(north)])

    def tangents(self, X: NDArray[Any]) -> Array:
        """Return the derivatives of the coordinates with respect to both columns, of shape (m, 3, 2)."""
        north, east = self._angles(X)
        zero = np.zeros(len(X))
        by_north = [-np.sin(north) * np.cos(east), -np.sin(north) * np.sin(east), np.cos(north)]
        by_east = [-np.cos(north) * np.sin(east), np.cos(north) * np.cos(east), zero]
        return np.asarray(EARTH_RADIUS * np.pi / 180.0 * np.array([by_north, by_east]).transpose(2, 1, 0))

    def _angles(self, X: NDArray[Any]) -> tuple[Array, Array]:
        latitude, longitude = (X[:, column].astype(np.float64) for column in self.columns)
        turned = np.mod(longitude, 360.0)  # equal places, equal bits
        # At a pole every longitude is the same place.
        east = np.where((np.abs(latitude) == POLE) | (turned >= 360.0), 0.0, turned)
        return np.radians(latitude), np.radians(east)

    @property
    def turn(self) -> tuple[int, float]:
        """Column that comes round, and its period."""
        return self.columns[1], 360.0

    def in_units(self, bandwidth: float, X: NDArray[Any]) -> tuple[float, float]:
        """Return the bandwidth in degrees of latitude, and of longitude where rows X are farthest from the equator."""
        degrees = float(np.degrees(bandwidth / EARTH_RADIUS))
        smallest = float(np.cos(np.radians(np.abs(X[:, self.columns[0]]).max())))
        return degrees, degrees / smallest if smallest > 1e-6 else np.inf

    def refuse_outside(self, X: NDArray[Any]) -> None:
        """Raise ValueError if a latitude is beyond a pole."""
        latitude = X[:, self.columns[0]]
        (wrong,) = np.nonzero(np.abs(latitude) > POLE)
        if wrong.size:
            raise ValueError(
                f"column {self.label!r} is {latitude[wrong[0]]} in row {wrong[0]} (counted from 0), and geographic "
                "takes it as a latitude, from -90 to 90 degrees; name the columns as geographic=(latitude, longitude), "
                "in degrees"
            )


Closed = Circle | Globe
Cuts = tuple[tuple[int, float, float], ...]  # column, period, and where it is cut open


@dataclass(frozen=True)
class Coordinates:
    """Map from the numeric columns of a table to the columns that are pooled: points on circles and globes."""

    columns: int  # number of numeric columns
    closed: tuple[Closed, ...] = ()  # circles and globes

    @cached_property
    def _parts(self) -> tuple[Closed | int, ...]:
        """Plain columns by their positions, and circles and globes, in the order of their first columns."""
        first: dict[int, Closed] = {min(one.columns): one for one in self.closed}
        held = {column for one in self.closed for column in one.columns}
        return tuple(first.get(a, a) for a in range(self.columns) if a in first or a not in held)

    @property
    def tied(self) -> NDArray[np.intp] | None:
        """Number of the bandwidth of each pooled column; None if each has its own."""
        if not self.closed:
            return None
        sizes = [1 if isinstance(part, int) else part.size for part in self._parts]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def bandwidth_of(self) -> NDArray[np.intp]:
        """Number of the bandwidth of each column of the table."""
        number = np.arange(self.columns)
        for i, part in enumerate(self._parts):
            number[[part] if isinstance(part, int) else list(part.columns)] = i
        return number

    def distinct(self, given: Array) -> Array:
        """Return the distinct bandwidths, given one for each column of the table."""
        return given[[part if isinstance(part, int) else part.columns[0] for part in self._parts]]

    def given(self, bandwidth: Any) -> Any:
        """Return the parameter `bandwidth`, one of each pair of numbers if there are numbers for pairs of columns."""
        if isinstance(bandwidth, str) or np.ndim(bandwidth) != 1 or len(bandwidth) != self.columns:
            return bandwidth  # a name, a number, or an error to be told of
        numbers = np.asarray(bandwidth, dtype=np.float64)
        for one in self.closed:
            pair = numbers[list(one.columns)]
            if not np.all(pair == pair[0]):
                raise ValueError(
                    f"bandwidth must be one number of km for both columns of geographic=, twice, got {pair.tolist()}"
                )
        return self.distinct(numbers) if self.closed else bandwidth

    def pooled(self, given: Array) -> Array:
        """Return one bandwidth for each pooled column, given one for each column of the table."""
        return self.distinct(given)[self.tied] if self.closed else given

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the pooled columns of rows of shape (m, d); the same array if all columns are as they are."""
        if not self.closed:
            return X
        columns = [X[:, [part]] if isinstance(part, int) else part.place(X) for part in self._parts]
        return np.concatenate(columns, axis=1, dtype=np.float64)

    def cuts(self, X: NDArray[Any]) -> Cuts:
        """Return where each column that comes round is farthest from all rows X."""
        turns = (one.turn for one in self.closed)
        return tuple((column, period, _middle_of_gap(X[:, column], period)) for column, period in turns)

    def unrolled(self, X: NDArray[Any], cuts: Cuts) -> NDArray[Any]:
        """Return the columns of rows, with those that come round cut open: within a period."""
        if not cuts:
            return X
        rows = np.array(X, dtype=np.float64)
        for column, period, cut in cuts:
            rows[:, column] = cut + np.mod(rows[:, column] - cut, period)
        return rows

    def in_units(self, bandwidth: Array, X: NDArray[Any]) -> Array:
        """Return one bandwidth for each column of the table, in its units, where rows X are."""
        bandwidth = bandwidth.copy()
        for one in self.closed:
            bandwidth[list(one.columns)] = one.in_units(float(bandwidth[one.columns[0]]), X)
        return bandwidth

    def to_table(self, X: NDArray[Any], slopes: Array) -> Array:
        """Return slopes by pooled columns, of shape (m, ., c), as those by columns of the table, of shape (m, d, c)."""
        if self.closed:
            pooled, slopes, start = slopes, np.empty((len(X), X.shape[1], slopes.shape[2])), 0
            for part in self._parts:
                if isinstance(part, int):
                    slopes[:, part], start = pooled[:, start], start + 1
                    continue
                along = part.tangents(X).transpose(0, 2, 1)
                slopes[:, list(part.columns)] = along @ pooled[:, start : start + part.size]
                start += part.size
        return slopes


def _middle_of_gap(column: NDArray[Any], period: float) -> float:
    """Return the middle of the widest gap between values on a circle, so many periods on that the median stays."""
    numbers = column.astype(np.float64)
    place = np.unique(np.mod(numbers, period))
    gaps = np.diff(place, append=place[0] + period)
    widest = int(np.argmax(gaps))
    cut, median = place[widest] + 0.5 * gaps[widest], np.quantile(numbers, 0.5, method="inverted_cdf")
    return float(cut + period * np.floor((median - cut) / period))


def check_periodic(periodic: Any) -> None:
    """Raise TypeError or ValueError if the parameter `periodic` is invalid for every table."""
    if periodic is None:
        return
    if not isinstance(periodic, Mapping):
        raise TypeError(f"periodic must be None or {PERIODS}, got {abbreviate(periodic)}")
    for column, period in periodic.items():
        number = isinstance(period, int | float | np.integer | np.floating) and not isinstance(period, bool)
        if not is_column(column) or not number or not 1e-100 <= period <= 1e100:
            raise ValueError(f"periodic must be {PERIODS}, got {abbreviate(period)} for {abbreviate(column)}")


def check_geographic(geographic: Any) -> None:
    """Raise ValueError if the parameter `geographic` is invalid for every table."""
    if geographic is None:
        return
    pair = isinstance(geographic, Sequence | np.ndarray) and not isinstance(geographic, str) and len(geographic) == 2
    if not pair or not all(map(is_column, geographic)):
        raise ValueError(
            f"geographic must be None or two columns in degrees, (latitude, longitude), got {abbreviate(geographic)}"
        )


def closed_columns(
    periodic: Any,
    geographic: Any,
    columns: int,
    names: Sequence[Any] | None = None,
    numeric: Sequence[int] | None = None,
) -> tuple[Closed, ...]:
    """Return the circles and the globe that the parameters `periodic` and `geographic` name."""
    numeric = list(range(columns) if numeric is None else numeric)
    seen: set[int] = set()

    def place(argument: str, column: Any) -> int:
        position = position_of(argument, column, columns, names)
        if position not in numeric:
            raise ValueError(f"{argument} names column {column!r}, which holds categories and no numbers; leave it out")
        if position in seen:
            raise ValueError(f"column {column!r} is named twice in periodic= and geographic=; name it once")
        seen.add(position)
        return numeric.index(position)

    found: list[Closed] = []
    for column, period in ({} if periodic is None else periodic).items():
        found.append(Circle((place("periodic", column),), float(period)))
    if geographic is not None:
        latitude, longitude = (place("geographic", column) for column in geographic)
        found.append(Globe((latitude, longitude), geographic[0]))
    return tuple(found)
