"""How long prediction intervals take, beside MAPIE and crepes, and whether the answers are the same.

Processor time of one thread on all sides: a machine that is busy with something else stretches the clock of the wall.

python benchmarks/prediction.py            everything, about three minutes, and the report
python benchmarks/prediction.py --quick    a tenth of the rows, and no report
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from measure import alternate, finish, report
from set_coverage import SetKind, drawn, ours, theirs

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor

warnings.simplefilter("ignore")  # of a bandwidth that is given, on all sides

LEVEL, THREADS, OFTEN = 0.9, 1, 15
ROWS, PLACES, BANDWIDTH = 2000, 1000, 0.04
TIMED = "jackknife+"  # MAPIE fits as many models for the others, which are only compared, on a tenth of the rows
MANY, MANY_BANDWIDTH = 1_000_000, 0.005
FASTER, SAME = 200.0, 1e-12
METHODS = {"jackknife": "base", "jackknife+": "plus", "minmax": "minmax"}  # ours, and the names of MAPIE
CLASSES, CLASS_BANDWIDTH = 1000, 0.5


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a wave with a peak, and noise that grows."""
    g = np.random.default_rng(seed)
    x = g.uniform(size=n)
    curve = np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2)
    return x[:, None], curve + (0.2 + 0.3 * x) * g.normal(size=n)


def ends(interval) -> np.ndarray:
    return np.stack([interval.lower, interval.upper], axis=1)


