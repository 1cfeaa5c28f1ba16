"""Sets of classes: samples, kinds of sets, and how often they hold the next class; beside MAPIE's where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from coverage_settings import SMALL, Bar
from monte_carlo import Outcome

from kernpool import NadarayaWatsonClassifier

LEVEL = 0.9
NOMINAL: Bar = (0.885, 0.915)
FEWEST: Bar = (0.885, 1.0)
COUNTS = (75, 45, 30)  # fresh rows of each class: as many as their probabilities say
PROBABILITY = np.array([0.5, 0.3, 0.2])
CENTERS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, np.sqrt(3.0)]])


@dataclass(frozen=True)
class SetKind:
    """How sets are asked for.

    Parameters
    ----------
    method : str
    by_class : bool
    calibrated : bool
        Whether rows that were not fitted are passed.
    peer : str
        Score of MAPIE, whose sets these are; "" for ours.
    last : bool or str
        Its `include_last_label`.
    target, each : (float, float) or None
        Of coverage, of all rows and of each class.
    beside : str
        The kind that ours must not be larger than.
    """

    method: str = ""
    by_class: bool = False
    calibrated: bool = False
    peer: str = ""
    last: bool | str = True
    bar: Bar = None
    each: Bar = None
    beside: str = ""

    @property
    def title(self) -> str:
        if self.peer:
            return f"MAPIE, {self.peer}" + (", randomised" if self.last == "randomized" else "")
        parts = [self.method, "calibration rows" * self.calibrated, "by class" * self.by_class]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class SetSetting:
    """Rows to fit and to calibrate with, the model and the kinds of sets."""

    words: str
    n: int
    model: Callable[[], object]
    kinds: dict[str, SetKind]
    calibration: int = 0
    stream: int = 0


def rows_of(g: np.random.Generator, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return CENTERS[label] + g.normal(size=(len(label), 2)), label


def drawn(g: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rows_of(g, g.choice(len(PROBABILITY), size=n, p=PROBABILITY))


def one_of_classes(setting: SetSetting, seed: int) -> Outcome:
    """Fit once, and return which share of fresh rows each kind of sets holds, and how large they are."""
    g = np.random.default_rng([seed, setting.stream])
    X, y = drawn(g, setting.n)
    calibration = drawn(g, setting.calibration) if setting.calibration else None
    X_new, y_new = rows_of(g, np.repeat(np.arange(len(COUNTS)), COUNTS))
    model = setting.model().fit(X, y)
    found: dict[str, object] = {}
    for key, kind in setting.kinds.items():
        if kind.peer and find_spec("mapie") is None:
            continue
        sets = members(model, kind, calibration, X_new, seed)
        held = sets[np.arange(len(y_new)), y_new]
        share = np.array([np.mean(held), *(np.mean(held[y_new == label]) for label in range(len(COUNTS)))])
        size = sets.sum(axis=1)
        found |= {f"{key} held": share, f"{key} squared": share**2}
        found |= {f"{key} size": float(np.mean(size)), f"{key} empty": float(np.mean(size == 0))}
    return found


def members(model, kind: SetKind, calibration, X_new: np.ndarray, seed: int) -> np.ndarray:
    """Return which classes are in the sets, of shape (m, classes): ours, or those of MAPIE around the same fit."""
    if not kind.peer:
        asked = {"X_calibration": calibration[0], "y_calibration": calibration[1]} if kind.calibrated else {}
        asked |= {"by_class": kind.by_class, "allow_empty": True, "random_state": seed}
        return model.predict_set(X_new, LEVEL, method=kind.method, **asked).member
    from mapie.classification import SplitConformalClassifier

    wrapped = SplitConformalClassifier(
        model, confidence_level=LEVEL, conformity_score=kind.peer, prefit=True, random_state=seed
    )
    wrapped.conformalize(*calibration)
    asked = {} if kind.peer == "lac" else {"conformity_score_params": {"include_last_label": kind.last}}
    return np.asarray(wrapped.predict_set(X_new, **asked)[1][:, :, 0], dtype=bool)


def held_to(method: str, **more) -> SetKind:
    return SetKind(method, bar=NOMINAL, **more)


MODEL = partial(NadarayaWatsonClassifier, bandwidth=0.5, **SMALL)
METHODS = ("lac", "aps")
SAME_ROWS = {method: held_to(method) for method in METHODS}
SAME_ROWS["lac by class"] = held_to("lac", by_class=True, each=FEWEST)
OTHER_ROWS = {method: held_to(method, calibrated=True, beside=f"MAPIE {method}") for method in METHODS}
OTHER_ROWS["lac by class"] = held_to("lac", calibrated=True, by_class=True, each=FEWEST)
OTHER_ROWS |= {f"MAPIE {method}": SetKind(peer=method) for method in METHODS}
OTHER_ROWS["MAPIE aps randomised"] = SetKind(peer="aps", last="randomized")
WORDS = "n = 200 and 200 to calibrate with, h = 0.5"
SET_SETTINGS = {
    "classes-200": SetSetting("n = 200, h = 0.5", 200, MODEL, SAME_ROWS, stream=3200),
    "classes-calibrated": SetSetting(WORDS, 200, MODEL, OTHER_ROWS, calibration=200, stream=4200),
}
