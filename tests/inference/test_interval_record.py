"""What an interval prints: a short record, whatever its shape and however many places there are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Interval, LocalLinearRegressor
from tests.support.inference_cases import bend

X, Y = bend()[0][:, None], bend()[1]
AT = np.linspace(0.0, 1.0, 9)[:, None]

# How intervals print is tested, and not whether they cover.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")


def cells(interval):
    """Return the rows of the printed table."""
    return [line.split() for line in str(interval).partition("\n\n")[2].splitlines()[1:]]


@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_empty_windows_have_no_interval_whatever_a_prediction_there_does():
    model = LocalLinearRegressor("epanechnikov", bandwidth=0.1, empty="raise").fit(X, Y)
    found = model.confidence_interval([[0.5], [9.0]])
    assert np.isnan(found.lower).tolist() == [False, True]


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e-9])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_ends_are_told_apart_whatever_the_unit(offset, size):
    center = np.array([1.0 + offset, 2.0 + offset]) * size
    error = np.array([0.25, 0.5]) * size
    found = Interval(center, center - 2 * error, center + 2 * error, 0.95, "robust", error, np.array([9.0, 99.5]))
    rows = cells(found)
    for i, row in enumerate(rows):
        shown = np.array(row[1:5], dtype=float)
        assert_allclose(shown[2] - shown[1], 4 * error[i], rtol=0.02)


def test_what_is_nan_or_zero_is_shown_as_such():
    number = np.array([1.0, np.nan, 3.0])
    found = Interval(number, number, number, 0.95, "naive", number * 0.0, number)
    rows = cells(found)
    assert rows[1] == ["1", "nan", "nan", "nan", "nan", "nan"]
    assert rows[2] == ["2", "3", "3", "3", "0", "3"]
    none = np.empty((0, 2))
    assert str(Interval(none, none, none, 0.95, "naive", none, np.empty(0))).splitlines()[0] == "points    0"


def test_printing_reads_no_more_than_it_shows():
    class Counted(np.ndarray):
        """Numbers that refuse to be read all together."""

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            assert all(np.size(each) < 1000 for each in inputs)
            plain = [np.asarray(each) for each in inputs]
            return getattr(ufunc, method)(*plain, **options)

    many = np.zeros((10**6, 3)).view(Counted)
    text = str(Interval(many, many, many, 0.95, "robust", many, many[:, 0]))
    assert len(text) < 1000
    assert len(repr(Interval(many, many, many, 0.95, "robust", many, many[:, 0]))) < 3000
