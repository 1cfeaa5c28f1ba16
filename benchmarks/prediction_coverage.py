"""How often do prediction intervals hold the next value, and sets the next class? By Monte Carlo, at 90 %.

python benchmarks/prediction_coverage.py                        everything, 2000 runs
python benchmarks/prediction_coverage.py --parts FILE NAME ...  some settings, or what FILE lacks; can be resumed
python benchmarks/prediction_coverage.py --parts FILE --page    the page of what FILE holds, however many runs

A run draws rows, fits, and asks about 90 fresh rows (150 of classes): what it yields is a share, whose error is that
between runs, since the fresh rows of a run have the same fit. The guarantees are of that mean.
"""

from __future__ import annotations

import numpy as np
from monte_carlo import Outcome, study
from prediction_report import write
from prediction_settings import FRESH, LEVEL, SETTINGS, Kind
from set_coverage import SET_SETTINGS, one_of_classes

RUNS = 2000
THIRDS = 3


def one(name: str, seed: int) -> Outcome:
    """Fit once, and return which shares of fresh rows each kind of interval or set holds, and how wide they are."""
    if name in SET_SETTINGS:
        return one_of_classes(SET_SETTINGS[name], seed)
    setting = SETTINGS[name]
    g = np.random.default_rng([seed, setting.stream])
    X, y, groups = setting.draw(g, setting.n)
    calibration = setting.draw(g, setting.calibration) if setting.calibration else None
    X_new, y_new, _ = setting.fresh(g, FRESH)
    model = setting.model().fit(X, y)
    found: dict[str, object] = {}
    for key, kind in setting.kinds.items():
        asked = options(kind, calibration, groups)
        interval = model.prediction_interval(X_new, level=LEVEL, method=kind.method, random_state=seed, **asked)
        lower, upper = (np.reshape(end, len(y_new)) for end in (interval.lower, interval.upper))
        found |= summed(key, (lower <= y_new) & (y_new <= upper), X_new[:, 0], upper - lower)
    return found


def options(kind: Kind, calibration, groups) -> dict:
    """Return what a kind of interval is asked for with."""
    asked: dict[str, object] = {}
    if kind.calibrated and calibration is not None:
        asked |= {"X_calibration": calibration[0], "y_calibration": calibration[1]}
    if kind.grouped:
        asked["groups"] = calibration[2] if kind.calibrated else groups
    return asked


def summed(key: str, held: np.ndarray, x: np.ndarray, width: np.ndarray) -> dict[str, object]:
    """Shares that are held, of all rows and of each third of them by x, and their squares; widths that are finite."""
    parts = np.array_split(np.argsort(x, kind="stable"), THIRDS)
    share = np.array([np.mean(held), *(np.mean(held[part]) for part in parts)])
    finite = np.isfinite(width)
    mean = float(np.mean(width[finite])) if finite.any() else 0.0
    return {
        f"{key} held": share,
        f"{key} squared": share**2,
        f"{key} width": mean,
        f"{key} bounded": float(finite.any()),
        f"{key} infinite": float(np.mean(~finite)),
    }


if __name__ == "__main__":
    study(__doc__, [*SETTINGS, *SET_SETTINGS], RUNS, one, write)
