"""Do confidence intervals and bands cover as often as they say? By Monte Carlo, bandwidths found on the same rows.

python benchmarks/interval_coverage.py                        everything, 2000 runs: about two hours of a core
python benchmarks/interval_coverage.py --parts FILE NAME ...  some settings, or what FILE lacks of them; can be resumed
python benchmarks/interval_coverage.py --runs 500 NAME ...    some settings, in fewer runs
python benchmarks/interval_coverage.py --parts FILE --page    the page of what FILE holds, however many runs these are

(Not coverage.py: Numba imports the package of that name, and would find this file.)
The search for the bandwidth takes nine tenths of a run: some hundred criteria, each two milliseconds of small arrays.
"""

from __future__ import annotations

import numpy as np
from coverage_report import write
from coverage_settings import SETTINGS, Setting
from monte_carlo import Outcome, study

RUNS = 2000


def one(name: str, seed: int) -> Outcome:
    """Fit once, and return which places and curves the intervals of each kind cover, and how wide they are.

    With them come errors at each place in standard errors: their mean is a bias that coverage shows only after many
    more runs.
    """
    setting = SETTINGS[name]
    X, y, groups = setting.draw(np.random.default_rng([seed, setting.stream]))
    model = setting.model().fit(X, y)
    try:
        return covered(setting, model, groups)
    except ValueError as refusal:  # the search found a bandwidth whose fit passes through every row
        if "no residual is left" not in str(refusal):
            raise
        return refused(setting)


def covered(setting: Setting, model, groups) -> Outcome:
    """Return what intervals of all kinds cover."""
    found: dict[str, object] = {}
    truth = setting.truth(setting.places)
    for kind, asked in setting.kinds.items():
        options = setting.options | asked | ({"groups": groups} if setting.clustered and kind != "unclustered" else {})
        single = model.confidence_interval(setting.places, **options)
        held = inside(single, truth)
        found |= {
            f"{kind} covered": held,
            f"{kind} squared": np.mean(held) ** 2,
            f"{kind} width": np.nanmean(single.width),
        }
        with np.errstate(invalid="ignore"):
            error = (np.reshape(single.center, truth.shape) - truth) / np.reshape(single.standard_error, truth.shape)
        found[f"{kind} error"] = np.nan_to_num(error)
        if setting.curve is not None and asked.get("variance", "local") == "local":
            band = model.confidence_interval(setting.curve, simultaneous=True, **options)
            found[f"{kind} band"] = bool(np.all(inside(band, setting.truth(setting.curve))))
    return found


def refused(setting: Setting) -> Outcome:
    """Return the outcome of a sample without intervals: nothing is covered."""
    nowhere, found = np.zeros(len(setting.places)), {"refused": 1.0}
    for kind, asked in setting.kinds.items():
        found |= {f"{kind} {what}": nowhere for what in ("covered", "error")}
        found |= {f"{kind} squared": 0.0, f"{kind} width": 0.0}
        if setting.curve is not None and asked.get("variance", "local") == "local":
            found[f"{kind} band"] = False
    return found


def inside(interval, truth: np.ndarray) -> np.ndarray:
    """Say where an interval covers; where there is none it does not."""
    lower, upper = (np.reshape(end, truth.shape) for end in (interval.lower, interval.upper))
    return (lower <= truth) & (truth <= upper)


if __name__ == "__main__":
    study(__doc__, SETTINGS, RUNS, one, write)
