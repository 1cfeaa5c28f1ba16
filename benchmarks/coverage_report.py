"""The page on coverage: a row for each setting and kind of interval, with what it should reach."""

from __future__ import annotations

import numpy as np
from coverage_settings import SETTINGS, Setting
from measure import report, table
from monte_carlo import Tally, binomial_error, judged, missed, outcome, percent, remark, total

WORDS = {
    "robust": "",
    "naive": "naive",
    "quadratic": "local quadratic",
    "sandwich": "sandwich",
    "unclustered": "clusters ignored",
}
HEAD = "setting | single intervals | worst | band | width | naive"


def figures(tally: Tally, kind: str) -> dict[str, tuple[float, float]]:
    """Return shares and their errors: the mean over places, the least and the largest place, the band."""
    places = tally.share(f"{kind} covered")
    mean = float(np.mean(places))
    least, most = float(np.min(places)), float(np.max(places))
    spread = max(float(tally.share(f"{kind} squared")) - mean**2, 0.0)
    found = {
        "single": (mean, float(np.sqrt(spread / tally.runs))),
        "least": (least, float(binomial_error(least, tally.runs))),
        "most": (most, float(binomial_error(most, tally.runs))),
    }
    if f"{kind} band" in tally.sums:
        share = float(tally.share(f"{kind} band"))
        found["band"] = (share, float(binomial_error(share, tally.runs)))
    return found


def outcomes(setting: Setting, found: dict[str, tuple[float, float]]) -> dict[str, str]:
    """Hold the figures of robust intervals against the targets."""
    low, high = setting.each or (None, None)
    return {
        "single intervals": judged(*found["single"], setting.pointwise),
        "the worst point": judged(*found["least"], None if low is None else (low, 1.0)),
        "the point covered most": judged(*found["most"], None if high is None else (0.0, high)),
        "the band": judged(*found["band"], setting.band) if "band" in found else "",
    }


def lines(setting: Setting, tally: Tally) -> tuple[list, list[str], str]:
    """Return the rows of a setting, targets that are missed, and the outcome; the first row has the naive interval."""
    rows, lost, verdict = [], [], ""
    reference = "naive" if "naive width" in tally.sums else "unclustered"
    for kind in setting.kinds:
        if kind == reference:
            continue
        found, beside = figures(tally, kind), ""
        width = float(tally.sums[f"{kind} width"] / tally.sums[f"{reference} width"])
        if kind == "robust":
            said = outcomes(setting, found)
            lost += missed(setting.words, said)
            naive = figures(tally, reference)
            beside, verdict = f"{percent(naive['single'][0])}; {percent(naive['least'][0])}", outcome(said)
        rows.append(
            [
                f"{setting.words}{', ' * bool(WORDS[kind])}{WORDS[kind]}",
                percent(*found["single"]),
                percent(found["least"][0]),
                percent(*found["band"]) if "band" in found else "",
                f"{width:.2f}",
                beside,
            ]
        )
    return rows, lost, verdict


NOTES = """\
Percent of samples whose 95 percent intervals cover their curve. *Single intervals*: the mean over points; *worst*: the
least of them; *band*: all of 101 points at once; *width*: in times that of *naive*, the prediction and its standard
error (of clusters: the interval that ignores them), whose mean and worst point the column has. ± is the standard
deviation. Targets are in `benchmarks/coverage_settings.py`.

Rows without another word are of `method="robust"`, the default where the rows chose the bandwidth. A figure beside its
target by less than two of its errors is *open*.

*Peak*: `sin(2 pi x) + 2 exp(-16 (x - .5)^2)`, x uniform, noise of sd `.2 + .3 x`. *Curve of CCF*: `sin(1.5 pi x)`, on
the right divided by `1 + 36 x^2`, x uniform on [-1, 1], noise of sd 1. *Two levels*: peak, and .6 more for the second
level. *Two columns*: `sin(2 pi x1)` and a hill of `2 exp(-16 |x - .5|^2)`, noise of sd `.2 + .3 x1`; four corners, the
top and two points next to it. *Three columns*: `sin(2 pi x1) + 2 exp(-16 (x2 - .5)^2) + cos(pi x3)`, noise of sd .4.
*Clusters*: `cos(3 x)`, noise and shocks of sd .3. Models are local linear with a Gaussian and bandwidths by
leave-one-out, unless a setting says otherwise. *Stacking*: 200 rows of uniform columns, 60 points.
"""


def write(found: dict[str, Tally], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    rows, lost, verdicts = [], [], {}
    for name, setting in SETTINGS.items():
        if name in found:
            some, others, verdicts[setting.words] = lines(setting, found[name])
            rows, lost = rows + some, lost + others
        else:
            rows.append([setting.words, "not run yet", *[""] * 4])
    refused = {SETTINGS[name].words: int(tally.sums.get("refused", 0)) for name, tally in found.items()}
    told = "; ".join(f"{words}: {count}" for words, count in refused.items() if count)
    note = f"Samples whose fit passes through every row, which intervals refuse, count as not covered. {told}."
    title = "# Confidence intervals and bands"
    report("coverage", title, table(HEAD, rows), NOTES, remark(found, verdicts), note if told else "", keep=keep)
    print(total(found))
    return lost
