"""Sets of classes of MAPIE 1.6, around the same fit to the same rows, with the same draws."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from kernpool import NadarayaWatsonClassifier

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
    np.testing.assert_allclose(found.threshold, threshold, rtol=0, atol=1e-12)
    assert "".join(map(str, found.member @ [4, 2, 1])) == sets
