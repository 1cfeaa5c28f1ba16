"""The record of a test."""

import numpy as np

import kernpool
import kernpool.inference
from kernpool import TestResult


def test_p_values_count_the_data_as_a_draw():
    draws = np.array([1.0, 2.0, 3.0])
    for statistic, p_value in [(4.0, 0.25), (3.0, 0.5), (0.0, 1.0)]:
        result = TestResult.of(statistic, draws, null="none", bandwidth=np.array([1.0]))
        assert result.p_value == p_value
        assert isinstance(result.p_value, float)
        assert result.n_resamples == 3
        assert result.resampled is draws


def test_it_prints_well():
    result = TestResult.of(12.34567, np.zeros(99), null="the curves are equal", bandwidth=np.array([0.25, 1e9]))
    assert str(result).splitlines() == [
        "null hypothesis  the curves are equal",
        "statistic        12.35",
        "p-value          0.01, from 99 resamples, the least that so many can show",
        "test bandwidth   0.25, 1e+09",
    ]
    assert "resampled" not in repr(result)


def test_notebooks_show_what_is_printed():
    """And nothing of it as markup."""
    result = TestResult.of(1.0, np.zeros(99), null="y < 0 & x", bandwidth=np.array([0.25]))
    assert result._repr_html_() == "<pre>" + str(result).replace("y < 0 & x", "y &lt; 0 &amp; x") + "</pre>"
    for name in (
        "Interval",
        "PredictionSet",
        "Summary",
    ):
        assert hasattr(getattr(kernpool, name), "_repr_html_"), name
