"""Numbers of other programs: intervals from the same bits of data, sets of MAPIE 1.6 around the same fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor
from tests.support.inference_cases import bend

PLACES = np.linspace(0.0, 1.0, 11)[:, None]
# MAPIE's method "plus" with leave-one-out, around a local constant fit with h = .04, at 90 percent.
MAPIE_LOWER = [
    -0.3898366593054521, 0.13957822137656628, 0.779534268364719, 1.290040591532471, 1.65286162542951,
    1.380154338162124, 0.5079936635740785, -0.49694347844784936, -1.0556223985648558, -1.0615099927285967,
    -0.8511432856253925,
]  # fmt: skip
MAPIE_UPPER = [
    0.8843823732348504, 1.4137972539168686, 2.055494037163313, 2.5642596240727737, 2.9270806579698125,
    2.645129188481126, 1.7679921053587404, 0.7652496527062483, 0.19769325082257777, 0.2125371314529496,
    0.4230757469149099,
]  # fmt: skip


def test_intervals_are_those_of_mapie():
    x, y = bend()
    found = NadarayaWatsonRegressor(bandwidth=0.04).fit(x[:, None], y).prediction_interval(PLACES, method="jackknife+")
    assert_allclose(found.lower, MAPIE_LOWER, rtol=0, atol=1e-12)
    assert_allclose(found.upper, MAPIE_UPPER, rtol=0, atol=1e-12)


# SplitConformalClassifier(model, confidence_level, conformity_score, prefit=True, random_state=7), "aps" with
# include_last_label="randomized": its threshold, and the sets of 49 rows as digits, of which bits are the classes.
MAPIE = {
    ("lac", 0.8): (0.31659662539007827, "0214420024100124140444011114411004422411100210124"),
    ("lac", 0.9): (0.4428295396410392, "4214420024102124140444211114411004422411122210124"),
    ("lac", 0.95): (0.6348112756273396, "4214423524132124143444311114411334422411123213124"),
    ("aps", 0.8): (0.687252556286575, "4214421424132024143044211114410114422411122213120"),
    ("aps", 0.9): (0.7486311377285432, "4214421424132124143444211114411114422411123213120"),
    ("aps", 0.95): (0.8106689542438447, "4315423424132124143444211114411334432411123213124"),
}


class Complement(np.random.RandomState):
    """One less the draws of MAPIE, which has the share of a class that is left out where the paper keeps one.

    Every call draws from the beginning of the seed, as there.
    """

    def uniform(self, size):
        return 1.0 - np.random.RandomState(7).uniform(size=size)


@pytest.mark.parametrize(("method", "level"), MAPIE)
def test_sets_are_those_of_mapie(method, level):
    X, y = load_wine(return_X_y=True)
    X, y = X[:, [6, 9]], np.array(["barolo", "grignolino", "barbera"])[y]
    fitted, other, new = np.split(np.random.RandomState(0).permutation(178), [60, 129])
    model = NadarayaWatsonClassifier(bandwidth=[0.6, 1.2], prior_share=0.05).fit(X[fitted], y[fitted])
    rows = {"X_calibration": X[other], "y_calibration": y[other]}
    found = model.predict_set(X[new], level, method=method, allow_empty=True, random_state=Complement(), **rows)
    threshold, sets = MAPIE[method, level]
    assert_allclose(found.threshold, threshold, rtol=0, atol=1e-12)
    assert "".join(map(str, found.member @ [4, 2, 1])) == sets
