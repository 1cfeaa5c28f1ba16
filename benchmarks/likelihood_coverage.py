"""Do intervals of counts and of probabilities cover as often as they say? By Monte Carlo.

python benchmarks/likelihood_coverage.py [RUNS]      400 runs of each setting by default
python benchmarks/likelihood_coverage.py --times     a curve of a million counts, and a search of a thousand answers
"""

import sys
import time
import warnings

import numpy as np
from scipy.special import expit

from kernpool import LocalLikelihoodRegressor, LocalLogisticClassifier

AT = np.linspace(0.05, 0.95, 10)[:, None]
LINKS = {"sine": lambda x: 1.5 * np.sin(2 * np.pi * x), "line": lambda x: 3.0 * x - 1.5}


def mean(family, link, x):
    """Return probabilities, or rates of 1 to 10 or so."""
    return expit(LINKS[link](x)) if family == "logistic" else np.exp(1.0 + 0.7 * LINKS[link](x))


def covered(rng, family, link, rows):
    """Return which intervals at ten points cover, and their mean width."""
    x = rng.uniform(size=rows)
    if family == "logistic":
        y = rng.uniform(size=rows) < mean(family, link, x)
        found = LocalLogisticClassifier().fit(x[:, None], 1 * y).probability_interval(AT)
        ends = found.lower, found.upper
        lower, upper = (end[:, -1] if end.ndim == 2 else end for end in ends)
    else:
        y = rng.poisson(mean(family, link, x))
        found = LocalLikelihoodRegressor(family="poisson").fit(x[:, None], y).confidence_interval(AT)
        lower, upper = found.lower, found.upper
    truth = mean(family, link, AT[:, 0])
    return np.append((lower <= truth) & (truth <= upper), np.mean(upper - lower))


def times():
    rng = np.random.default_rng(0)
    for _ in range(2):  # the first call compiles
        x = rng.uniform(size=10**6)
        y, at = rng.poisson(mean("poisson", "sine", x)), np.linspace(0, 1, 401)[:, None]
        model = LocalLikelihoodRegressor(bandwidth=0.02, family="poisson").fit(x[:, None], y)
        started = time.perf_counter(), time.process_time()
        model.confidence_interval(at)
        print(f"counts, 1e6 rows, 401 intervals: {_since(started)}")
        x = rng.uniform(size=1000)
        y = 1 * (rng.uniform(size=1000) < mean("logistic", "sine", x))
        started = time.perf_counter(), time.process_time()
        LocalLogisticClassifier().fit(x[:, None], y)
        print(f"yes or no, 1000 rows, search:    {_since(started)}", flush=True)


def _since(started):
    return f"{time.perf_counter() - started[0]:.2f} s, {time.process_time() - started[1]:.2f} s of processors"


def main():
    if "--times" in sys.argv:
        times()
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    print("family    link  rows  covers 95  by point (.05 to .95)                       width")
    for family in ("logistic", "poisson"):
        for link in LINKS:
            for rows in (200, 500):
                rng = np.random.default_rng(1)
                found = np.mean([covered(rng, family, link, rows) for _ in range(runs)], axis=0)
                points = " ".join(f"{100 * share:4.0f}" for share in found[:-1])
                shown = f"{family:8}  {link}  {rows:4}  {100 * found[:-1].mean():9.1f}"
                print(f"{shown}  {points}  {found[-1]:6.3f}", flush=True)


if __name__ == "__main__":
    main()
