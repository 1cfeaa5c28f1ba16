"""The page on coverage of prediction intervals and of sets of classes: a row for each setting and kind."""

from __future__ import annotations

import numpy as np
from measure import report, table
from monte_carlo import Tally, judged, missed, outcome, percent, total
from prediction_settings import LEVEL, SETTINGS, Kind, exact
from set_coverage import SET_SETTINGS, SetKind

HEAD = "setting | interval | runs | held, % | by thirds of x, % | width | infinite, % | targets: all, a third | outcome"
SET_HEAD = "setting | sets | runs | held, % | by class, % | classes | empty, % | target | outcome"


def shares(tally: Tally, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mean shares over runs, of all rows and of parts of them, and their errors; runs are independent."""
    mean = tally.share(f"{key} held")
    variance = np.maximum(tally.share(f"{key} squared") - mean**2, 0.0)
    return mean, np.sqrt(variance / max(tally.runs - 1, 1))


def shown(bar: tuple[float, float] | None) -> str:
    if bar is None:
        return ""
    return f"{100 * bar[0]:.1f} to {100 * bar[1]:.1f}" if bar[1] < 1.0 else f"from {100 * bar[0]:.1f}"


def row(kind: Kind, key: str, tally: Tally, mean, error) -> tuple[list, dict[str, str]]:
    """Return width and targets of a kind of interval, and what became of these."""
    least = 1 + int(np.argmin(mean[1:]))
    said = {"all": judged(mean[0], error[0], kind.bar), "a third": judged(mean[least], error[least], kind.third)}
    width = float(tally.sums[f"{key} width"] / max(float(tally.sums[f"{key} bounded"]), 1.0))
    infinite = float(tally.share(f"{key} infinite"))
    bars = "; ".join(words for words in (shown(kind.bar), shown(kind.third)) if words)
    return [f"{width:.2f}", percent(infinite) if infinite else "", bars], said


def set_row(kind: SetKind, key: str, tally: Tally, mean, error) -> tuple[list, dict[str, str]]:
    """Return size and targets of a kind of sets, and what became of these."""
    size = float(tally.share(f"{key} size"))
    said = {"held": judged(mean[0], error[0], kind.bar)}
    if kind.each is not None:
        worst = 1 + int(np.argmax(np.maximum(kind.each[0] - mean[1:], mean[1:] - kind.each[1])))
        said["a class"] = judged(mean[worst], error[worst], kind.each)
    if f"{kind.beside} size" in tally.sums:
        theirs = float(tally.share(f"{kind.beside} size"))
        said["size"] = "met" if size <= theirs * (1.0 + 1e-9) else "missed"
    bars = shown(kind.bar) + (f"; each class {shown(kind.each)}" if kind.each else "")
    return [f"{size:.3f}", percent(float(tally.share(f"{key} empty"))), bars], said


def rows_of(settings: dict, found: dict[str, Tally], make) -> tuple[list, list[str]]:
    """Rows of all kinds of the settings that were run, and the targets they miss."""
    rows, lost = [], []
    for name, setting in settings.items():
        if name not in found:
            rows.append([setting.words, "", 0, *[""] * 5, "not run yet"])
            continue
        for key, kind in setting.kinds.items():
            if f"{key} held" in found[name].sums:
                mean, error = shares(found[name], key)
                cells, said = make(kind, key, found[name], mean, error)
                held = percent(mean[0], error[0], more=1), " / ".join(percent(value) for value in mean[1:])
                rows.append([setting.words, kind.title, found[name].runs, *held, *cells, outcome(said)])
                lost += missed(f"{setting.words}, {kind.title}", said)
    return rows, lost


NOTES = f"""\
Percent of fresh rows whose value is inside its {100 * LEVEL:.0f} percent interval, over runs that draw rows, fit and
ask about 90 fresh rows. Behind ± is the standard error, from shares of runs: the rows of a run have one fit, so runs
are what is independent. *By thirds of x*: of the fresh rows with the smallest x, the middle ones and the largest;
noise grows with x. *Width*: mean of those that are finite. A figure beside its target by less than two of its errors is
*open*.

What theory says exactly of split intervals, without ties: {percent(exact(100), digits=2)} for 100 rows that calibrate,
{percent(exact(500), digits=2)} for 500.

Rows: x uniform, `sin(2 pi x) + 2 exp(-16 (x - .5)^2)`, noise of sd `.2 + .3 x`. *Clusters*: `cos(3 x)`, noise of sd .3,
shocks of sd .6 that the rows of a cluster share; fresh rows come one from each of 90 new clusters, h = .1. The new
cluster counts as one of infinite scores, so 24 clusters give the quantile at .9 x 25 / 24 of theirs, 93.75 percent:
few clusters cover too often, as 24 single rows do, {percent(exact(24), digits=2)} exactly. With 200 little is left of
it. Models are
local constant with a Gaussian unless a setting says otherwise. Without *calibration rows* training rows calibrate.
"""

SET_NOTES = """\
Percent of fresh rows whose class is in its set, and how many classes a set has on average. Three classes of
probabilities .5, .3 and .2, normal in two columns, one sd around centres that are two apart. Fresh rows have these
shares exactly. *MAPIE*: the same fit, the same calibration rows; its adaptive sets are deterministic ones that hold
the class at which the mass is reached, or randomised. Ours must hold 88.5 to 91.5 percent and be no larger than those
of the same kind.
"""


def write(found: dict[str, Tally], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    rows, lost = rows_of(SETTINGS, found, row)
    of_sets, others = rows_of(SET_SETTINGS, found, set_row)
    title = "# Coverage of prediction intervals and prediction sets"
    parts = table(HEAD, rows), NOTES, "## Sets of classes", table(SET_HEAD, of_sets), SET_NOTES, total(found)
    report("prediction-coverage", title, *parts, keep=keep)
    return lost + others
