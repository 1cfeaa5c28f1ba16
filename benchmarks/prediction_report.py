"""The page on coverage of prediction intervals and of sets of classes: a row for each setting and kind."""

from __future__ import annotations

import numpy as np
from measure import report, table
from monte_carlo import Tally, judged, missed, outcome, percent, remark, total
from prediction_settings import LEVEL, SETTINGS, Kind, exact
from set_coverage import SET_SETTINGS, SetKind

HEAD = "setting | interval | held, % | by thirds of x, % | width"
SET_HEAD = "setting | sets | held, % | by class, % | classes"


def shares(tally: Tally, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mean shares over runs, of all rows and of parts of them, and their errors; runs are independent."""
    mean = tally.share(f"{key} held")
    variance = np.maximum(tally.share(f"{key} squared") - mean**2, 0.0)
    return mean, np.sqrt(variance / max(tally.runs - 1, 1))


def row(kind: Kind, key: str, tally: Tally, mean, error) -> tuple[list, dict[str, str]]:
    """Return the width of a kind of interval, and what became of its targets."""
    least = 1 + int(np.argmin(mean[1:]))
    said = {"all": judged(mean[0], error[0], kind.bar), "a third": judged(mean[least], error[least], kind.third)}
    width = float(tally.sums[f"{key} width"] / max(float(tally.sums[f"{key} bounded"]), 1.0))
    return [f"{width:.2f}"], said


def set_row(kind: SetKind, key: str, tally: Tally, mean, error) -> tuple[list, dict[str, str]]:
    """Return the size of a kind of sets, and what became of its targets."""
    size = float(tally.share(f"{key} size"))
    said = {"held": judged(mean[0], error[0], kind.bar)}
    if kind.each is not None:
        worst = 1 + int(np.argmax(np.maximum(kind.each[0] - mean[1:], mean[1:] - kind.each[1])))
        said["a class"] = judged(mean[worst], error[worst], kind.each)
    if f"{kind.beside} size" in tally.sums:
        theirs = float(tally.share(f"{kind.beside} size"))
        said["size"] = "met" if size <= theirs * (1.0 + 1e-9) else "missed"
    return [f"{size:.3f}"], said


def rows_of(settings: dict, found: dict[str, Tally], make) -> tuple[list, list[str], dict[str, str]]:
    """Rows of all kinds of the settings that were run, the targets they miss, and the outcomes."""
    rows, lost, verdicts = [], [], {}
    for name, setting in settings.items():
        if name not in found:
            rows.append([setting.words, "not run yet", *[""] * 3])
            continue
        for key, kind in setting.kinds.items():
            if f"{key} held" in found[name].sums:
                mean, error = shares(found[name], key)
                cells, said = make(kind, key, found[name], mean, error)
                held = percent(mean[0], error[0], more=1), " / ".join(percent(value) for value in mean[1:])
                rows.append([setting.words, kind.title, *held, *cells])
                verdicts[f"{setting.words}, {kind.title}"] = outcome(said)
                lost += missed(f"{setting.words}, {kind.title}", said)
    return rows, lost, verdicts


NOTES = f"""\
Percent of fresh rows whose value is inside its {100 * LEVEL:.0f} percent interval; runs are independent, and behind ±
is their standard error. *By thirds of x*: noise grows with x. Split intervals have, without ties,
{percent(exact(100), digits=2)} percent exactly for 100 calibration rows and {percent(exact(500), digits=2)} for 500.

Rows: x uniform, `sin(2 pi x) + 2 exp(-16 (x - .5)^2)`, noise of sd `.2 + .3 x`. *Clusters*: `cos(3 x)`, noise of sd
.3, shocks of sd .6; fresh rows of 90 new clusters, h = .1. Few clusters cover too often: 24 give the quantile at
93.75 percent, and 24 single rows have {percent(exact(24), digits=2)} exactly. Models are local constant with a
Gaussian unless a setting says otherwise. Without *calibration rows* training rows calibrate.
"""

SET_NOTES = """\
Percent of fresh rows whose class is in its set, and how many classes a set has on average. Three classes of
probabilities .5, .3 and .2, normal in two columns, one sd around centres that are two apart. *MAPIE*: the same fit
and calibration rows; its `aps` is deterministic unless randomised. Ours may be no larger than those of the same kind.
"""


def write(found: dict[str, Tally], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    rows, lost, verdicts = rows_of(SETTINGS, found, row)
    of_sets, others, of_them = rows_of(SET_SETTINGS, found, set_row)
    title = "# Prediction intervals"
    parts = table(HEAD, rows), NOTES, "# Sets of classes", table(SET_HEAD, of_sets), SET_NOTES
    parts = *parts, remark(found, verdicts | of_them)
    report("prediction-coverage", title, *parts, keep=keep)
    print(total(found))
    return lost + others
