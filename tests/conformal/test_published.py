"""Numbers of other programs, from the same bits of data."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor
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
# A search over y with a dense program, at the same places.
FULL_LOWER = [
    -0.3898366593054522, 0.1395782213765664, 0.779534268364719, 1.290040591532471, 1.65286162542951,
    1.3709101559407633, 0.5306310225805295, -0.4987496204614763, -1.055622398564856, -1.0614322612976617,
    -0.8511437184370569,
]  # fmt: skip
FULL_UPPER = [
    0.8843823732348502, 1.4137972539168688, 2.055494037163313, 2.5642596240727737, 2.9270806579698125,
    2.645129188481127, 1.759574897914412, 0.7773608107765431, 0.1977021788286814, 0.2125371314597403,
    0.4230754652692575,
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "lower", "upper"), [("jackknife+", MAPIE_LOWER, MAPIE_UPPER), ("full", FULL_LOWER, FULL_UPPER)]
)
def test_intervals_are_those_of_other_programs(method, lower, upper):
    x, y = bend()
    found = NadarayaWatsonRegressor(bandwidth=0.04).fit(x[:, None], y).prediction_interval(PLACES, method=method)
    np.testing.assert_allclose(found.lower, lower, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.upper, upper, rtol=0, atol=1e-12)
