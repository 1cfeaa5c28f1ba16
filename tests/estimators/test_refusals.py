"""Fits that are refused, by the argument that the error names."""

import numpy as np
import pandas as pd
import pytest

from kernpool import Floor, LocalLinearRegressor, Nearest, open_chunks

N = 24
X = np.linspace(0.0, 1.0, N)[:, None]
Y = np.sin(7 * X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=N)
FIFTHS = np.arange(N) // 5
FRAME = pd.DataFrame({
    "hour": np.r_[91.0, 1.0:2.0:23j], "lat": X[:, 0], "lon": Y, "side": pd.Categorical(["a", "b"] * 12),
})  # fmt: skip
STORED = {"X": open_chunks([(X, Y)]), "y": None, "bandwidth": 0.1}
REFUSED = {
    "gap": [
        {"gap": -1}, {"gap": N // 2}, {"gap": 50}, {"gap": 2, "groups": FIFTHS}, {"gap": 2, "bandwidth": "aicc"},
        {"gap": 2, "X": np.c_[X, Y]}, {"gap": 2, "X": FRAME}, {"gap": 2, **STORED},
    ],
    "time": [
        {"time": FIFTHS, "groups": FIFTHS}, {"time": "day"}, {"time": "day", "X": FRAME}, {"time": FIFTHS, **STORED},
        *({"time": time, "gap": 2} for time in (
            range(20), [None, *range(23)], np.array(["a", 1, 2] * 8, dtype=object), [*map(str, range(N))])),
    ],
    "groups": [
        *({"groups": groups, "bandwidth": bandwidth} for bandwidth in ("loo", "scott", 0.3) for groups in (
            FIFTHS[1:], FIFTHS[:, None], np.ones(N), np.array([1] * 23 + ["a"], dtype=object))),
        {"groups": FIFTHS, "robust": True},
    ],
    "bandwidth": [
        {"bandwidth": [1.0, 2.0]}, *({"groups": FIFTHS, "bandwidth": name} for name in ("aicc", "gcv")),
        {"robust": True, "bandwidth": "aicc"},
        {"X": FRAME, "geographic": ("lat", "lon"), "bandwidth": [1.0, 5.0, 6.0], "smoothing": [0.1]},
    ],
    "robust": [
        {"robust": "bisquare"}, {"robust": 0}, {"robust": True, "y": np.c_[Y, Y]},
        {"robust": True, "X": X[:3], "y": Y[:3]}, {"robust": True, **STORED},
    ],
    "window": [{"window": "fix"}, {"window": 9}],
    "rows": [
        {"window": Nearest(3), "kernel": "tricube"}, {"robust": True, "window": Floor(5)},
    ],
    "smoothing": [{"X": FRAME, "bandwidth": 0.5}],
    "unordered": [{"unordered": ["a"], **STORED}],
    "periodic": [
        *({"periodic": {"hour": period}, "X": FRAME} for period in (0, 1e300, np.nan, True)),
        *({"periodic": {name: 60}, "X": FRAME} for name in ("minute", 7, "side")),
        {"periodic": ["hour"]}, {"periodic": {0: 1}, **STORED},
    ],
    "column": [
        {"periodic": {"hour": 24, 0: 24}, "X": FRAME},
        {"periodic": {"lon": 360}, "geographic": ("lat", "lon"), "X": FRAME},
    ],
    "geographic": [{"geographic": ("lat",), "X": FRAME}, {"geographic": ("hour", "lon"), "X": FRAME}],
    "kernel": [{"periodic": {"hour": 24}, "kernel": "product biweight", "X": FRAME}],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_fits_that_are_refused_name_the_argument(name):
    for case in REFUSED[name]:
        options = {"X": X, "y": Y} | case
        given = {each: options.pop(each) for each in ("X", "y", "groups", "time") if each in options}
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            LocalLinearRegressor(**options).fit(**given)
