"""The page on coverage of prediction intervals and of sets of classes: a row for each setting and kind."""

from __future__ import annotations

import numpy as np
from measure import report
from monte_carlo import Tally, judged
from prediction_settings import LEVEL, SETTINGS, Kind, Setting, exact
from set_coverage import SET_SETTINGS, SetKind, SetSetting

HEAD = (
    "| setting | interval | runs | held, % | by thirds of x, % | width | infinite, % | targets: all, a third "
    "| outcome |"
)
SET_HEAD = "| setting | sets | runs | held, % | by class, % | classes | empty, % | target | outcome |"


def shares(tally: Tally, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mean shares over runs, of all rows and of parts of them, and their errors; runs are independent."""
    mean = tally.share(f"{key} held")
    variance = np.maximum(tally.share(f"{key} squared") - mean**2, 0.0)
    return mean, np.sqrt(variance / max(tally.runs - 1, 1))


def percent(mean: float, error: float | None = None, digits: int = 1) -> str:
    return f"{100 * mean:.{digits}f}" + ("" if error is None else f" ± {100 * error:.{digits + 1}f}")


def shown(bar: tuple[float, float] | None) -> str:
    if bar is None:
        return ""
    return f"{100 * bar[0]:.1f} to {100 * bar[1]:.1f}" if bar[1] < 1.0 else f"from {100 * bar[0]:.1f}"


def outcome(said: dict[str, str]) -> str:
    """Name what was missed or is open, or say that all targets are met."""
    said = {what: words for what, words in said.items() if words}
    words = {word: [what for what in said if said[what] == word] for word in ("missed", "open")}
    told = "; ".join(f"**{word}**: {', '.join(what)}" for word, what in words.items() if what)
    return told or ("met" if said else "")


def row(setting: Setting, key: str, kind: Kind, tally: Tally) -> tuple[str, list[str]]:
    """Return the row of a kind of interval, and which of its targets are missed."""
    mean, error = shares(tally, key)
    least = 1 + int(np.argmin(mean[1:]))
    said = {"all": judged(mean[0], error[0], kind.bar), "a third": judged(mean[least], error[least], kind.third)}
    width = float(tally.sums[f"{key} width"] / max(float(tally.sums[f"{key} bounded"]), 1.0))
    infinite = float(tally.share(f"{key} infinite"))
    bars = "; ".join(words for words in (shown(kind.bar), shown(kind.third)) if words)
    cells = [
        setting.words,
        kind.title,
        str(tally.runs),
        percent(mean[0], error[0]),
        " / ".join(percent(value) for value in mean[1:]),
        f"{width:.2f}",
        percent(infinite) if infinite else "",
        bars,
        outcome(said),
    ]
    missed = [f"{setting.words}, {kind.title}: {what}" for what, words in said.items() if words == "missed"]
    return f"| {' | '.join(cells)} |", missed


def set_row(setting: SetSetting, key: str, kind: SetKind, tally: Tally) -> tuple[str, list[str]]:
    """Return the row of a kind of sets, and which of its targets are missed."""
    mean, error = shares(tally, key)
    size = float(tally.share(f"{key} size"))
    said = {"held": judged(mean[0], error[0], kind.bar)}
    if kind.each is not None:
        worst = 1 + int(np.argmax(np.maximum(kind.each[0] - mean[1:], mean[1:] - kind.each[1])))
        said["a class"] = judged(mean[worst], error[worst], kind.each)
    if kind.beside in setting.kinds and f"{kind.beside} size" in tally.sums:
        theirs = float(tally.share(f"{kind.beside} size"))
        said["size"] = "met" if size <= theirs * (1.0 + 1e-9) else "missed"
    cells = [
        setting.words,
        kind.title,
        str(tally.runs),
        percent(mean[0], error[0]),
        " / ".join(percent(value) for value in mean[1:]),
        f"{size:.3f}",
        percent(float(tally.share(f"{key} empty"))),
        shown(kind.bar) + (f"; each class {shown(kind.each)}" if kind.each else ""),
        outcome(said),
    ]
    missed = [f"{setting.words}, {kind.title}: {what}" for what, words in said.items() if words == "missed"]
    return f"| {' | '.join(cells)} |", missed


def table(settings: dict, found: dict[str, Tally], make) -> tuple[list[str], list[str]]:
    """Rows of all kinds of the settings that were run, and the targets they miss."""
    rows, missed = [], []
    for name, setting in settings.items():
        if name not in found:
            rows.append(f"| {setting.words} | | 0 | | | | | | not run yet |")
            continue
        for key, kind in setting.kinds.items():
            if f"{key} held" in found[name].sums:
                line, others = make(setting, key, kind, found[name])
                rows.append(line)
                missed += others
    return rows, missed


NOTES = f"""\
Percent of fresh rows whose value is inside its {100 * LEVEL:.0f} percent interval, over runs that draw rows, fit and
ask about 90 fresh rows. Behind ± is the standard error, from shares of runs: the rows of a run have one fit, so runs
are what is independent. *By thirds of x*: of the fresh rows with the smallest x, the middle ones and the largest;
noise grows with x. *Width*: mean of those that are finite. A figure beside its target by less than two of its errors is
*open*.

What theory says exactly of full conformal sets with a fixed bandwidth, without ties: {percent(exact(20), digits=2)} for
20 rows, {percent(exact(50), digits=2)} for 50, {percent(exact(200), digits=2)} for 200; of split sets the same with the
number of rows that calibrate: {percent(exact(100), digits=2)} for 100, {percent(exact(500), digits=2)} for 500.

Rows: x uniform, `sin(2 pi x) + 2 exp(-16 (x - .5)^2)`, noise of sd `.2 + .3 x`. *Shift*: fresh rows have a density
proportional to `exp(3 x)`, which weights know, or estimate by `density_ratio`. *Clusters*: `cos(3 x)`, noise of sd .3,
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
    rows, missed = table(SETTINGS, found, row)
    of_sets, others = table(SET_SETTINGS, found, set_row)
    seconds, runs = (sum(getattr(tally, of) for tally in found.values()) for of in ("seconds", "runs"))
    lines = ["# Coverage of prediction intervals and prediction sets", "", HEAD, "|---" * 9 + "|", *rows, "", NOTES]
    lines += ["## Sets of classes", "", SET_HEAD, "|---" * 9 + "|", *of_sets, "", SET_NOTES]
    text = "\n".join([*lines, f"{runs} runs in all, {seconds / 60:.0f} minutes of one core."])
    report("prediction-coverage", text, keep=keep)
    return missed + others