def leave_one_out(quick: bool) -> tuple[list[str], list[str]]:
    """Jackknife intervals of one fit: seconds from arrays to answers, and how far ours and MAPIE's are apart."""
    from mapie.regression import CrossConformalRegressor
    from sklearn.model_selection import LeaveOneOut

    def by_us(method: str, X, y, places) -> np.ndarray:
        model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH, n_jobs=THREADS).fit(X, y)
        return ends(model.prediction_interval(places, level=LEVEL, method=method))

    def by_mapie(method: str, X, y, places) -> np.ndarray:
        model = NadarayaWatsonRegressor(bandwidth=BANDWIDTH, n_jobs=THREADS)
        wrapped = CrossConformalRegressor(model, confidence_level=LEVEL, method=method, cv=LeaveOneOut())
        wrapped.fit_conformalize(X, y)
        return wrapped.predict_interval(places, aggregate_point_predictions=None)[1][:, :, 0]

    rows, missed = [], []
    for own, peer in METHODS.items():
        timed = own == TIMED and not quick
        n, m = (ROWS, PLACES) if timed else (ROWS // 10, PLACES // 10)
        given = (*sample(n), np.linspace(0.0, 1.0, m)[:, None])
        expected, answer = by_us(own, *given), {}  # loads and compiles

        def once(peer=peer, answer=answer, given=given) -> None:
            answer["peer"] = by_mapie(peer, *given)

        def often(own=own, given=given) -> None:
            by_us(own, *given)

        before = alternate({"ours": often}, OFTEN, time.process_time)["ours"]
        theirs = alternate({"peer": once}, 1, time.process_time)["peer"]
        seconds = 0.5 * (before + alternate({"ours": often}, OFTEN, time.process_time)["ours"])
        apart, ratio = float(np.max(np.abs(expected - answer["peer"]))), theirs / seconds
        bars = [f"{FASTER:.0f} times"] * timed + [f"{SAME:g}"] * (own != "jackknife")
        rows.append(
            f"| `{own}` | `{peer}` | {n} | {m} | {theirs:.1f} s | {1000 * seconds:.1f} ms | {ratio:.0f} "
            f"| {apart:.1g} | {', '.join(bars) or 'none'} |"
        )
        if timed and ratio < FASTER:
            missed.append(f"{own} {ratio:.0f} times as fast as MAPIE, not {FASTER:.0f}")
        if own != "jackknife" and not apart <= SAME:
            missed.append(f"{own} and MAPIE's {peer} are {apart:.2g} apart")
    return rows, missed


def split(n: int) -> tuple[list[str], list[str]]:
    """Split conformal intervals of many rows around one fit, by ours, by crepes and by MAPIE."""
    (X, y), (X_cal, y_cal), (X_new, _) = (sample(n, seed) for seed in range(3))
    model = NadarayaWatsonRegressor(bandwidth=MANY_BANDWIDTH, n_jobs=THREADS).fit(X, y)

    def by_us() -> np.ndarray:
        return ends(
            model.prediction_interval(X_new, level=LEVEL, method="split", X_calibration=X_cal, y_calibration=y_cal)
        )

    def predictions() -> None:
        model.predict(X_cal)
        model.predict(X_new)

    contenders = {"ours": by_us, "predictions alone": predictions}
    if find_spec("crepes"):
        from crepes import WrapRegressor

        def crepes() -> np.ndarray:
            wrapped = WrapRegressor(model)
            wrapped.calibrate(X_cal, y_cal)
            return wrapped.predict_int(X_new, confidence=LEVEL)

        contenders["crepes"] = crepes
    if find_spec("mapie"):
        from mapie.regression import SplitConformalRegressor

        def mapie() -> np.ndarray:
            wrapped = SplitConformalRegressor(model, confidence_level=LEVEL, prefit=True)
            return wrapped.conformalize(X_cal, y_cal).predict_interval(X_new)[1][:, :, 0]

        contenders["mapie"] = mapie
    answers = {name: run() for name, run in contenders.items()}
    seconds = alternate(contenders, OFTEN, time.process_time)
    rows, missed = [], []
    for name in contenders:
        words = f"{name} {version(name)}" if name in ("crepes", "mapie") else name
        apart = "" if answers[name] is None else f"{np.max(np.abs(answers[name] - answers['ours'])):.1g}"
        beyond = seconds[name] - seconds["predictions alone"]
        rows.append(f"| {words} | {seconds[name]:.2f} s | {beyond:+.2f} s | {apart if name != 'ours' else ''} |")
        if name == "crepes" and seconds["ours"] > seconds["crepes"]:
            missed.append(f"split intervals {seconds['ours']:.2f} s, crepes {seconds['crepes']:.2f} s")
    if "crepes" not in contenders:
        rows.append("| crepes | not installed | | |")
    return rows, missed


def sets(n: int) -> tuple[list[str], list[str]]:
    """Sets of classes around one fit, with the same calibration rows: sizes, coverage, whether they are the same."""
    g = np.random.default_rng(0)
    (X, y), calibration, (X_new, y_new) = (drawn(g, n) for _ in range(3))
    model = NadarayaWatsonClassifier(bandwidth=CLASS_BANDWIDTH, n_jobs=THREADS).fit(X, y)
    rows, missed = [], []
    for method, last in (("lac", True), ("aps", True), ("aps", "randomized"), ("raps", True), ("raps", "randomized")):
        mine = ours(model, SetKind(method, calibrated=True), calibration, X_new, 0)
        other = theirs(model, SetKind(peer=method, last=last), calibration, X_new, 0)
        same = float(np.mean(np.all(mine == other, axis=1)))
        held = [100 * np.mean(found[np.arange(n), y_new]) for found in (mine, other)]
        size = [np.mean(found.sum(axis=1)) for found in (mine, other)]
        words = f"{method}{', its randomised one' * (last == 'randomized')}"
        rows.append(f"| {words} | {size[0]:.3f} | {size[1]:.3f} | {held[0]:.1f} | {held[1]:.1f} | {100 * same:.1f} |")
        if method == "lac" and same < 1.0:
            missed.append(f"{100 * (1 - same):.2g} % of LAC sets differ from MAPIE's")
        if last is True and size[0] > size[1]:
            missed.append(f"{method} sets of {size[0]:.3f} classes, MAPIE's of {size[1]:.3f}")
    return rows, missed


def main(quick: bool) -> None:
    many = MANY // 10 if quick else MANY
    beside, missed = leave_one_out(quick)
    of_split, slower = split(many)
    of_sets, larger = sets(CLASSES)
    text = "\n".join(
        [
            f"# Prediction intervals compared with MAPIE {version('mapie')} and crepes",
            "",
            f"Jackknife intervals of a local constant fit, h = {BANDWIDTH:g}, given, at {100 * LEVEL:.0f} %; from "
            "arrays to answers, fit included. MAPIE wraps the same estimator and leaves one row out at a time; one run "
            f"of it, between twice {OFTEN} of ours. Its other methods fit the same models, and are compared on a "
            "tenth of the rows, where starting calls is most of what takes time:",
            "",
            "| ours | MAPIE's | rows | places | MAPIE | ours takes | times as fast | furthest apart | targets |",
            "|---|---|---|---|---|---|---|---|---|",
            *beside,
            "",
            f"Split conformal intervals: {many} rows fitted, {many} to calibrate with, {many} new ones, one column, "
            f"h = {MANY_BANDWIDTH:g}. The fitted model is the same and given; all sides predict the calibration "
            "rows and the new ones by it, in the seconds shown; *beyond*: what is added to these predictions, "
            "some hundredths of a second, and no more than what runs differ by. Target: faster than crepes.",
            "",
            "| | all | beyond predictions | furthest from ours |",
            "|---|---|---|---|",
            *of_split,
            "",
            f"Sets of three classes, {CLASSES} rows fitted, {CLASSES} to calibrate with, {CLASSES} new ones; one "
            "sample, on which a percent is what chance makes of coverage; many are in "
            "[prediction-coverage](prediction-coverage.md). Bars: LAC sets are the same, and no sets of ours larger "
            "than MAPIE's own default.",
            "",
            "| sets | classes, ours | MAPIE's | held, %, ours | MAPIE's | the same set, % |",
            "|---|---|---|---|---|---|",
            *of_sets,
            "",
            "Processor seconds of one thread on all sides, so that what else the machine does counts little. Medians "
            f"of {OFTEN} runs, in turn, after one to warm up.",
        ]
    )
    report("prediction", text, keep=not quick)
    finish(missed + slower + larger)


if __name__ == "__main__":
    main("--quick" in sys.argv)
