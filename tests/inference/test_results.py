"""The record of a test."""

import numpy as np

from kernpool import TestResult


def test_p_values_count_the_data_as_a_draw():
    draws = np.array([1.0, 2.0, 3.0])
    for statistic, p_value in [(4.0, 0.25), (3.0, 0.5), (0.0, 1.0)]:
        result = TestResult(statistic, draws, null="none", bandwidth=np.array([1.0]))
        assert result.p_value == p_value
        assert isinstance(result.p_value, float)
        assert result.n_resamples == 3
        assert result.resampled is draws
