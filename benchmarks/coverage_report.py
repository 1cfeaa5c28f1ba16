"""The page on coverage: a row for each setting and kind of interval, with what it should reach."""

from __future__ import annotations

import numpy as np
from coverage_settings import SETTINGS, Bar, Setting
from measure import report, table
from monte_carlo import Tally, binomial_error, judged, missed, outcome, percent, total

WORDS = {
    "robust": "",
    "naive": "naive",
    "quadratic": "local quadratic",
    "sandwich": "sandwich",
    "unclustered": "clusters ignored",
}
HEAD = "setting | runs | single intervals | worst place | bias | band | width | targets: single, place, band | outcome"


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
        "the worst place": judged(*found["least"], None if low is None else (low, 1.0)),
        "the place covered most": judged(*found["most"], None if high is None else (0.0, high)),
        "the band": judged(*found["band"], setting.band) if "band" in found else "",
    }


def bars(setting: Setting) -> str:
    def shown(bar: Bar) -> str:
        return "none" if bar is None else f"{100 * bar[0]:.1f} to {100 * bar[1]:.1f}"

    of_band = [] if setting.curve is None else [shown(setting.band)]
    given = [shown(setting.pointwise), shown(setting.each), *of_band]
    return "none" if {*given} == {"none"} else "; ".join(given)


def lines(setting: Setting, tally: Tally) -> tuple[list, list[str]]:
    """Return the rows of a setting, and which of its targets are missed."""
    rows, lost = [], []
    reference = "naive" if "naive width" in tally.sums else "unclustered"
    for kind in setting.kinds:
        found, error = figures(tally, kind), tally.share(f"{kind} error")
        place = setting.places[int(np.argmin(tally.share(f"{kind} covered")))]
        width = float(tally.sums[f"{kind} width"] / tally.sums[f"{reference} width"])
        targets = "", "for comparison"
        if kind == "robust":
            said = outcomes(setting, found)
            lost += missed(setting.words, said)
            targets = bars(setting), outcome(said) or "no target"
        rows.append(
            [
                f"{setting.words}{', ' * bool(WORDS[kind])}{WORDS[kind]}",
                tally.runs,
                percent(*found["single"]),
                f"{percent(*found['least'])} at {', '.join(f'{number:g}' for number in place)}",
                f"{error[np.argmax(np.abs(error))]:+.2f}",  # the largest mean error at a place, in standard errors
                percent(*found["band"]) if "band" in found else "",
                f"{width:.2f}",
                *targets,
            ]
        )
    return rows, lost


NOTES = """\
Percent of samples in which 95 percent intervals cover the curve that the samples were drawn from. *Single intervals*:
the mean over places, 0, .1, .25, .5, .75, .9 and 1 where nothing else is said; *worst place*: the least of them;
*bias*: the largest mean error at a place, in standard errors; *band*: all of 101 places at once. Behind ± is the
standard deviation of the figure, for the mean over runs since places of one sample go along, and binomial for a place
and a band. *Width*: mean width in times that of the naive interval of the same fits, which is the prediction and its
standard error (of clusters: of the interval that ignores them).

Rows without another word, sandwiches and clusters are of `method="robust"`, the default where the rows chose the
bandwidth; where it was given, as a number or a multiple of the one found, *local quadratic* is.

A target is a percent on either side of 95, and of what a prototype of the same formulas had where that is further away:
2000 runs see a percent as two standard deviations. With fewer runs a figure beside its target by less than two of its
errors is *open*: more runs will tell. Rows for comparison have the same samples and fits, and no targets.

*Peak*: `sin(2 pi x) + 2 exp(-16 (x - .5)^2)`, x uniform, noise of sd `.2 + .3 x`. *Curve of CCF*: `sin(1.5 pi x)`, on
the right divided by `1 + 36 x^2`, x uniform on [-1, 1], noise of sd 1; places are twice those above less one. *Two
levels*: peak, and .6 more for the second level; places at both. *Two columns*: `sin(2 pi x1)` and a hill of `2
exp(-16 |x - .5|^2)`, noise of sd `.2 + .3 x1`; four corners, the top and two places beside it. *Three columns*:
`sin(2 pi x1) + 2 exp(-16 (x2 - .5)^2) + cos(pi x3)`, noise of sd .4; five places inside. *Clusters*: `cos(3 x)`,
noise of sd .3, shocks of sd .3. Models are local linear with a Gaussian, and their bandwidths are found by
leave-one-out anew in each sample, unless a setting says otherwise; *as they come*: bandwidth and ridge are those of
an empty pair of brackets.
"""


def write(found: dict[str, Tally], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    rows, lost = [], []
    for name, setting in SETTINGS.items():
        if name in found:
            some, others = lines(setting, found[name])
            rows, lost = rows + some, lost + others
        else:
            rows.append([setting.words, 0, *[""] * 5, bars(setting), "not run yet"])
    refused = {SETTINGS[name].words: int(tally.sums.get("refused", 0)) for name, tally in found.items()}
    told = "; ".join(f"{words}: {count}" for words, count in refused.items() if count)
    note = (
        "In some samples the search found a bandwidth whose fit passes through every row, so that no residual is left\n"
    )
    note += f"and the interval refuses; they count as not covered. {told}."
    title = "# Coverage of confidence intervals and bands"
    report("coverage", title, table(HEAD, rows), NOTES, note if told else "", total(found), keep=keep)
    return lost
