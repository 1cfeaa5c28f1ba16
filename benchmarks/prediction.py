"""How long prediction intervals take, beside MAPIE and crepes, and whether the answers are the same.

Processor time of one thread on all sides: a machine that is busy with something else stretches the clock of the wall.

python benchmarks/prediction.py            everything, about three minutes, and the report
python benchmarks/prediction.py --quick    a tenth of the rows, and no report
"""

import time
import warnings
from importlib.metadata import version

import numpy as np
from crepes import WrapRegressor
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor
from measure import alternate, finish, flags, report, table
from samples import wave_with_peak
from sklearn.model_selection import LeaveOneOut

from kernpool import NadarayaWatsonRegressor

warnings.simplefilter("ignore")  # of a bandwidth that is given, on all sides

LEVEL, THREADS, OFTEN = 0.9, 1, 15
ROWS, PLACES, BANDWIDTH = 2000, 1000, 0.04
MANY, MANY_BANDWIDTH = 1_000_000, 0.005
FASTER, SAME = 200.0, 1e-12


def ends(interval) -> np.ndarray:
    return np.stack([interval.lower, interval.upper], axis=1)


def leave_one_out(quick: bool) -> tuple[list, list[str]]:
    """Jackknife+ intervals of one fit: seconds from arrays to answers, and how far ours and MAPIE's are apart."""
    model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH, n_jobs=THREADS)
    n, m = (ROWS // 10, PLACES // 10) if quick else (ROWS, PLACES)
    (X, y), places, answer = wave_with_peak(n), np.linspace(0.0, 1.0, m)[:, None], {}

    def by_us():
        return ends(model.fit(X, y).prediction_interval(places, level=LEVEL, method="jackknife+"))

    def by_mapie():
        wrapped = CrossConformalRegressor(model, confidence_level=LEVEL, method="plus", cv=LeaveOneOut())
        found = wrapped.fit_conformalize(X, y).predict_interval(places, aggregate_point_predictions=None)
        answer["peer"] = found[1][:, :, 0]

    expected = by_us()  # loads and compiles
    before = alternate({"ours": by_us}, OFTEN, time.process_time)["ours"]
    theirs = alternate({"peer": by_mapie}, 1, time.process_time)["peer"]
    seconds = 0.5 * (before + alternate({"ours": by_us}, OFTEN, time.process_time)["ours"])
    apart, ratio = float(np.max(np.abs(expected - answer["peer"]))), theirs / seconds
    times = f"{theirs:.1f} s", f"{1000 * seconds:.1f} ms", f"{ratio:.0f}", f"{apart:.1g}"
    row = ["`jackknife+`", "`plus`", n, m, *times, f"{FASTER:.0f} times, {SAME:g}"]
    slow = f"jackknife+ {ratio:.0f} times as fast as MAPIE, not {FASTER:.0f}"
    return [row], [slow] * (not quick and ratio < FASTER) + [f"{apart:.2g} apart from MAPIE"] * (not apart <= SAME)


def split(n: int) -> tuple[list, list[str]]:
    """Split conformal intervals of many rows around one fit, by ours, by crepes and by MAPIE."""
    (X, y), (X_cal, y_cal), (X_new, _) = (wave_with_peak(n, seed) for seed in range(3))
    model = NadarayaWatsonRegressor(bandwidth=MANY_BANDWIDTH, n_jobs=THREADS).fit(X, y)
    given = {"method": "split", "X_calibration": X_cal, "y_calibration": y_cal}

    def crepes() -> np.ndarray:
        wrapped = WrapRegressor(model)
        wrapped.calibrate(X_cal, y_cal)
        return wrapped.predict_int(X_new, confidence=LEVEL)

    def mapie() -> np.ndarray:
        wrapped = SplitConformalRegressor(model, confidence_level=LEVEL, prefit=True)
        return wrapped.conformalize(X_cal, y_cal).predict_interval(X_new)[1][:, :, 0]

    runs = {
        "ours": lambda: ends(model.prediction_interval(X_new, level=LEVEL, **given)),
        "predictions alone": lambda: (model.predict(X_cal), model.predict(X_new)),
        "crepes": crepes,
        "mapie": mapie,
    }
    answers, rows = {name: run() for name, run in runs.items()}, []
    seconds = alternate(runs, OFTEN, time.process_time)
    for name in runs:
        peer = name in ("crepes", "mapie")
        apart = f"{np.max(np.abs(answers[name] - answers['ours'])):.1g}" if peer else ""
        beyond = seconds[name] - seconds["predictions alone"]
        title = f"{name} {version(name)}" if peer else name
        rows.append([title, f"{seconds[name]:.2f} s", f"{beyond:+.2f} s", apart])
    slow = seconds["ours"] > seconds["crepes"]
    return rows, [f"split intervals {seconds['ours']:.2f} s, crepes {seconds['crepes']:.2f} s"] * slow


def main() -> None:
    quick = flags(__doc__, "quick").quick
    many = MANY // 10 if quick else MANY
    beside, missed = leave_one_out(quick)
    of_split, slower = split(many)
    report(
        "prediction",
        "# Prediction intervals compared with MAPIE and crepes",
        f"Jackknife+ intervals of a local constant fit, h = {BANDWIDTH:g}, given, at {100 * LEVEL:.0f} %; from arrays "
        f"to answers, fit included. MAPIE wraps the same estimator and leaves one row out at a time; one run of it, "
        f"between twice {OFTEN} of ours:",
        table("ours | MAPIE's | rows | points | MAPIE | ours takes | times as fast | furthest apart | targets", beside),
        f"Split conformal intervals: {many} rows fitted, {many} to calibrate with, {many} new ones, one column, "
        f"h = {MANY_BANDWIDTH:g}, the same fitted model on all sides. Target: faster than crepes.",
        table(" | all | beyond predictions | furthest from ours", of_split),
        f"Processor seconds of one thread on all sides. Medians of {OFTEN} runs, in turn.",
        keep=not quick,
    )
    finish(missed + slower)


if __name__ == "__main__":
    main()
