"""Options of columns: parameters of estimators by which numeric columns are pooled otherwise than as they are.

Each is one class: the name of its parameter, its check, the columns that are pooled instead, which share one bandwidth,
their derivatives, and its words in messages. `OPTIONS` lists them.

The difference of 23.9 h and 0.1 h is .2 h, and two places at longitudes of 179 and -179 degrees are neighbours. An
angle becomes a point on a circle, a latitude and a longitude a point on a sphere, and the kernel takes the distance
through it. On a circle of radius one the squared chord of an angle is 2 - 2 cos, so that a Gaussian of it is, up to a
factor that cancels, the density of von Mises with kappa = 1 / h^2 (Mardia and Jupp, "Directional Statistics", Wiley
(2000), section 3.5.4); on a sphere likewise that of von Mises and Fisher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernpool._arrays import AnyArray, Array
from kernpool.data.columns import is_column
from kernpool.execution import abbreviate

EARTH_RADIUS = 6371.0088  # km, the mean radius of the International Union of Geodesy and Geophysics
POLE = 90.0
PERIODS = "a dict from columns to their positive periods, 1e-100 to 1e100, such as {'hour': 24}"


def within_period(column: AnyArray, period: float) -> Array:
    """Return numbers less whole periods, from 0 to below the period, equal to the bit for the same place.

    Examples
    --------
    >>> within_period(np.array([8.3, 32.3, -15.7, 24.0]), 24.0)
    array([8.3, 8.3, 8.3, 0. ])
    """
    # 32.3 - 24 is 8.299999999999997 in float64, and rows of one place would be two to windows of the nearest rows. So
    # numbers are rounded to fifteen decimal digits. Those before the point are counted in threes, so that most rows of
    # a table have the same number of decimals: twelve for hours and degrees, nine for days since 1970.
    number = column.astype(np.float64)
    thousands = np.ceil(np.log10(np.maximum(np.abs(number), 2.0 * period)) / 3.0)
    unit = 10.0 ** (15.0 - 3.0 * thousands)
    place = np.rint(np.mod(number, period) * unit) / unit
    return np.where(place < period, place, 0.0)


@dataclass(frozen=True)
class PooledColumn:
    """A numeric column that is pooled as it is; the options of columns are its subclasses.

    `columns` are the positions of one column, or of several with one bandwidth, among the numeric columns of the table.
    """

    columns: tuple[int, ...]

    option: ClassVar[str]  # name of the parameter
    size: ClassVar[int] = 1  # number of columns that are pooled instead
    unit: ClassVar[str] = ""  # of the bandwidth, if it is not that of the columns
    is_drawn: ClassVar[bool] = False  # by the explorer

    @classmethod
    def check(cls, given: Any) -> None:
        """Raise TypeError or ValueError if a value of the parameter is invalid for every table."""

    @classmethod
    def read(cls, given: Any, place: Callable[[Any], int]) -> Iterator[PooledColumn]:
        """Yield what a value of the parameter asks for; `place` returns the position of a column by its name."""
        yield cls((place(given),))

    @property
    def turn(self) -> tuple[int, float] | None:
        """Column that comes round, and its period, if there is one."""
        return None

    def place(self, X: AnyArray) -> AnyArray:
        """Return the pooled columns of rows, of shape (m, size), given all numeric columns."""
        return X[:, list(self.columns)]

    def derivatives(self, X: AnyArray) -> Array:
        """Return the derivatives of the pooled columns with respect to the columns, of shape (m, size, columns)."""
        return np.ones((len(X), 1, 1))

    def in_units(self, bandwidth: float, _: AnyArray) -> tuple[float, ...]:
        """Return the bandwidth in the units of the columns, where rows X are."""
        return (bandwidth,)

    def refuse_outside(self, X: AnyArray) -> None:
        """Raise ValueError for numbers that the option cannot take."""


@dataclass(frozen=True)
class Circle(PooledColumn):
    """A numeric column that comes round after its period, as a point on a circle of this circumference."""

    period: float  # in units of the column

    option, size, is_drawn = "periodic", 2, True

    @classmethod
    def check(cls, given: Any) -> None:
        """Raise TypeError or ValueError unless all periods are positive numbers."""
        if not isinstance(given, Mapping):
            raise TypeError(f"periodic must be None or {PERIODS}, got {abbreviate(given)}")
        for column, period in given.items():
            number = isinstance(period, int | float | np.integer | np.floating) and not isinstance(period, bool)
            if not is_column(column) or not number or not 1e-100 <= period <= 1e100:
                raise ValueError(f"periodic must be {PERIODS}, got {abbreviate(period)} for {abbreviate(column)}")

    @classmethod
    def read(cls, given: Any, place: Callable[[Any], int]) -> Iterator[Circle]:
        """Yield a circle for each column."""
        for column, period in given.items():
            yield cls((place(column),), float(period))

    @property
    def turn(self) -> tuple[int, float]:
        """Column that comes round, and its period."""
        return self.columns[0], self.period

    def place(self, X: AnyArray) -> Array:
        """Return points on the circle, of shape (m, 2)."""
        angle, radius = self._angle(X), self.period / (2.0 * np.pi)
        return radius * np.column_stack([np.cos(angle), np.sin(angle)])

    def derivatives(self, X: AnyArray) -> Array:
        """Return the derivatives of the points with respect to the column, of shape (m, 2, 1)."""
        angle = self._angle(X)
        return np.stack([-np.sin(angle), np.cos(angle)], axis=1)[:, :, None]

    def _angle(self, X: AnyArray) -> Array:
        return 2.0 * np.pi * (within_period(X[:, self.columns[0]], self.period) / self.period)


@dataclass(frozen=True)
class Globe(PooledColumn):
    """Latitude and longitude in degrees, as a point on the Earth taken as a sphere, in km."""

    label: str | int = "latitude"  # of this column, in messages

    option, size, unit = "geographic", 3, " of km"

    @classmethod
    def check(cls, given: Any) -> None:
        """Raise ValueError unless the value names two columns."""
        pair = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) == 2
        if not pair or not all(map(is_column, given)):
            raise ValueError(
                f"geographic must be None or two columns in degrees, (latitude, longitude), got {abbreviate(given)}"
            )

    @classmethod
    def read(cls, given: Any, place: Callable[[Any], int]) -> Iterator[Globe]:
        """Yield the globe of latitude and longitude."""
        latitude, longitude = given
        yield cls((place(latitude), place(longitude)), latitude)

    @property
    def turn(self) -> tuple[int, float]:
        """The longitude, and its period."""
        return self.columns[1], 360.0

    def place(self, X: AnyArray) -> Array:
        """Return points on the sphere, of shape (m, 3)."""
        north, east = self._angles(X)
        flat = np.cos(north)
        return EARTH_RADIUS * np.column_stack([flat * np.cos(east), flat * np.sin(east), np.sin(north)])

    def derivatives(self, X: AnyArray) -> Array:
        """Return the derivatives of the points with respect to both columns, of shape (m, 3, 2)."""
        north, east = self._angles(X)
        zero = np.zeros(len(X))
        by_north = [-np.sin(north) * np.cos(east), -np.sin(north) * np.sin(east), np.cos(north)]
        by_east = [-np.cos(north) * np.sin(east), np.cos(north) * np.cos(east), zero]
        return EARTH_RADIUS * np.pi / 180.0 * np.array([by_north, by_east]).transpose(2, 1, 0)

    def _angles(self, X: AnyArray) -> tuple[Array, Array]:
        latitude, longitude = (X[:, column].astype(np.float64) for column in self.columns)
        # At a pole every longitude is the same place.
        east = np.where(np.abs(latitude) == POLE, 0.0, within_period(longitude, 360.0))
        return np.radians(latitude), np.radians(east)

    def in_units(self, bandwidth: float, X: AnyArray) -> tuple[float, float]:
        """Return the bandwidth in degrees of latitude, and of longitude where rows X are farthest from the equator."""
        degrees = float(np.degrees(bandwidth / EARTH_RADIUS))
        smallest = float(np.cos(np.radians(np.abs(X[:, self.columns[0]]).max())))
        return degrees, degrees / smallest if smallest > 1e-6 else np.inf

    def refuse_outside(self, X: AnyArray) -> None:
        """Raise ValueError if a latitude is beyond a pole."""
        latitude = X[:, self.columns[0]]
        (wrong,) = np.nonzero(np.abs(latitude) > POLE)
        if wrong.size:
            raise ValueError(
                f"column {self.label!r} is {latitude[wrong[0]]} in row {wrong[0]} (counted from 0), and geographic "
                "takes it as a latitude, from -90 to 90 degrees; name the columns as geographic=(latitude, longitude), "
                "in degrees"
            )


OPTIONS: tuple[type[PooledColumn], ...] = (Circle, Globe)


def parameters_of(options: Iterable[PooledColumn]) -> str:
    """Return the names of the parameters of options of columns, as part of a sentence; empty if there are none."""
    return " and ".join(dict.fromkeys(f"{one.option}=" for one in options))
