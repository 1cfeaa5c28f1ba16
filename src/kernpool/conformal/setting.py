"""What a method of prediction intervals is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.levels import COPIED, FRACTIONS, LONELY, are_copied, lonely_levels
from kernpool.conformal.predicting import predict, predict_without_clusters, predict_without_each
from kernpool.inference.smoother import Places, Smoother

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Origin = Literal["given", "found", "unsearched", "repeated"]


class Bounds(NamedTuple):
    """Prediction intervals at m places, of c outputs.

    Parameters
    ----------
    lower, upper : ndarray of shape (m, c)
        Ends; infinite where nothing is known, never NaN.
    center : ndarray of shape (m, c)
        The prediction; NaN where the window is empty, unless the policy of the model says something.
    """

    lower: Array
    upper: Array
    center: Array


@dataclass(frozen=True, eq=False)
class Calibration:
    """Rows that tell how far outputs are from predictions; only those of positive weight.

    Parameters
    ----------
    places : Places
        Where they are.
    value : ndarray of shape (n, c)
        Their outputs.
    prediction : ndarray of shape (n, c)
        Of training rows without one unit of the row, or without its cluster; of other rows of the fit. NaN where the
        window is empty and the policy of the model is ``"nan"`` or ``"raise"``.
    weight : ndarray of shape (n,)
        Frequencies, in unit rows.
    own : bool
        Whether they are training rows.
    which : ndarray of int, shape (n,), or None
        Which ones; None for other rows.
    group : ndarray of int64, shape (n,), or None
        Number of the cluster of each row.
    shift : ndarray of shape (n,), or None
        Likelihood ratios of the new rows to these.
    place_shift : ndarray of shape (m,), or None
        The same at the places.
    estimated : bool
        Whether likelihood ratios are known to be estimates.
    held_back : bool, default=False
        Whether other rows are training rows that were held back from the fit.
    """

    places: Places
    value: Array
    prediction: Array
    weight: Array
    own: bool
    which: NDArray[np.intp] | None = None
    group: Integers | None = None
    shift: Array | None = None
    place_shift: Array | None = None
    estimated: bool = False
    held_back: bool = False

    @property
    def score(self) -> Array:
        """How far outputs are from predictions, of shape (n, c); plus infinity where there is no prediction."""
        return np.where(np.isnan(self.prediction), np.inf, np.abs(self.value - self.prediction))

    @property
    def rows(self) -> float:
        """Number of unit rows."""
        return float(self.weight.sum())

    @property
    def unit_weight(self) -> Array | None:
        """Frequencies as order statistics take them: None if all are one."""
        return None if np.all(self.weight == 1.0) else self.weight

    @property
    def clusters(self) -> int:
        """Number of clusters, zero if there are none."""
        return 0 if self.group is None else len(np.unique(self.group))


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything a method needs.

    Parameters
    ----------
    smoother : Smoother
        The fit; its recipe says what empty windows become.
    places : Places
        Where intervals are wanted.
    level : Fraction
        Of `kernpool.conformal.ranks.as_level`.
    calibration : Calibration
        Rows that say how wide intervals have to be.
    random : numpy.random.Generator
        For methods that draw.
    bandwidth : {"given", "found", "unsearched", "repeated"}
        How the bandwidth came: as a number, from the rows that calibrate, or from training rows that do not, some of
        which have copies if it is ``"repeated"``.
    ranked : bool, default=False
        Whether columns are compared by their ranks among the training rows, which leaving a row out does not change.
    known : ndarray of shape (n, c), or None
        What `left_out` is, if it has been found before.
    center : ndarray of shape (m, c), or None
        What `prediction` is, if it has been found before: of a fit whose rows are not in memory; `smoother` then has a
        sample of them.
    """

    smoother: Smoother
    places: Places
    level: Fraction
    calibration: Calibration
    random: np.random.Generator = field(repr=False)
    bandwidth: Origin = "given"
    ranked: bool = False
    known: Array | None = field(default=None, repr=False)
    center: Array | None = field(default=None, repr=False)

    @cached_property
    def prediction(self) -> Array:
        """The prediction at the places, of shape (m, c)."""
        return predict(self.smoother, self.places) if self.center is None else self.center

    @cached_property
    def left_out(self) -> Array:
        """Training rows as the others predict them, of shape (n, c): without one unit of the row, or its cluster."""
        if self.known is not None:
            return self.known
        code = self.training_code
        return predict_without_each(self.smoother) if code is None else predict_without_clusters(self.smoother, code)

    @property
    def training_code(self) -> Integers | None:
        """Number of the cluster of each training row, zero for those of weight zero; None if rows are single."""
        calibration = self.calibration
        if calibration.group is None or calibration.which is None:
            return None
        code = np.zeros(len(self.smoother.value), dtype=np.int64)
        code[calibration.which] = calibration.group
        return code

    @cached_property
    def doubt(self) -> str:
        """Why statements are approximate only; empty if they hold."""
        if self.calibration.estimated:
            return "the likelihood ratios are estimates of density_ratio"
        if not (self.calibration.own or self.calibration.held_back):
            return ""
        smoother = self.smoother
        if self.calibration.own and self.calibration.group is None and are_copied(smoother, smoother.value):
            return COPIED
        if self.bandwidth == "found":
            return "the bandwidth was found on the rows that calibrate the interval"
        if self.bandwidth == "repeated":
            return "rows are repeated, and the search for the bandwidth has seen all copies of some"
        if self.ranked:
            return "columns are compared by ranks that count these rows"
        if self.calibration.held_back:
            single = np.all(self.calibration.weight == 1.0)
            return "" if single else "rows stand for several, and are held back with all that they stand for"
        levels = smoother.key_code, self.places.code
        if lonely_levels(*levels, smoother.weight, self.training_code, self.calibration.which):
            return LONELY
        whole = np.all(self.calibration.weight == np.floor(self.calibration.weight))
        return "" if whole else FRACTIONS


Method = Callable[[Setting], Bounds]
Sentence = Callable[[Setting], str]


class MethodRecord(NamedTuple):
    """A method of prediction intervals.

    Parameters
    ----------
    find : callable
        Takes a `Setting`, returns `Bounds`.
    sentence : callable
        Takes a `Setting`, returns what is guaranteed, in one sentence.
    rows : {"any", "own", "other"}
        Which rows may calibrate it: training rows, other rows, or both.
    clusters : bool
        Whether rows may come in clusters.
    shift : bool
        Whether new rows may have likelihood ratios.
    counted : callable, optional
        Takes a `Setting`, returns how many unit rows calibrate; by default all calibration rows.
    unbounded : str
        Why some intervals are infinite, and the remedy, where there are rows enough for the level.
    """

    find: Method
    sentence: Sentence
    rows: Literal["any", "own", "other"] = "any"
    clusters: bool = False
    shift: bool = False
    counted: Callable[[Setting], float] | None = None
    unbounded: str = (
        "too many rows have no other row in their window, or hang on a new one so much that nothing bounds it; use a "
        "larger bandwidth, or a kernel of infinite support"
    )
